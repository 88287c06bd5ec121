"""A plan file is read as it was written, and reports line by line why it is no longer valid."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.manifests import a_policy
from tests.support.whatif import a_cluster, a_source, a_world, change, plan

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.plans.edits import Edit, Verb
from federation.plans.planfile import (
    PlanFile,
    differences,
    observe,
    read_plan_file,
    seen_by,
    to_plan_file,
    write_plan_file,
)
from federation.scheduling.whatif.changes import with_label
from federation.scheduling.whatif.state import ObjectChange, ObjectSet

FREE: dict[str, Any] = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {}}}
HEAVY = a_policy({"east": 2, "west": 1}, **FREE)
EDIT = Edit("p.yaml", Verb.APPLY, PROPAGATION_POLICIES, "default", "divide", HEAVY)


def world_of(*names: str, replicas: int = 6) -> ObjectSet:
    policy = a_policy({"east": 1, "west": 1}, **FREE)
    return a_world([a_cluster(name) for name in names], [policy], sources=[a_source("web", replicas)])


def saved_plan(world: ObjectSet) -> PlanFile:
    made = change(world, PROPAGATION_POLICIES, HEAVY)
    return to_plan_file(plan(world, made), world, [EDIT], [made], [])


def differences_after(saved: PlanFile, world: ObjectSet, *more: ObjectChange) -> list[str]:
    """Return the differences from the saved plan after further changes."""
    now = world.with_changes(more)

    def find(resource: Resource, namespace: str, name: str) -> Object | None:
        return now.get(resource, namespace, name)

    made = change(now, PROPAGATION_POLICIES, HEAVY)
    return differences(saved, to_plan_file(plan(now, made), now, [EDIT], [made], []), find)


def test_a_written_plan_file_is_read_back_and_valid(tmp_path: Path) -> None:
    world = world_of("east", "west")
    write_plan_file(tmp_path / "plan.json", saved_plan(world))
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600  # it may hold Secrets
    saved = read_plan_file(tmp_path / "plan.json")
    assert saved == saved_plan(world)
    assert differences_after(saved, world) == []


def test_heartbeats_and_free_resources_do_not_invalidate_a_plan_with_the_same_result() -> None:
    world = world_of("east", "west")
    cluster = a_cluster("east")
    cluster["metadata"]["resourceVersion"] = "77"
    cluster["status"]["resources"]["available"] = {"cpu": "90", "memory": "90Gi"}
    assert differences_after(saved_plan(world), world, change(world, FEDERATED_CLUSTERS, cluster)) == []


def test_each_change_of_an_observed_object_is_reported() -> None:
    world = world_of("east", "west")
    saved = saved_plan(world)
    labelled = change(world, FEDERATED_CLUSTERS, with_label(a_cluster("east"), "tier", "gold"))
    assert differences_after(saved, world, labelled) == ["east got the label tier=gold since"]
    come = change(world, FEDERATED_CLUSTERS, a_cluster("north"))
    assert differences_after(saved, world, come) == ["FederatedCluster north was added"]
    gone = ObjectChange(FEDERATED_CLUSTERS, "", "west", a_cluster("west"), None)
    assert differences_after(saved, world, gone) == [
        "FederatedCluster west was deleted",
        "deployment/web in default would have another result: east 6 instead of 4, west missing",
    ]
    other = change(world, FEDERATED_CLUSTERS, {**a_cluster("east"), "metadata": {"name": "east", "uid": "2"}})
    assert "FederatedCluster east was deleted and recreated" in differences_after(saved, world, other)


def test_each_difference_in_the_result_is_reported() -> None:
    saved = saved_plan(world_of("east", "west"))
    later = world_of("east", "west", replicas=9)
    assert differences_after(saved, later) == [
        "FederatedObject web-deployments.apps in default has changed",
        "deployment/web in default would have another result: east 6 instead of 4, west 3 instead of 2",
    ]
    done = world_of("east", "west").with_changes([change(later, PROPAGATION_POLICIES, HEAVY)])
    policy = "PropagationPolicy divide in default"
    assert differences_after(saved, done)[0] == f"{policy} has changed"
    empty = PlanFile([], [], saved.observed, [])
    assert differences_after(empty, world_of("east", "west")) == ["deployment/web in default would change too"]
    assert (
        differences_after(saved, world_of("east", "west", replicas=0))[-1]
        == "deployment/web in default would no longer change"
    )


def test_an_object_created_meanwhile_is_reported() -> None:
    world = world_of("east", "west")
    new = ObjectChange(DEPLOYMENTS, "default", "new", None, a_source("new"))
    saved = to_plan_file(plan(world, new), world, [], [new], [])
    now = ObjectChange(DEPLOYMENTS, "default", "new", a_source("new"), a_source("new"))
    found = to_plan_file(plan(world, new), world, [], [now], [])
    assert differences(saved, found, world.get) == ["Deployment new in default exists now"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is not a plan file"),
        (b"{}", "is not a plan file"),
        (orjson.dumps({"kind": "FederationPlan", "version": 9}), "has version 9, and this fedctl reads 1"),
        (orjson.dumps({"kind": "FederationPlan", "version": 1, "edits": [3]}), "is damaged"),
    ],
)
def test_an_invalid_plan_file_is_rejected(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(ConfigurationError, match="No such file"):
        read_plan_file(path)
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=problem):
        read_plan_file(path)


def with_nodes(cluster: Object, nodes: int, cpu: str = "100") -> Object:
    room = {"cpu": cpu, "memory": "100Gi"}
    resources = {"allocatable": room, "available": room, "schedulableNodes": nodes}
    return {**cluster, "status": {**cluster["status"], "resources": resources}}


def test_lost_nodes_are_named_if_they_change_the_result() -> None:
    world = world_of("east", "west").with_changes(
        [ObjectChange(FEDERATED_CLUSTERS, "", name, None, with_nodes(a_cluster(name), 10)) for name in ("east", "west")]
    )
    saved = saved_plan(world)
    fewer = ObjectChange(FEDERATED_CLUSTERS, "", "east", None, with_nodes(a_cluster("east"), 8))
    assert differences_after(saved, world, fewer) == []  # the result is the same
    other = world_of("east", "west", replicas=9).with_changes([fewer])
    lines = differences_after(saved, other)
    assert "east lost 2 nodes since: 10 before, 8 now" in lines
    assert lines[-1].startswith("deployment/web in default would have another result")
    less = ObjectChange(FEDERATED_CLUSTERS, "", "east", None, with_nodes(a_cluster("east"), 10, cpu="60"))
    lines = differences_after(saved, world_of("east", "west", replicas=9).with_changes([less]))
    assert "east has 60 cpu instead of 100" in lines


@pytest.mark.parametrize(
    ("taints", "ready", "line"),
    [
        ([{"key": "a", "value": "b", "effect": "NoSchedule"}], True, "east got the taint a=b:NoSchedule since"),
        ([], False, "east is not ready since"),
    ],
)
def test_what_became_of_a_cluster_is_said_in_words(taints: list[Object], ready: bool, line: str) -> None:
    world = world_of("east", "west")
    cluster = a_cluster("east")
    cluster["spec"] = {"taints": taints}
    if not ready:
        cluster["status"]["conditions"][1]["status"] = "False"
    changed = ObjectChange(FEDERATED_CLUSTERS, "", "east", None, cluster)
    assert line in differences_after(saved_plan(world), world, changed)


def test_a_user_sees_his_part_of_a_plan_and_is_refused_when_the_rest_differs() -> None:
    world = world_of("east", "west")
    everything = saved_plan(world)
    objects = {each.key for each in everything.expected} | {(PROPAGATION_POLICIES, "default", "divide")}
    mine = seen_by(everything, objects, (), sees_clusters=False)
    assert not mine.clusters
    assert {each.resource for each in mine.observed} == {PROPAGATION_POLICIES}
    assert mine.hidden
    # Somebody who sees everything applies it while nothing has changed, and is told otherwise.
    assert differences_after(mine, world) == []
    labelled = change(world, FEDERATED_CLUSTERS, with_label(a_cluster("east"), "tier", "gold"))
    assert differences_after(mine, world, labelled)[-1].startswith("what the plan depends on besides")
    # The plan of somebody who sees everything cannot be checked by somebody who does not.
    assert differences(everything, mine)[-1].startswith("what the plan depends on besides")


@pytest.mark.parametrize("name", [names.DEPARTED_CLUSTERS, names.ARRIVING_CLUSTERS])
def test_the_end_of_a_move_does_not_invalidate_a_plan(name: str) -> None:
    metadata = {"name": "web-deployments.apps", "namespace": "default", "uid": "1"}
    moving = {"metadata": {**metadata, "annotations": {name: '["east"]', "a": "b"}}, "spec": {}}
    moved = {"metadata": {**metadata, "annotations": {"a": "b"}}, "spec": {}}

    before, after = (observe(FEDERATED_OBJECTS, "default", metadata["name"], obj) for obj in (moving, moved))

    assert before == after
