"""Random histories of everyday actions on real time scales: no empty volume, nothing kept is lost, no field is lost.

Each seed gives one history over host, members and the whole control plane on a virtual clock, drawn from
`datahistory/steps.py`: joins, leaves, renames, restores, projects, labels, taints, restarts, lost members, changes of policies, types and
versions. `datahistory/judge.py` says what must never be. At the end all faults end, what waits is approved, and the world must converge.

A failure prints the seed, the steps and how to run that seed alone. `HISTORIES=1000` runs as many, `HISTORY_SKIP=3,7` leaves steps out,
`HISTORY_SHRINK=1` looks for the fewest steps that fail.
"""

import gc
import os
import random
from collections.abc import Iterator, Sequence

import pytest
from tests.support.datahistory.apps import APPS
from tests.support.datahistory.endings import endings
from tests.support.datahistory.judge import Judge
from tests.support.datahistory.repair import repair
from tests.support.datahistory.steps import MOVES_NOTHING, WAITS_S, Steps
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.errors import ApiError

HISTORIES = int(os.environ.get("HISTORIES", "0"))
FIRST = int(os.environ.get("HISTORY_FIRST", "1"))
SEED = os.environ.get("HISTORY_SEED", "")
_LATE_S = 900
_COLLECTION = (100_000, 20, 10)
_QUICK = (7, 13, 19, 210, 510, 10015)
"""The seeds of `make test`: in each, kept objects, volumes, fields or pods were harmed before there were rules about it.

In 10015 a held move was decided again without a pause, for ever.
"""
SKIP = frozenset(int(text) for text in os.environ.get("HISTORY_SKIP", "").split(",") if text)
SHRINK = bool(os.environ.get("HISTORY_SHRINK"))
STEPS = 12
LABELS = {"east": {"team": "shop"}, "north": {"team": "shop"}, "west": {}}


def _seeds() -> Sequence[int]:
    if SEED:
        return [int(SEED)]
    return range(FIRST, FIRST + HISTORIES) if HISTORIES else _QUICK


async def _live(seed: int, skip: frozenset[int]) -> tuple[list[str], list[str]]:
    """Live through one history without some of its steps; return the findings and the trace."""
    async with a_world(seed=seed, labels=LABELS, is_judged=False) as world:
        judge = Judge(world)
        steps = Steps(world, judge)
        trace: list[str] = []
        await _begin(steps, seed, trace)
        choices = steps.all()
        weights = [weight for weight, _ in choices.values()]
        drawn = random.Random(seed).choices(list(choices), weights, k=STEPS)
        for number, name in enumerate(drawn, 1):
            if number not in skip:
                await _step(steps, seed, number, name, trace)
                if judge.findings:
                    break
        if not judge.findings:
            trace += [f"{world.clock.monotonic():.1f} all faults end", *await repair(steps)]
            judge.findings += await _unsettled(world, judge) and await _still_unsettled(steps)
        return judge.findings, trace


async def _begin(steps: Steps, seed: int, trace: list[str]) -> None:
    steps.random = random.Random(f"{seed}/0")
    chosen = [steps.random.choice(("db", "disk")), *steps.random.sample(sorted(APPS), 2)]
    for name in dict.fromkeys(chosen):
        trace.append(await steps.create_app(APPS[name]))
        trace.append(f"  {(await steps.world.user.get(PROPAGATION_POLICIES, name, 'default'))['spec']}")
    await steps.world.pass_time(12)
    steps.judge.check()


async def _step(steps: Steps, seed: int, number: int, name: str, trace: list[str]) -> None:
    world, judge = steps.world, steps.judge
    steps.random = random.Random(f"{seed}/{number}")
    try:
        did = await steps.all()[name][1]()
    except ApiError as refusal:
        did = f"{name} was refused: {refusal}"
    trace.append(f"{world.clock.monotonic():.1f} [{number}] {did}")
    if name not in MOVES_NOTHING and any(member.line.faults.is_active for member in world.members.values()):
        judge.is_moved_by_others = True
    wait_s = steps.random.choice(WAITS_S)
    await world.pass_time(wait_s)
    judge.check()
    judge.check_sums(wait_s)


async def _unsettled(world: World, judge: Judge) -> list[str]:
    """Return what does not converge."""
    try:
        await world.settle()
    except AssertionError as error:
        return [f"end: {error}"]
    return endings(world, judge)


async def _still_unsettled(steps: Steps) -> list[str]:
    """Return what does not converge with more time than anything may take: replicas return for minutes."""
    await steps.world.pass_time(_LATE_S)
    await steps.approve()
    await steps.world.pass_time(60)
    return await _unsettled(steps.world, steps.judge)


async def _shrunk(seed: int, skip: frozenset[int]) -> frozenset[int]:
    for number in range(1, STEPS + 1):
        if number not in skip and (await _live(seed, skip | {number}))[0]:
            skip |= {number}
    return skip


@pytest.fixture(scope="module", autouse=True)
def _few_collections() -> Iterator[None]:
    """Let the collector of cyclic garbage run less often: a world has many objects that live as long as it does."""
    before = gc.get_threshold()
    gc.set_threshold(*_COLLECTION)
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("seed", _seeds())
async def test_everyday_actions_do_no_harm(seed: int) -> None:
    findings, trace = await _live(seed, SKIP)
    skip = SKIP
    if findings and SHRINK:
        skip = await _shrunk(seed, SKIP)
        findings, trace = await _live(seed, skip)
    left_out = f" HISTORY_SKIP={','.join(map(str, sorted(skip)))}" if skip else ""
    command = f"repeat: HISTORY_SEED={seed}{left_out} python -m pytest tests/faults/test_data_histories.py"
    assert not findings, "\n".join([*findings, command, *trace])
