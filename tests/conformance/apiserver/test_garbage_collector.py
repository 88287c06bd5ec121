"""Conformance area: garbage collector and deletion."""

import re

import pytest
from tests.conformance.apiserver.objects import a_config_map, a_pod, a_spec, owned_by
from tests.support.rest import Api, Object, eventually, refused


@pytest.fixture
def family(api: Api) -> Object:
    """An owner and a dependent that blocks its foreground deletion."""
    owner = api.create("configmaps", a_config_map("owner"))
    references = owned_by(owner, "v1", "ConfigMap", blockOwnerDeletion=True)
    api.create("configmaps", a_config_map("child", ownerReferences=references))
    return owner


@pytest.mark.every_store
def test_dependents_go_after_their_owner(api: Api, family: Object) -> None:
    """[sig-api-machinery] Garbage collector should delete dependents in the background."""
    assert api.delete("configmaps", "owner", {"propagationPolicy": "Background"})["status"] == "Success"
    api.wait_gone("configmaps", "child")


@pytest.mark.every_store
def test_foreground_deletion_waits_for_dependents(api: Api, family: Object) -> None:
    """[sig-api-machinery] Garbage collector should keep the owner until all its dependents are deleted."""
    api.patch("configmaps", "child", {"metadata": {"finalizers": ["example.com/wait"]}})
    last = api.delete("configmaps", "owner", {"propagationPolicy": "Foreground"})
    assert last["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: "deletionTimestamp" in api.get("configmaps", "child")["metadata"])
    assert api.exists("configmaps", "owner")
    api.patch("configmaps", "child", {"metadata": {"finalizers": None}})
    api.wait_gone("configmaps", "owner")
    assert not api.exists("configmaps", "child")


def test_orphans_live_on(api: Api, family: Object) -> None:
    """[sig-api-machinery] Garbage collector should orphan dependents if delete options say so."""
    api.delete("configmaps", "owner", {"propagationPolicy": "Orphan"})
    api.wait_gone("configmaps", "owner")
    assert not api.get("configmaps", "child")["metadata"].get("ownerReferences")


def test_a_second_owner_keeps_a_dependent(api: Api, family: Object) -> None:
    """[sig-api-machinery] Garbage collector should not delete dependents that have both valid and waiting owners."""
    other = api.create("configmaps", a_config_map("other"))
    both = owned_by(family, "v1", "ConfigMap") + owned_by(other, "v1", "ConfigMap")
    api.patch("configmaps", "child", {"metadata": {"ownerReferences": both}})
    api.delete("configmaps", "owner")
    eventually(lambda: len(api.get("configmaps", "child")["metadata"]["ownerReferences"]) == 1)


@pytest.mark.every_store
def test_a_chain_is_collected(api: Api, family: Object) -> None:
    child = api.get("configmaps", "child")
    api.create("configmaps", a_config_map("grandchild", ownerReferences=owned_by(child, "v1", "ConfigMap")))
    api.delete("configmaps", "owner")
    api.wait_gone("configmaps", "grandchild")


def test_a_circle_does_not_block(api: Api, family: Object) -> None:
    """[sig-api-machinery] Garbage collector should not be blocked by dependency circle."""
    child = api.get("configmaps", "child")
    circle = owned_by(child, "v1", "ConfigMap", blockOwnerDeletion=True)
    api.patch("configmaps", "owner", {"metadata": {"ownerReferences": circle}})
    api.delete("configmaps", "owner", {"propagationPolicy": "Foreground"})
    api.wait_gone("configmaps", "owner")
    api.wait_gone("configmaps", "child")


def test_an_owner_of_another_uid_is_no_owner(api: Api) -> None:
    owner = api.create("configmaps", a_config_map("owner"))
    references = owned_by(owner, "v1", "ConfigMap")
    references[0]["uid"] = "00000000-0000-0000-0000-000000000000"
    api.create("configmaps", a_config_map("child", ownerReferences=references))
    api.wait_gone("configmaps", "child")
    assert api.exists("configmaps", "owner")


def test_custom_objects_own_and_are_owned(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] Garbage collector should support cascading deletion of custom resources."""
    widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
    owner = api.create(widgets, widget)
    references = owned_by(owner, f"{group}/v1", "Widget")
    api.create(widgets, {**widget, "metadata": {"name": "small", "ownerReferences": references}})
    api.create("configmaps", a_config_map("child", ownerReferences=references))
    api.delete(widgets, "w")
    api.wait_gone(widgets, "small")
    api.wait_gone("configmaps", "child")


def test_finalizers_hold_an_object(api: Api) -> None:
    api.create("configmaps", a_config_map(finalizers=["example.com/a"]))
    held = api.delete("configmaps", "cm")
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    with refused(422, "Invalid", "no new finalizers can be added if the object is being deleted"):
        api.patch("configmaps", "cm", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    api.patch("configmaps", "cm", {"metadata": {"finalizers": []}})
    assert not api.exists("configmaps", "cm")


def test_an_unqualified_finalizer_is_refused(api: Api) -> None:
    with refused(422, "Invalid", "metadata.finalizers"):
        api.create("configmaps", a_config_map(finalizers=["not a name"]))


def test_the_response_names_the_deleted_object(api: Api) -> None:
    created = api.create("configmaps", a_config_map())
    status = api.delete("configmaps", "cm")
    assert (status["kind"], status["status"]) == ("Status", "Success")
    assert status["details"] == {"name": "cm", "kind": "configmaps", "uid": created["metadata"]["uid"]}


def test_deleting_an_absent_object_is_not_found(api: Api) -> None:
    with refused(404, "NotFound", 'configmaps "cm" not found'):
        api.delete("configmaps", "cm")


@pytest.mark.every_store
@pytest.mark.parametrize(
    ("precondition", "text"),
    [
        ({"uid": "other"}, r"UID in the precondition \(other\) does not match the UID in record \({uid}\)"),
        (
            {"resourceVersion": "1"},
            r"ResourceVersion in the precondition \(1\) does not match the ResourceVersion in record \([0-9]+\)",
        ),
    ],
)
def test_preconditions_are_checked(api: Api, precondition: dict[str, str], text: str) -> None:
    for plural, body, kind in (
        ("configmaps", a_config_map(), "ConfigMap"),
        ("statefulsets", {"metadata": {"name": "cm"}, "spec": a_spec("statefulsets")}, "StatefulSet.apps"),
    ):
        api.create(plural, body)
        with refused(409, "Conflict", f'Operation cannot be fulfilled on {kind} "cm": the ') as caught:
            api.delete(plural, "cm", {"preconditions": precondition})
        found = api.get(plural, "cm")["metadata"]
        assert re.search(text.format(uid=found["uid"]), caught.value.message)
        assert caught.value.status["details"]["kind"] == kind.partition(".")[0]


def test_dry_run_deletes_nothing(api: Api) -> None:
    api.create("configmaps", a_config_map())
    api.delete("configmaps", "cm", dryRun="All")
    assert api.exists("configmaps", "cm")


def test_an_unknown_policy_is_refused(api: Api) -> None:
    api.create("configmaps", a_config_map())
    with refused(422, "Invalid", "propagationPolicy"):
        api.delete("configmaps", "cm", {"propagationPolicy": "Sometimes"})


@pytest.mark.every_store
def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    """[sig-api-machinery] should delete a collection of pods."""
    for name, label in (("a", "1"), ("b", "1"), ("c", "2")):
        api.create("configmaps", a_config_map(name, {"test": label}))
    api.send("DELETE", api.url("configmaps"), labelSelector="test=1")
    assert api.names("configmaps", labelSelector="test") == ["c"]


def test_a_pod_without_a_node_goes_at_once(api: Api) -> None:
    api.create("pods", a_pod())
    api.delete("pods", "p")
    assert not api.exists("pods", "p")


def test_an_eviction_deletes_a_pod(api: Api) -> None:
    api.create("pods", a_pod())
    api.create("pods", {"metadata": {"name": "p"}}, name="p", subresource="eviction")
    assert not api.exists("pods", "p")


def test_an_owner_in_a_namespace_cannot_own_what_has_none(api: Api) -> None:
    owner = api.create("configmaps", a_config_map("owner"))
    role = f"owned-{api.namespace}"
    metadata = {"name": role, "ownerReferences": owned_by(owner, "v1", "ConfigMap")}
    uid = api.create("clusterroles", {"metadata": metadata, "rules": []})["metadata"]["uid"]
    try:
        events = api.url("events", namespace="default")
        selector = f"involvedObject.uid={uid},reason=OwnerRefInvalidNamespace"
        (event,) = eventually(lambda: api.send("GET", events, fieldSelector=selector).json()["items"])
        assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "ClusterRole")
        assert event["message"].endswith('does not exist in namespace ""')
        assert api.exists("clusterroles", role)
    finally:
        api.delete("clusterroles", role)
