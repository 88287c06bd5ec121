"""Patches per cluster for StatefulSets, Jobs and CronJobs."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition, default_type_configs, from_config
from federation.planning.division.plan import copies_problem, is_planned_from_template, plan_division
from federation.planning.federatedobject.placements import with_overrides, with_placement

TYPES = {type_.resource.kind: type_ for type_ in map(from_config, default_type_configs())}


def a_federated(kind: str, spec: dict[str, Any], **annotations: str) -> dict[str, Any]:
    api_version = TYPES[kind].resource.api_version
    template = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    return {"metadata": {"name": "web", "annotations": annotations}, "spec": {"template": template}}


def placed(federated: dict[str, Any], kind: str, placements: dict[str, int]) -> dict[str, Any]:
    """Return the federated object with the decision written."""
    plan = plan_division(federated, TYPES[kind], placements)
    spec = dict(federated["spec"])
    for part in (
        with_placement(federated, names.GLOBAL_SCHEDULER, plan.placements),
        with_overrides(federated, names.GLOBAL_SCHEDULER, plan.patches),
    ):
        spec |= part.get("spec", {})
    annotations = {**federated["metadata"]["annotations"], **plan.annotations}
    return {"metadata": {**federated["metadata"], "annotations": annotations}, "spec": spec}


def values(patches: list[dict[str, Any]]) -> dict[str, Any]:
    assert all(patch["op"] == "replace" for patch in patches)
    return {patch["path"]: patch["value"] for patch in patches}


def test_a_deployment_gets_its_number_only() -> None:
    plan = plan_division(a_federated("Deployment", {"replicas": 3}), TYPES["Deployment"], {"east": 2, "north": 1})
    assert {cluster: values(patches) for cluster, patches in plan.patches.items()} == {
        "east": {"/spec/replicas": 2},
        "north": {"/spec/replicas": 1},
    }
    assert plan.annotations == {}


def test_a_duplicated_object_gets_no_patches() -> None:
    for kind in ("Deployment", "StatefulSet", "ConfigMap"):
        plan = plan_division(a_federated(kind, {}), TYPES[kind], {"east": None, "north": None})
        assert (plan.patches, plan.annotations, plan.problem) == ({}, {}, "")


def test_a_stateful_set_gets_ordinals_and_a_share_of_the_partition() -> None:
    spec = {
        "replicas": 6,
        "ordinals": {"start": 1},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}},
    }
    plan = plan_division(a_federated("StatefulSet", spec), TYPES["StatefulSet"], {"east": 3, "north": 3})
    partition = "/spec/updateStrategy/rollingUpdate/partition"
    assert values(plan.patches["east"]) == {"/spec/replicas": 3, partition: 3}
    assert values(plan.patches["north"]) == {"/spec/replicas": 3, "/spec/ordinals": {"start": 1001}, partition: 2}
    assert orjson.loads(plan.annotations[names.ORDINAL_STARTS] or "") == {"east": 0, "north": 1000}


def test_an_advanced_stateful_set_is_divided_like_a_stateful_set() -> None:
    (advanced,) = (
        type_ for type_ in map(from_config, default_type_configs()) if type_.name == "statefulsets.apps.kruise.io"
    )
    spec = {"replicas": 6, "updateStrategy": {"rollingUpdate": {"partition": 4, "podUpdatePolicy": "InPlaceOnly"}}}
    placements = {"east": 3, "north": 3}
    built_in = plan_division(a_federated("StatefulSet", spec), TYPES["StatefulSet"], placements)
    assert plan_division(a_federated("StatefulSet", spec), advanced, placements) == built_in
    assert copies_problem(replace(advanced, paths=PathDefinition()), placements) != ""


def test_reserved_ordinals_need_room_in_every_range() -> None:
    spec = {"replicas": 2000, "reserveOrdinals": [3, "10-12"]}
    federated = a_federated("StatefulSet", {"replicas": 4, "reserveOrdinals": [3]})
    first = placed(federated, "StatefulSet", {"east": 2, "north": 2})
    template = {**first["spec"]["template"], "spec": spec}
    grown = {**first, "spec": {**first["spec"], "template": template}}
    assert plan_division(grown, TYPES["StatefulSet"], {"east": 996, "north": 1004}).problem == ""
    assert "leaves no room" in plan_division(grown, TYPES["StatefulSet"], {"east": 997, "north": 1003}).problem


@pytest.mark.parametrize(
    ("partition", "shares"),
    [
        (None, {}),
        (0, {}),
        ("30%", {}),
        (True, {}),
        (2, {"east": 2, "north": 0, "west": 0}),
        (4, {"east": 3, "north": 1, "west": 0}),
        (99, {"east": 3, "north": 2, "west": 1}),
    ],
    ids=["none", "zero", "a percentage holds in each cluster", "no number", "the last first", "two clusters", "all"],
)
def test_the_partition_of_a_clone_set_is_divided(partition: Any, shares: dict[str, int]) -> None:
    federated = a_federated("CloneSet", {"replicas": 6, "updateStrategy": {"partition": partition}})
    plan = plan_division(federated, TYPES["CloneSet"], {"east": 3, "west": 1, "north": 2})
    path = "/spec/updateStrategy/partition"
    found = {cluster: values(patches) for cluster, patches in plan.patches.items()}
    assert {cluster: each["/spec/replicas"] for cluster, each in found.items()} == {"east": 3, "west": 1, "north": 2}
    assert {cluster: each[path] for cluster, each in found.items() if path in each} == shares


def test_the_ordinals_of_a_stateful_set_stay_when_a_cluster_joins_or_leaves() -> None:
    federated = placed(a_federated("StatefulSet", {"replicas": 4}), "StatefulSet", {"north": 4})
    federated = placed(federated, "StatefulSet", {"east": 2, "north": 2})
    plan = plan_division(federated, TYPES["StatefulSet"], {"east": 4})
    assert values(plan.patches["east"]) == {"/spec/replicas": 4, "/spec/ordinals": {"start": 1000}}


def test_a_stateful_set_that_is_copied_from_now_on_keeps_the_names_of_its_pods() -> None:
    """Pods with other names would begin on empty volumes beside those of the shares."""
    federated = placed(a_federated("StatefulSet", {"replicas": 4}), "StatefulSet", {"east": 2, "north": 2})
    plan = plan_division(federated, TYPES["StatefulSet"], dict.fromkeys(("east", "north", "west")))
    assert {cluster: values(patches) for cluster, patches in plan.patches.items()} == {
        "north": {"/spec/ordinals": {"start": 1000}}
    }
    # While the guard holds the change, some clusters have copies already and others still have shares.
    plan = plan_division(federated, TYPES["StatefulSet"], {"east": 2, "north": None})
    assert {cluster: values(patches) for cluster, patches in plan.patches.items()} == {
        "east": {"/spec/replicas": 2},
        "north": {"/spec/ordinals": {"start": 1000}},
    }
    federated["metadata"]["annotations"] |= plan.annotations
    plan = plan_division(federated, TYPES["StatefulSet"], {"east": 2, "north": 2})
    assert values(plan.patches["north"]) == {"/spec/replicas": 2, "/spec/ordinals": {"start": 1000}}


def test_a_stateful_set_that_was_divided_without_ranges_keeps_the_names_of_its_pods() -> None:
    federated = placed(a_federated("StatefulSet", {"replicas": 4}), "StatefulSet", {"east": 2, "north": 2})
    del federated["metadata"]["annotations"][names.ORDINAL_STARTS]
    for entry in federated["spec"]["overrides"]:
        entry["clusters"] = [{**each, "patches": each["patches"][:1]} for each in entry["clusters"]]
    plan = plan_division(federated, TYPES["StatefulSet"], {"east": 3, "north": 1})
    assert values(plan.patches["north"]) == {"/spec/replicas": 1}
    assert plan.annotations == {}


def test_ordinals_without_room_are_a_problem() -> None:
    record = {names.ORDINAL_STARTS: '{"east": 0, "north": 1000}'}
    federated = a_federated("StatefulSet", {"replicas": 1002}, **record)
    assert "maxReplicas: 1000" in plan_division(federated, TYPES["StatefulSet"], {"east": 1001, "north": 1}).problem


def test_the_completions_of_a_job_stay_after_the_first_decision() -> None:
    federated = placed(a_federated("Job", {"parallelism": 4, "completions": 8}), "Job", {"east": 3, "north": 1})
    plan = plan_division(federated, TYPES["Job"], {"east": 1, "north": 3})
    assert values(plan.patches["east"]) == {"/spec/parallelism": 1, "/spec/completions": 6}
    assert values(plan.patches["north"]) == {"/spec/parallelism": 3, "/spec/completions": 2}
    plan = plan_division(federated, TYPES["Job"], {"east": 2, "north": 1, "west": 1})
    assert plan.placements.keys() == {"east", "north"}
    assert "cannot move" in plan_division(federated, TYPES["Job"], {"east": 4}).problem


def test_the_jobs_of_a_cron_job_are_divided() -> None:
    job = {"parallelism": 2, "completions": 2}
    federated = a_federated("CronJob", {"jobTemplate": {"spec": job}})
    plan = plan_division(federated, TYPES["CronJob"], {"east": 1, "north": 1})
    path = "/spec/jobTemplate/spec"
    assert values(plan.patches["east"]) == {f"{path}/parallelism": 1, f"{path}/completions": 1}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("Job", {"parallelism": 4, "completions": 3}, 3),
        ("Job", {"parallelism": 4}, 4),
        ("CronJob", {"jobTemplate": {"spec": {}}}, 1),
        ("CronJob", {}, 1),
        ("CronJob", {"jobTemplate": {"spec": {"parallelism": 3, "completions": 9}}}, 3),
    ],
)
def test_the_replicas_of_a_job_are_its_pods_at_a_time(kind: str, spec: dict[str, Any], expected: int) -> None:
    assert TYPES[kind].replicas({"spec": spec}) == expected


@pytest.mark.parametrize(
    ("kind", "said"),
    [("StatefulSet", "has no pathDefinition.replicasSpec: add it"), ("ConfigMap", ""), ("DaemonSet", "")],
)
def test_pods_are_never_multiplied_by_a_type_without_replicas(kind: str, said: str) -> None:
    type_ = FederatedType(TYPES[kind].name, TYPES[kind].resource, ())
    problem = copies_problem(type_, {"east": None, "north": None})
    assert said in problem
    assert bool(said) == bool(problem)
    assert copies_problem(type_, {"east": None}) == ""


def test_only_some_kinds_follow_their_template_between_decisions() -> None:
    follow = [kind for kind in sorted(TYPES) if is_planned_from_template(TYPES[kind])]
    assert follow == ["CloneSet", "CronJob", "StatefulSet"]


@pytest.mark.parametrize(("partition", "expected"), [(0, []), (1, [0, 1]), (4, [1, 3])])
def test_any_partition_above_zero_is_shared(partition: int, expected: list[int]) -> None:
    spec = {"replicas": 6, "updateStrategy": {"rollingUpdate": {"partition": partition}}}
    plan = plan_division(a_federated("StatefulSet", spec), TYPES["StatefulSet"], {"east": 3, "north": 3})
    path = "/spec/updateStrategy/rollingUpdate/partition"
    shares = [values(patches)[path] for patches in plan.patches.values() if path in values(patches)]
    assert sorted(shares) == expected
