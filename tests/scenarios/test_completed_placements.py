"""What is placed while clusters are not healthy is completed when they are stable."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world, a_world_without_pods

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

EVEN = {"east": 3, "north": 3, "west": 3}


async def _annotation(world: World, name: str) -> str:
    return str((await world.federated("web"))["metadata"]["annotations"].get(name) or "")


async def test_a_new_workload_is_divided_over_all_clusters_once_those_that_were_lost_are_stable() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.lose("north", "west")
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.until_available("web", 9)
        assert await _annotation(world, names.PLACED_WITHOUT) == "north,west"
        told = "placed without north, west, not healthy; completed when stable"
        assert told in await _annotation(world, names.SCHEDULING_SUMMARY)
        await world.bring_back("north")
        await world.pass_time(200)
        await world.bring_back("west")
        await world.restart()
        await world.pass_time(200)  # north is stable, and waits for west, which came back with it
        assert (await world.replicas("web"))["east"] == 9
        await world.until_replicas("web", EVEN)
        assert await _annotation(world, names.PLACED_WITHOUT) == ""
        await world.until_available("web", 9)


async def test_a_cluster_that_stays_away_keeps_the_others_not_waiting() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.lose("north", "west")
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.until_available("web", 9)
        await world.bring_back("north")
        await world.pass_time(290)
        await world.until_equal(lambda: _annotation(world, names.PLACED_WITHOUT), "west")
        await world.until_replicas("web", {"east": 4, "north": 5})
        await world.bring_back("west")
        await world.pass_time(300)
        await world.until_replicas("web", EVEN)


async def test_an_outage_of_many_workloads_is_completed_at_the_pace_of_failover_also_after_a_restart() -> None:
    apps = [f"app-{number}" for number in range(6)]

    async def completed(world: World) -> int:
        return sum([await world.replicas(app) == EVEN for app in apps])

    async with a_world_without_pods(replicas_per_minute=24) as world:  # 12 of a namespace: two of these workloads
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.lose("north", "west")
        for app in apps:
            await world.create(DEPLOYMENTS, a_deployment(app, replicas=9))
        await world.until_available(apps[-1], 9)
        await world.bring_back("north", "west")
        await world.pass_time(290)
        assert await completed(world) == 0
        await world.until_equal(lambda: completed(world), 2)
        await world.pass_time(50)
        assert await completed(world) == 2
        await world.restart()
        await world.pass_time(5)
        assert await completed(world) == 2
        await world.until_equal(lambda: completed(world), 4)
        await world.pass_time(50)
        assert await completed(world) == 4
        await world.until_equal(lambda: completed(world), 6)
