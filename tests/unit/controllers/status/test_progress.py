"""How often the progress of rollouts is written: of one, and of many at the same time. Virtual clock."""

import asyncio
from typing import Any

from tests.support.member_world import World, member_world

CROWD = 80


async def _report(world: World, ready: int, *names: str) -> None:
    """Have the member report that this many of the three replicas are ready."""
    status = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": ready, "availableReplicas": ready}
    for name in names:
        await world.members["m1"].report(name, **status)


async def _begin(world: World, *names: str) -> None:
    for name in names:
        await world.place(name, placement={"m1": 3})
    for name in names:
        await world.until_statuses({"m1": "OK"}, name)
    world.plane.line.calls.clear()


async def _ready(world: World, name: str) -> int:
    return int(((await world.source(name)).get("status") or {}).get("readyReplicas") or 0)


def _status_writes(world: World) -> int:
    return len(world.plane.line.writes("deployments"))


async def _seconds_until_ready(world: World, name: str, ready: int) -> float:
    began_s = world.clock.monotonic()

    async def look() -> bool:
        return await _ready(world, name) == ready

    await world.until(look, step_s=0.001)
    return world.clock.monotonic() - began_s


async def test_one_rollout_shows_its_progress_every_few_seconds_and_its_end_at_once() -> None:
    async with member_world(1) as world:
        await _begin(world, "web")
        await _report(world, 1, "web")
        assert await _seconds_until_ready(world, "web", 1) < 4.1
        await _report(world, 2, "web")
        assert await _seconds_until_ready(world, "web", 2) < 4.1
        assert _status_writes(world) == 2
        await _report(world, 3, "web")
        assert await _seconds_until_ready(world, "web", 3) < 0.11, "writes of an object are a tenth of a second apart"


async def test_a_lost_replica_of_a_rollout_is_shown_at_once() -> None:
    async with member_world(1) as world:
        await _begin(world, "web")
        await _report(world, 2, "web")
        await world.pass_time(5)
        await _report(world, 1, "web")
        assert await _seconds_until_ready(world, "web", 1) < 0.11


async def test_a_surplus_pod_that_is_removed_is_no_lost_replica() -> None:
    async with member_world(2) as world:
        await world.place("web", placement={"m1": 1, "m2": 2})
        await world.until_statuses({"m1": "OK", "m2": "OK"})
        for pods in (2, 1):
            world.plane.line.calls.clear()
            await world.members["m1"].report(replicas=pods, updatedReplicas=pods, readyReplicas=pods)
            await world.pass_time(5 if pods == 2 else 1)
        assert _status_writes(world) == 0, "the other cluster is not ready yet"


async def test_many_slow_rollouts_are_written_once_each_at_their_end() -> None:
    names = [f"web-{number}" for number in range(CROWD)]
    async with member_world(1) as world:
        await _begin(world, *names)
        for ready in (1, 2):
            await _report(world, ready, *names)
            await world.pass_time(5)
        assert _status_writes(world) == 0, "the budget of five writes a second makes each of 80 wait for 16 s"
        for name in names:
            await _report(world, 3, name)
            assert await _seconds_until_ready(world, name, 3) < 0.01
        assert _status_writes(world) == CROWD


async def test_many_rollouts_that_do_not_end_show_their_progress_all_the_same() -> None:
    names = [f"web-{number}" for number in range(CROWD)]
    async with member_world(1) as world:
        await _begin(world, *names)
        await _report(world, 2, *names)
        await world.pass_time(33)
        shown = await asyncio.gather(*(_ready(world, name) for name in names))
        assert shown == [2] * CROWD
        assert _status_writes(world) == CROWD


async def test_a_replica_that_is_lost_beside_many_rollouts_does_not_wait_for_them() -> None:
    names = [f"web-{number}" for number in range(CROWD)]
    async with member_world(1) as world:
        await _begin(world, "settled")
        await _report(world, 3, "settled")
        assert await _seconds_until_ready(world, "settled", 3) < 0.01
        await _begin(world, *names)
        await _report(world, 2, *names)
        for ready in (2, 3):
            await world.pass_time(1)
            await _report(world, ready, "settled")
            assert await _seconds_until_ready(world, "settled", ready) < 0.01


async def test_a_rollout_ends_at_once_although_a_cluster_of_it_does_not_answer() -> None:
    async with member_world(2) as world:
        world.members["m2"].line.mode = "down"
        await world.until_condition("m2", "Ready", "Unknown")
        await world.place("web", placement={"m1": 3, "m2": 1})

        async def is_reported() -> Any:
            return (await world.statuses("web")).get("m1") == "OK"

        await world.until(is_reported)
        await world.pass_time(20)  # The first seconds after a start wait for the caches of all clusters.
        await _report(world, 3, "web")
        assert await _seconds_until_ready(world, "web", 3) < 0.01
