"""Members with 30 % injected errors and 2 s latency: 100 Deployments converge, and the members get few requests.

The minimal number of requests is one per Deployment and member. Probes and watches are not counted: they do not depend
on the number of objects. `FAULT_DEPLOYMENTS=500` creates as many, which takes a minute.
"""

import os

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_base, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

COUNT = int(os.environ.get("FAULT_DEPLOYMENTS", "100"))
MEMBERS = ("east", "west")
MINIMUM = COUNT * len(MEMBERS)
UNCOUNTED = frozenset({"raw", "watch"})
CONVERGES_IN_S = 1800.0


def _requests(world: World) -> int:
    return sum(verb not in UNCOUNTED for member in world.members.values() for verb, *_ in member.line.calls)


async def _are_delivered(world: World) -> bool:
    for member in world.members.values():
        if len((await member.admin.list(DEPLOYMENTS, "default")).items) < COUNT:
            return False
    return True


@pytest.mark.slow("a hundred Deployments through retries")
async def test_deployments_need_at_most_three_times_the_minimal_number_of_requests() -> None:
    async with a_world(members=MEMBERS, base=await a_base(*MEMBERS), has_workloads=False, has_reports=True) as world:
        await world.create(PROPAGATION_POLICIES, a_policy(dict.fromkeys(MEMBERS, 1)))
        for member in world.members.values():
            member.line.calls.clear()
            member.line.delays_s = dict.fromkeys(("get", "list", "create", "patch", "delete", "watch", "raw"), 2.0)
            member.line.faults.begin(0.3, "409", "410", "429", "5xx", "reset")
        for number in range(COUNT):
            await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=2))
        started_s = world.clock.monotonic()
        while not await _are_delivered(world):
            await world.pass_time(5)
            assert world.clock.monotonic() - started_s < CONVERGES_IN_S
        await world.settle()
        injected = sum(member.line.faults.injected for member in world.members.values())
        assert injected > 0.2 * MINIMUM  # the faults are there
        assert _requests(world) <= 3 * MINIMUM, f"{_requests(world)} requests, {injected} errors"
        for member in world.members.values():
            member.line.heal()
        await world.until_ready(*MEMBERS)
