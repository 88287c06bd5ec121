"""Subsets with claims of a UnitedDeployment of the host: replicas with data move to no other subset without a word."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.scenarios.test_united_deployments_across_clusters import (
    ADAPTIVE,
    V1ALPHA1,
    a_subset,
    a_united,
    running,
    scale,
    start,
    subset_of,
)
from tests.scenarios.test_volumes import by_drain, by_taint, cluster, holds, names_of_claims, project
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Object

CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
MEMBERS = ("east", "north")
Act = Callable[[World], Awaitable[None]]


def _united(*subsets: Object, replicas: int, **topology: Any) -> Object:
    united = a_united(*subsets, replicas=replicas, kind="statefulSetTemplate", **topology)
    spec = united["spec"]["template"]["statefulSetTemplate"]["spec"]
    spec |= {"volumeClaimTemplates": [CLAIM], "podManagementPolicy": "Parallel"}
    return united


async def _begin(world: World, replicas: int = 2) -> dict[str, list[str]]:
    """Run all replicas in east; return the claims."""
    subsets = a_subset("first", "east"), a_subset("second", "north")
    await start(world, _united(*subsets, replicas=replicas, scheduleStrategy=ADAPTIVE))
    await world.settle()
    assert await running(world) == {("east", "first"): replicas}
    return await names_of_claims(world)


async def _sets(world: World) -> dict[str, int]:
    return {subset_of(each): each["spec"]["replicas"] for each in (await world.user.list(STATEFUL_SETS)).items}


async def _close(world: World) -> None:
    """Close the nodes of east."""
    east = world.members["east"].admin
    for node in (await east.list(NODES)).items:
        await east.patch(NODES, node["metadata"]["name"], {"spec": {"unschedulable": True}})


async def by_pods_that_lost_their_node(world: World) -> None:
    await _close(world)
    east = world.members["east"].admin
    for pod in (await east.list(PODS, "default")).items:
        await east.delete(PODS, pod["metadata"]["name"], "default")


async def by_pods_that_lost_their_node_while_another_grows(world: World) -> None:
    """Close the nodes, add a replica that has no data, and let those with data lose their nodes."""
    await _close(world)
    await scale(world, 3)
    await by_pods_that_lost_their_node(world)


async def by_project(world: World) -> None:
    await project(world, names=["north"])


async def by_unjoin(world: World) -> None:
    await world.user.delete(FEDERATED_CLUSTERS, "east")
    await world.until_gone(FEDERATED_CLUSTERS, "east", "")


async def by_loss(world: World) -> None:
    await world.lose("east")
    await world.pass_time(900)


async def by_policy(world: World) -> None:
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "north"}]}})


async def by_cordon_and_drain(world: World) -> None:
    await cluster(world, "east", spec={"unschedulable": True})
    await by_drain(world)


WAYS: list[Act] = [
    by_pods_that_lost_their_node,
    by_pods_that_lost_their_node_while_another_grows,
    by_project,
    by_policy,
    by_taint,
    by_cordon_and_drain,
    by_unjoin,
    by_loss,
]


@pytest.mark.parametrize("way", WAYS, ids=[each.__name__ for each in WAYS])
async def test_replicas_with_data_move_to_no_other_subset_without_a_word(way: Act) -> None:
    async with a_world(members=MEMBERS, toleration_s=5, is_judged=False) as world:
        before = await _begin(world)
        await way(world)
        await world.pass_time(120)
        await world.restart()
        await world.pass_time(400)
        found = await names_of_claims(world)
        grown = way is by_pods_that_lost_their_node_while_another_grows
        assert len(found.pop("north", [])) == (1 if grown else 0), "it started on an empty volume"
        assert set(found["east"]) >= set(before["east"])
        assert await _sets(world) == {"first": 2, "second": 1 if grown else 0}


async def test_a_new_replica_without_data_moves_as_before() -> None:
    async with a_world(members=MEMBERS) as world:
        await _begin(world)
        await _close(world)
        await scale(world, 4)
        await world.until_equal(lambda: running(world), {("east", "first"): 2, ("north", "second"): 2})
        assert await holds(world) == {}


async def test_the_word_of_a_user_who_changes_the_subsets_moves_replicas() -> None:
    async with a_world(members=MEMBERS) as world:
        await _begin(world)
        subsets = [a_subset("first", "east", maxReplicas=0), a_subset("second", "north")]
        await world.merge(V1ALPHA1, "sample", {"spec": {"topology": {"subsets": subsets}}})
        await world.until_equal(lambda: running(world), {("north", "second"): 2})


async def test_a_replica_moves_once_its_claim_is_deleted() -> None:
    async with a_world(members=MEMBERS) as world:
        ((claim,),) = (await _begin(world, replicas=1)).values()
        await by_pods_that_lost_their_node(world)
        await world.pass_time(60)
        assert await _sets(world) == {"first": 1, "second": 0}
        await world.members["east"].admin.delete(PERSISTENT_VOLUME_CLAIMS, claim, "default")
        await world.until_equal(lambda: running(world), {("north", "second"): 1})
