"""The clock of one of several control planes is wrong for a while: what it wrote must not keep the next one waiting.

A control plane that leads stamps conditions, taints and records. The next one, with the right clock, counts from these
stamps: a stamp of next year would stop failover, returns and completions until then.
"""

from datetime import timedelta

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

YEAR_S = timedelta(days=365).total_seconds()
EVEN = {"east": 3, "north": 3, "west": 3}


async def _lead(world: World, offset_s: float) -> None:
    """Let another process lead, whose clock is off by this."""
    await world.stop()
    world.plane_clock.offset_s = offset_s
    await world.restart()


@pytest.mark.parametrize("offset_s", [600.0, -600.0, YEAR_S, -YEAR_S], ids=["+10 min", "-10 min", "+1 year", "-1 year"])
async def test_failover_and_return_take_their_time_whatever_clock_the_leader_before_had(offset_s: float) -> None:
    async with a_world_without_pods(toleration_s=60) as world:
        await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(EVEN, 1)))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=9))
        await world.until_available("web", 9)
        await _lead(world, offset_s)
        await world.pass_time(30)
        await world.lose("north")
        await _lead(world, 0)
        await world.until(lambda: _runs(world, {"east": 5, "north": 3, "west": 4}), "the failover")
        await _lead(world, offset_s)
        await world.bring_back("north")
        await world.pass_time(30)
        await _lead(world, 0)
        for _ in range(5):  # stable for five minutes, then in batches
            await world.pass_time(150)
        await world.until(lambda: _runs(world, EVEN), "the return")
        await world.until_available("web", 9)


@pytest.mark.parametrize("offset_s", [YEAR_S, -YEAR_S], ids=["+1 year", "-1 year"])
async def test_a_join_is_not_given_up_when_a_wrong_clock_is_corrected(offset_s: float) -> None:
    async with a_world_without_pods() as world:
        await world.unjoin_by_force("north")
        await world.until_gone(FEDERATED_CLUSTERS, "north")
        world.members["north"].line.mode = "down"
        world.plane_clock.offset_s = offset_s
        await world.join("north")
        await world.pass_time(60)
        world.plane_clock.offset_s = 0.0
        await world.pass_time(60)
        world.members["north"].line.heal()
        await world.until_ready("north")


async def _runs(world: World, expected: dict[str, int]) -> bool:
    found = await world.replicas("web")
    return sorted(found.values()) == sorted(expected.values())
