"""A twin places as the fleet that it copies, and a script shows what faults would do."""

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.support.datahistory.apps import definition as a_definition
from tests.support.manifests import a_deployment, a_policy
from tests.support.twins import a_workload, arrivals, place, placements, policies
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CRDS, DEPLOYMENTS, PODS
from federation.settings import Settings
from federation.simulator.options import NodeShape
from federation.twin.fleetcopy import from_host
from federation.twin.script import parse_script
from federation.twin.steps import Rehearsal, numbers_of
from federation.twin.twin import Twin, resources_of

NODES = {
    "east": [
        NodeShape(f"e{n}", cpu=str(96 + 32 * (n % 3)), memory="384Gi", pods=500, labels={"disk": "ssd"})
        for n in range(6)
    ],
    "north": [NodeShape(f"n{n}", cpu="192", memory="768Gi", pods=500) for n in range(8)],
    "west": [NodeShape(f"w{n}", cpu=str(64 + 8 * n), memory="256Gi", pods=200) for n in range(5)],
}
LABELS = {"east": {"region": "eu"}, "north": {"region": "eu"}, "west": {"region": "us"}}


async def a_busy_fleet(world: World, workloads: int) -> None:
    """Let the members run pods of their own, and the fleet workloads of all policies."""
    rng = random.Random(7)
    for member in world.members.values():
        for shape in NODES[member.name]:
            requests = {"cpu": f"{rng.randrange(100, 48_000)}m", "memory": f"{rng.randrange(100, 64_000)}Mi"}
            container = {"name": "main", "image": "own", "resources": {"requests": requests}}
            pod = {
                "metadata": {"name": f"own-{shape.name}", "namespace": "default"},
                "spec": {"containers": [container]},
            }
            pod["spec"]["nodeName"] = shape.name
            await member.admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod})
    for policy in policies(list(NODES)):
        await world.create(PROPAGATION_POLICIES, policy)
    for number in range(workloads):
        await world.create(DEPLOYMENTS, a_workload(f"before-{number}", rng))
    await world.settle()


async def a_twin_of(world: World) -> Twin:
    fleet = await from_host(world.user, world.clock.now(), ())
    twin = Twin(fleet, Settings(Path("unused")))
    await twin.begin()
    return twin


@pytest.mark.parametrize(
    "count",
    [
        40,
        pytest.param(1_000, marks=pytest.mark.nightly),
    ],
)
@pytest.mark.slow("a fleet and its twin run at the same time")
async def test_the_twin_places_as_the_fleet(count: int) -> None:
    """At least 99 % of the arrivals get the same clusters with the same replicas.

    Arrivals come more slowly than clusters report. At one in 0.7 s, two of 150 differ by a replica: those that are
    divided by free room, of which the twin has heard a moment earlier or later.
    """
    every_s = 6.0
    async with a_world(members=list(NODES), nodes=NODES, labels=LABELS, is_replayed=False) as world:
        await a_busy_fleet(world, 12)
        twin = await a_twin_of(world)
        try:
            reported = resources_of(await from_host(world.user, world.clock.now(), ()))
            for name, member in twin.members.items():
                found = await member.resources()
                assert found["allocatable"] == reported[name]["allocatable"]
                assert found["available"] == reported[name]["available"]
            before = await placements(world.user)
            assert await placements(twin.user) == before
            arriving = arrivals(count, 3, every_s)
            expected = await place(world.user, world.pass_time, arriving, every_s)
            found = await place(twin.user, twin.pass_time, arriving, every_s)
            different = Counter(here[0] for here, there in zip(expected, found, strict=True) if here != there)
            print(f"{1 - different.total() / count:.2%} of {count} arrivals are placed equally; others: {different}")
            assert different.total() <= count * 0.01
        finally:
            await twin.end()


@pytest.mark.slow("a fleet and its twin run at the same time")
async def test_a_script_shows_what_faults_do_and_the_fleet_does_not_notice() -> None:
    async with a_world(members=list(NODES), nodes=NODES, labels=LABELS) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.until_available("web", 9)
        await world.settle()
        revisions = await world.revisions()
        twin = await a_twin_of(world)
        script = parse_script(
            {
                "end": "20m",
                "steps": [
                    {"at": "1m", "fault": "regionDies", "region": "us"},
                    {"at": "12m", "fault": "nodesLost", "cluster": "east", "nodes": 6},
                    {"at": "13m", "cordon": "north"},
                    {"at": "14m", "scale": {"kind": "Deployment", "name": "absent", "replicas": 1}},
                ],
                "expect": [
                    {"at": "2m", "unreachableReplicas": 3},
                    {"at": "11m", "unplacedReplicas": 0, "waitingReplicas": 0, "movedReplicas": 3},
                    {"movedReplicas": 2, "waitingReplicas": 0},
                ],
            },
            Path(),
        )
        try:
            rehearsal = Rehearsal(twin, script)
            await rehearsal.run()
        finally:
            await twin.end()
        assert [each.holds for each in rehearsal.seen] == [True, True, True, True, False, False]
        assert [bool(each.problem) for each in rehearsal.happened] == [False, False, False, True]
        first = twin.observation.moves[0]
        assert (first.identity[3], first.left, first.before["west"], "west" in first.after) == ("web", 3, 3, False)
        assert "toleration" in first.cause
        assert 15 <= numbers_of(twin)["unreachableReplicaMinutes"] <= 30
        assert await world.revisions() == revisions
        assert await world.find(FEDERATED_CLUSTERS, "west") is not None


async def test_members_of_a_twin_have_the_definitions_that_the_fleet_serves() -> None:
    definition = a_definition(has_new=False, serves_old=True)
    async with a_world(members=("east", "west")) as world:
        await world.user.create(CRDS, definition)
        await world.members["east"].admin.create(CRDS, definition)
        await world.pass_time(60)
        twin = await a_twin_of(world)
        try:
            served = {name: (await member.admin.list(CRDS)).items for name, member in twin.members.items()}
            names_ = {name: {each["metadata"]["name"] for each in listed} for name, listed in served.items()}
            assert names_["east"] - names_["west"] == {definition["metadata"]["name"]}
        finally:
            await twin.end()
