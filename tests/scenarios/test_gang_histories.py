"""Random gangs arrive, members die and come back: no gang starts in part, and none is lost."""

import random

import pytest
from tests.scenarios.test_gangs import NODES, SIZES, a_job, job_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import JOBS, PODS
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR

STEPS = 14
RUN_S = 8
GANGS = ((12, "4"), (6, "6"), (3, "12"), (20, "2"), (8, "6"), (16, "6"), (11, "4"))
"""Pods, and the cores of each: 36 to 96 cores together, of the members' 48, 72 and 96."""
FAILOVER = {"failover": {"mode": "Auto", "graceSeconds": 0}}


async def partial_starts(world: World) -> list[str]:
    """Return the pods that wait for a node in a member."""
    found = []
    for name, member in world.members.items():
        for pod in (await member.admin.list(PODS, namespace="default")).items:
            if not pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
                found.append(f"{name} {pod['metadata']['name']}")
    return found


async def finished(world: World) -> set[str]:
    jobs = (await world.user.list(JOBS, namespace="default")).items
    return {
        job["metadata"]["name"]
        for job in jobs
        for condition in (job.get("status") or {}).get("conditions") or ()
        if condition["type"] == "Complete" and condition["status"] == "True"
    }


@pytest.mark.parametrize("seed", [1, *[pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 6)]])
@pytest.mark.slow("minutes of a federation with deaths of its members")
async def test_no_gang_starts_in_part_and_none_is_lost(seed: int) -> None:
    choose = random.Random(seed)
    members = tuple(SIZES)
    async with a_world(members=members, nodes=NODES, seed=seed, toleration_s=5, guard_share=1) as world:
        await world.create(PROPAGATION_POLICIES, job_policy(**FAILOVER))
        created: list[str] = []
        down = ""
        for step in range(STEPS):
            event = choose.choice(("arrive", "arrive", "arrive", "die or return"))
            if event == "arrive":
                count, cpu = choose.choice(GANGS)
                job = a_job(f"job-{step}", pods=count, cpu=cpu)
                job["spec"]["template"]["metadata"]["annotations"][SIMULATOR_RUN_FOR] = f"{RUN_S}s"
                await world.create(JOBS, job)
                created.append(f"job-{step}")
            elif down:
                await world.bring_back(down)
                down = ""
            else:
                down = choose.choice(members)
                await world.lose(down)
            await world.pass_time(choose.choice((1.0, 4.0, 9.0)))
            assert await partial_starts(world) == [], f"after step {step}, {event}"
        if down:
            await world.bring_back(down)
        await world.until_equal(lambda: finished(world), set(created))
        assert await partial_starts(world) == []
