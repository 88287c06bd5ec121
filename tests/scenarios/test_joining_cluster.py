"""A joining cluster is used once it is ready, by objects whose policy requires it, and by no others."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.client.client import PatchType
from federation.journal.decisions import DecisionFilter

JOINED: dict[str, Any] = {"rescheduleWhen": {"clusterJoined": True}}
WEIGHTS = {"east": 1, "north": 1, "west": 1}
EVENLY: dict[str, Any] = {"reschedulePolicy": {**JOINED, "replicaRescheduling": {"avoidDisruption": False}}}


async def begin(world: World, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
    await world.until_replicas("web", {"east": 3, "west": 3})
    await world.settle()


async def outcomes(world: World, name: str = "web") -> list[str]:
    return [record.outcome for record in await world.journal.query(DecisionFilter(name=name), limit=9)]


async def test_cluster_joined_alone_uses_a_new_cluster_when_it_is_ready() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world, **EVENLY)
        assert await outcomes(world) == ["Scheduled"]
        await world.add_member("north", {})
        await world.join("north")
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        await world.settle()
        assert await outcomes(world) == ["Scheduled"] * 2, "once: not when it has joined and again when it is ready"


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_cluster_unresponsive_during_its_join_is_used_when_it_responds(is_restarted: bool) -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world, **EVENLY)
        await world.add_member("north", {})
        north = world.members["north"].line
        north.mode = "down"
        await world.stop()
        await world.join("north")
        await note_joined(world, "north")
        await world.restart()
        await world.until_ready("north", status="Unknown")
        await world.settle()
        assert await outcomes(world) == ["Scheduled"]
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=6))
        await world.until_replicas("new", {"east": 3, "west": 3})
        if is_restarted:
            await world.restart()
            await world.settle()
        north.mend()
        for name in ("web", "new"):
            await world.until_replicas(name, {"east": 2, "north": 2, "west": 2})


async def note_joined(world: World, name: str) -> None:
    """Leave what a join leaves, as if control plane and member had stopped before the first probe."""
    cluster = await world.user.get(FEDERATED_CLUSTERS, name)
    annotations = {names.FEDERATED_CLUSTER_UID: cluster["metadata"]["uid"]}
    namespace = {"metadata": {"name": names.SYSTEM_NAMESPACE, "annotations": annotations}}
    await world.members[name].admin.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", **namespace})
    now = "2026-01-01T00:00:00Z"
    joined = {"type": names.CLUSTER_JOINED, "status": "True", "reason": "ClusterJoined", "message": ""}
    status = {"joinPerformed": True, "conditions": [{**joined, "lastProbeTime": now, "lastTransitionTime": now}]}
    await world.user.patch(
        FEDERATED_CLUSTERS, name, {"status": status}, patch_type=PatchType.MERGE, subresource="status"
    )


async def test_a_cluster_that_rejoins_is_used_again() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, **EVENLY))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        # What it kept is the user's: the annotations say that it may be taken over.
        adopting = {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: '{"regexp":".*"}'}
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": adopting}})
        for is_restarted in (False, True):
            await world.user.delete(FEDERATED_CLUSTERS, "north")
            await world.until_gone(FEDERATED_CLUSTERS, "north", "")
            await world.until_available("web", 6)
            if is_restarted:
                await world.restart()
            await world.join("north")
            await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})


async def test_a_policy_that_ignores_joining_clusters_defers_the_decision() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world, reschedulePolicy={"rescheduleWhen": {}})
        await world.add_member("north", {})
        await world.join("north")
        await world.until_ready("north")
        await world.settle()
        assert await world.replicas("web") == {"east": 3, "west": 3}
        annotations = (await world.federated("web"))["metadata"]["annotations"]
        assert annotations[names.SCHEDULING_DEFERRED_REASONS] == "clusterJoined:false"
