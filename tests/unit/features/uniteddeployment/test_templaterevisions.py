"""Revisions follow the template of a UnitedDeployment and nothing else."""

from typing import Any

from federation.features.uniteddeployment.rules.templaterevisions import plan_revisions, surplus_revisions


def a_united(image: str, kind: str = "deploymentTemplate", **status: Any) -> dict[str, Any]:
    template = {kind: {"metadata": {"labels": {"app": "web"}}, "spec": {"image": image}}}
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"template": template},
        "status": status,
    }


def created(united: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    revision = plan_revisions(united, known).created
    assert revision is not None
    return revision


def test_the_first_revision_is_current_and_updated() -> None:
    plan = plan_revisions(a_united("a"), [])
    assert plan.current == plan.updated
    assert plan.created is not None
    assert plan.created["revision"] == 1
    assert plan.created["metadata"]["labels"] == {"app": "web"}
    assert plan.created["metadata"]["name"].startswith("web-")


def test_clone_set_templates_give_their_labels_to_revisions_too() -> None:
    assert created(a_united("a", "cloneSetTemplate"), [])["metadata"]["labels"] == {"app": "web"}


def test_an_equal_template_reuses_the_newest_revision_whatever_else_changes() -> None:
    first = created(a_united("a"), [])
    united = a_united("a")
    united["spec"] |= {"replicas": 7, "topology": {"subsets": [{"name": "x", "patch": {"spec": {}}}]}}
    plan = plan_revisions(united, [first])
    assert (plan.created, plan.renumbered, plan.updated) == (None, None, first["metadata"]["name"])


def test_a_new_template_keeps_the_current_revision_of_the_status() -> None:
    first = created(a_united("a"), [])
    plan = plan_revisions(a_united("b", currentRevision=first["metadata"]["name"]), [first])
    assert plan.current == first["metadata"]["name"] != plan.updated


def test_a_current_revision_that_does_not_exist_is_replaced() -> None:
    plan = plan_revisions(a_united("a", currentRevision="gone"), [])
    assert plan.current == plan.updated


def test_a_return_to_an_earlier_template_renumbers_its_revision() -> None:
    first = created(a_united("a"), [])
    second = created(a_united("b"), [first])
    assert second["revision"] == 2
    plan = plan_revisions(a_united("a"), [second, first])
    assert plan.renumbered == (first["metadata"]["name"], 3)


def test_a_taken_name_counts_as_a_collision() -> None:
    taken = {**created(a_united("a"), []), "data": {"spec": {}}}
    plan = plan_revisions(a_united("a"), [taken])
    assert plan.collisions == 1
    assert plan.created is not None
    assert plan.created["metadata"]["name"] != taken["metadata"]["name"]


def test_history_keeps_live_revisions_and_the_newest_of_the_others() -> None:
    known = [{"metadata": {"name": name}, "revision": number} for number, name in enumerate("abcde", 1)]
    assert surplus_revisions(known, {"a", "e"}, 1) == ["b", "c"]
    assert surplus_revisions(known, {"a", "e"}, 0) == ["b", "c", "d"]
    assert surplus_revisions(known, set(), None) == []
