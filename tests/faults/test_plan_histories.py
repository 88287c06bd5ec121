"""What a plan promises is what happens: random histories, each change planned before it is made.

Each seed is one history of policies, quotas, freezes, suspensions, budgets, projects, groups of clusters, waves, taints, drains and lost
clusters over a host, members and the whole control plane on a virtual clock. After each change has settled, the replicas and images in
the members, what waits, what is refused and what the quota is charged must be what the plan said.

`PLAN_HISTORIES=1000` runs as many, from `PLAN_HISTORY_FIRST`.
"""

import os
import random
from collections.abc import Sequence

import pytest
from tests.support.planhistory.changes import Changes
from tests.support.planhistory.promise import Promise
from tests.support.replays import differences
from tests.support.world import a_world_without_pods

from federation.admission.deviceselectors import selects
from federation.scheduling.framework.registry import load_plugins

HISTORIES = int(os.environ.get("PLAN_HISTORIES", "0"))
FIRST = int(os.environ.get("PLAN_HISTORY_FIRST", "1"))
_QUICK = (1, 9, 11, 32, 34, 45, 65, 78)
"""In 1, replicas waited for others that a suspension held; in 9, a quota was deleted, which the plan did not see. In 11, a
suspension ended, in 32 replicas return to a drained cluster, in 34 a workload leaves others room in a quota, and in 45
a tenant's suspended policy kept a drained cluster from being emptied. In 65 and 78, a freeze holds moves and updates of
workloads that are scaled."""
STEPS = 10
LABELS = {"east": {"team": "shop"}, "north": {"team": "shop"}, "west": {}}


def _seeds() -> Sequence[int]:
    return range(FIRST, FIRST + HISTORIES) if HISTORIES else _QUICK


@pytest.mark.parametrize("seed", _seeds())
async def test_what_a_plan_promises_is_what_happens(seed: int) -> None:
    trace: list[str] = []
    async with a_world_without_pods(seed=seed, labels=LABELS, guard_share=1.0, is_judged=False) as world:
        chance = random.Random(seed)
        choices = Changes(world, chance).all()
        weights = [weight for weight, _ in choices.values()]
        for kind in ("policy", "write", "write", *chance.choices(list(choices), weights, k=STEPS)):
            change = await choices[kind][1]()
            if change is None:
                continue
            trace.append(change.text)
            findings = await Promise(world).check(change)
            command = f"repeat: PLAN_HISTORIES=1 PLAN_HISTORY_FIRST={seed} python -m pytest {__file__}"
            assert not findings, "\n".join([*findings, command, *trace])
        assert not await differences(world.journal, load_plugins(selects=selects)), "\n".join(trace)
