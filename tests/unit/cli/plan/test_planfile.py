"""A plan file comes back as it was written, and says line by line what does not hold any more."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.manifests import a_policy
from tests.support.whatif import a_cluster, a_source, a_world, change, plan

from federation.api.resources import DEPLOYMENTS, FEDERATED_CLUSTERS, PROPAGATION_POLICIES, Object, Resource
from federation.base.errors import ConfigurationError
from federation.cli.plan.edits import Edit, Verb
from federation.cli.plan.planfile import (
    PlanFile,
    differences,
    read_plan_file,
    to_plan_file,
    write_plan_file,
)
from federation.scheduling.whatif.changes import with_label
from federation.scheduling.whatif.world import Change, World

FREE: dict[str, Any] = {"reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {}}}
HEAVY = a_policy({"east": 2, "west": 1}, **FREE)
EDIT = Edit("p.yaml", Verb.APPLY, PROPAGATION_POLICIES, "default", "divide", HEAVY)


def world_of(*names: str, replicas: int = 6) -> World:
    policy = a_policy({"east": 1, "west": 1}, **FREE)
    return a_world([a_cluster(name) for name in names], [policy], sources=[a_source("web", replicas)])


def kept(world: World) -> PlanFile:
    made = change(world, PROPAGATION_POLICIES, HEAVY)
    return to_plan_file(plan(world, made), world, [EDIT], [made], [])


def still(held: PlanFile, world: World, *more: Change) -> list[str]:
    """Return the differences in the world after more changes by somebody else."""
    now = world.with_changes(more)

    def find(resource: Resource, namespace: str, name: str) -> Object | None:
        return now.get(resource, namespace, name)

    return differences(held, find, now, plan(now, change(now, PROPAGATION_POLICIES, HEAVY)))


def test_what_was_written_is_read_and_holds(tmp_path: Path) -> None:
    world = world_of("east", "west")
    write_plan_file(tmp_path / "plan.json", kept(world))
    assert (tmp_path / "plan.json").stat().st_mode & 0o777 == 0o600  # it may hold Secrets
    held = read_plan_file(tmp_path / "plan.json")
    assert held == kept(world)
    assert still(held, world) == []


def test_heartbeats_and_free_resources_do_not_matter_while_the_result_is_the_same() -> None:
    world = world_of("east", "west")
    cluster = a_cluster("east")
    cluster["metadata"]["resourceVersion"] = "77"
    cluster["status"]["resources"]["available"] = {"cpu": "90", "memory": "90Gi"}
    assert still(kept(world), world, change(world, FEDERATED_CLUSTERS, cluster)) == []


def test_every_change_of_what_was_seen_is_a_line() -> None:
    world = world_of("east", "west")
    held = kept(world)
    labelled = change(world, FEDERATED_CLUSTERS, with_label(a_cluster("east"), "tier", "gold"))
    assert still(held, world, labelled) == ["FederatedCluster east has changed"]
    come = change(world, FEDERATED_CLUSTERS, a_cluster("north"))
    assert still(held, world, come) == ["FederatedCluster north has come"]
    gone = Change(FEDERATED_CLUSTERS, "", "west", a_cluster("west"), None)
    assert still(held, world, gone) == [
        "FederatedCluster west is gone",
        "deployment/web in default would come out otherwise: east 6 instead of 4, west missing",
    ]
    other = change(world, FEDERATED_CLUSTERS, {**a_cluster("east"), "metadata": {"name": "east", "uid": "2"}})
    assert "FederatedCluster east is another one of the same name" in still(held, world, other)


def test_what_would_not_happen_any_more_or_would_happen_too_is_a_line() -> None:
    held = kept(world_of("east", "west"))
    later = world_of("east", "west", replicas=9)
    assert still(held, later) == [
        "FederatedObject web-deployments.apps in default has changed",
        "deployment/web in default would come out otherwise: east 6 instead of 4, west 3 instead of 2",
    ]
    done = world_of("east", "west").with_changes([change(later, PROPAGATION_POLICIES, HEAVY)])
    policy = "PropagationPolicy divide in default"
    assert still(held, done)[0] == f"{policy} has changed"
    empty = PlanFile([], [], held.seen, [])
    assert still(empty, world_of("east", "west")) == ["deployment/web in default would change, too"]
    assert (
        still(held, world_of("east", "west", replicas=0))[-1] == "deployment/web in default would not change any more"
    )


def test_an_object_that_did_not_exist_and_does_now_is_a_line() -> None:
    world = world_of("east", "west")
    new = Change(DEPLOYMENTS, "default", "new", None, a_source("new"))
    held = to_plan_file(plan(world, new), world, [], [new], [])

    def find(resource: Resource, namespace: str, name: str) -> Object | None:
        return a_source("new") if resource == DEPLOYMENTS else world.get(resource, namespace, name)

    assert differences(held, find, world, plan(world, new)) == ["Deployment new in default exists now"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is no plan file"),
        (b"{}", "is no plan file"),
        (orjson.dumps({"kind": "FederationPlan", "version": 9}), "is of version 9, and this fedctl reads 1"),
        (orjson.dumps({"kind": "FederationPlan", "version": 1, "edits": [3]}), "is damaged"),
    ],
)
def test_what_is_no_plan_file_is_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(ConfigurationError, match="No such file"):
        read_plan_file(path)
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=problem):
        read_plan_file(path)
