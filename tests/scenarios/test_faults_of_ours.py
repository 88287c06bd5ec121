"""A fault of ours is not a fault of the cluster: nothing leaves a member that answers, however long it refuses us."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_TAINT_POLICIES, FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import (
    ClusterUnreachable,
    FederationError,
    Forbidden,
    Obstacle,
    TooManyRequests,
    Unauthorized,
)
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.clusters.clustertaints import describe_taint

EVEN = {"east": 4, "north": 4, "west": 4}
FAULTS = [
    Unauthorized("Unauthorized"),
    ClusterUnreachable("its certificate is not trusted (unknown CA)", Obstacle.UNTRUSTED),
    ClusterUnreachable("its certificate is not trusted (expired)", Obstacle.EXPIRED),
    ClusterUnreachable("Name or service not known", Obstacle.NO_SUCH_NAME),
]
MORE_FAULTS = [
    Forbidden("forbidden"),
    TooManyRequests("too many requests"),
    *(
        ClusterUnreachable(each.value, each)
        for each in Obstacle
        if each not in (Obstacle.NO_ANSWER, Obstacle.UNTRUSTED, Obstacle.EXPIRED, Obstacle.NO_SUCH_NAME)
    ),
]


async def _running(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(EVEN, 1)))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=12))
    await world.until_available("web", 12)
    await world.settle()


async def _ready(world: World, name: str) -> dict[str, Any]:
    cluster = await world.user.get(FEDERATED_CLUSTERS, name)
    return dict(conditions.find(cluster["status"]["conditions"], names.CLUSTER_READY) or {})


async def _taints(world: World, name: str) -> list[str]:
    cluster = await world.user.get(FEDERATED_CLUSTERS, name)
    taints = cluster["spec"].get("taints") or ()
    return [describe_taint(taint).removeprefix(names.TAINT_PREFIX) for taint in taints]


async def _refuse(world: World, fault: FederationError, *members: str) -> None:
    for name in members:
        line = world.members[name].line
        line.refusal = fault
        line.drop_watches(fault)
    await world.until_ready(*members, status="False")


async def _accept(world: World, *members: str) -> None:
    for name in members:
        world.members[name].line.refusal = None
    await world.until_ready(*members)


@pytest.mark.parametrize(
    "fault", [*FAULTS, *(pytest.param(each, marks=pytest.mark.nightly) for each in MORE_FAULTS)], ids=str
)
async def test_nothing_leaves_a_member_that_refuses_us(fault: FederationError) -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world)
        await _refuse(world, fault, "east")
        await world.settle()
        assert await _taints(world, "east") == ["not-ready:NoSchedule"]
        assert (await _ready(world, "east"))["reason"] not in ("HealthzNotOK", "ClusterNotReachable")
        await world.pass_time(900)
        assert await world.replicas("web") == EVEN
        await world.restart()
        await world.pass_time(300)
        assert await world.replicas("web") == EVEN
        await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 18}})
        await world.until_replicas("web", {"east": 4, "north": 7, "west": 7})
        await _accept(world, "east")
        await world.settle()
        assert await _taints(world, "east") == []
        assert await world.replicas("web") == {"east": 4, "north": 7, "west": 7}


@pytest.mark.parametrize("fault", [FAULTS[3], pytest.param(FAULTS[2], marks=pytest.mark.nightly)], ids=str)
@pytest.mark.parametrize("members", [("east", "north"), tuple(EVEN)], ids=["most", "all"])
async def test_nothing_leaves_when_most_members_refuse_us(fault: FederationError, members: tuple[str, ...]) -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world)
        await _refuse(world, fault, *members)
        await world.pass_time(900)
        assert await world.replicas("web") == EVEN
        await _accept(world, *members)


async def test_a_lost_member_whose_name_disappears_stays_lost() -> None:
    async with a_world(toleration_s=60) as world:
        await _running(world)
        await world.lose("east")
        await world.pass_time(20)
        line = world.members["east"].line
        line.mode, line.refusal = "up", FAULTS[3]
        await world.until_replicas("web", {"east": 4, "north": 6, "west": 6})
        assert (await _ready(world, "east"))["reason"] == "ClusterNotReachable"
        await world.restart()
        await world.pass_time(60)
        assert (await _ready(world, "east"))["reason"] == "ClusterNotReachable"
        await _accept(world, "east")


async def test_replicas_leave_a_member_that_is_lost_while_two_others_refuse_us() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world)
        await _refuse(world, FAULTS[0], "north")
        await world.lose("east")
        await world.until_replicas("web", {"east": 4, "north": 4, "west": 8})
        await world.bring_back("east")
        await _accept(world, "north")


async def test_a_member_that_refuses_us_and_then_falls_silent_is_lost() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world)
        await _refuse(world, FAULTS[0], "east")
        await world.pass_time(60)
        world.members["east"].line.refusal = None
        await world.lose("east")
        await world.until_replicas("web", {"east": 4, "north": 6, "west": 6})
        await world.bring_back("east")


async def test_a_member_that_returned_while_the_control_plane_was_down_gets_a_chance_to_answer() -> None:
    async with a_world(toleration_s=60) as world:
        await _running(world)
        await world.lose("east")
        await world.pass_time(20)
        await world.stop()
        await world.clock.pass_time(600)
        world.members["east"].line.mode = "hang"
        await world.restart()
        await world.pass_time(2)
        world.members["east"].line.mend()
        await world.until_ready("east")
        await world.pass_time(120)
        assert await world.replicas("web") == EVEN


@pytest.mark.parametrize("is_frozen", [False, True], ids=["restart", "suspended"])
async def test_a_toleration_counts_only_time_in_which_the_member_was_asked(is_frozen: bool) -> None:
    async with a_world(toleration_s=120) as world:
        await _running(world)
        await world.lose("east")
        await world.pass_time(40)
        if is_frozen:
            world.clock.skip(600)
        else:
            await world.stop()
            await world.clock.pass_time(600)
            await world.restart()
        await world.pass_time(50)
        assert await world.replicas("web") == EVEN, "it was silent for 90 s while it was asked"
        await world.until_replicas("web", {"east": 4, "north": 6, "west": 6})
        await world.bring_back("east")


async def test_a_member_that_an_earlier_version_counted_as_lost_for_a_fault_of_ours_keeps_its_replicas() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world)
        await world.stop()
        cluster = await world.user.get(FEDERATED_CLUSTERS, "east")
        at = to_rfc3339(world.clock.now())
        rejected = {"status": "False", "reason": "HealthzNotOK", "lastTransitionTime": at, "lastProbeTime": at}
        stated = [
            {**each, **rejected} if each["type"] == names.CLUSTER_READY else each
            for each in cluster["status"]["conditions"]
        ]
        await world.user.patch(FEDERATED_CLUSTERS, "east", {"status": {"conditions": stated}}, subresource="status")
        taints = [
            {"key": names.TAINT_NOT_READY, "effect": each, "timeAdded": at} for each in ("NoSchedule", "NoExecute")
        ]
        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": taints}})
        world.members["east"].line.refusal = FAULTS[0]
        await world.clock.pass_time(10)
        await world.restart()
        await world.pass_time(300)
        assert (await _ready(world, "east"))["reason"] == "CredentialsRejected"
        assert await _taints(world, "east") == ["not-ready:NoSchedule"]
        assert await world.replicas("web") == EVEN
        await _accept(world, "east")
        await world.pass_time(60)


async def test_a_rule_that_taints_unready_clusters_moves_nothing_for_a_fault_of_ours() -> None:
    async with a_world(toleration_s=0) as world:
        await _running(world)
        rule = {
            "apiVersion": CLUSTER_TAINT_POLICIES.api_version,
            "kind": CLUSTER_TAINT_POLICIES.kind,
            "metadata": {"name": "unready"},
            "spec": {
                "when": [{"conditions": [{"type": "Ready", "operator": "NotIn", "values": ["True"]}]}],
                "holdSeconds": 5,
                "clearSeconds": 5,
                "taints": [{"key": "sick", "effect": "NoExecute"}],
            },
        }
        await world.create(CLUSTER_TAINT_POLICIES, rule)
        await _refuse(world, FAULTS[0], "east")
        await world.pass_time(300)
        assert "sick:NoExecute" in await _taints(world, "east")
        assert await world.replicas("web") == EVEN
        cluster = await world.user.get(FEDERATED_CLUSTERS, "east")
        allowed = conditions.find(cluster["status"]["conditions"], names.EVICTION_ALLOWED) or {}
        assert (allowed.get("status"), allowed.get("reason")) == ("False", "NotLost")
        await _accept(world, "east")
        await world.pass_time(60)
