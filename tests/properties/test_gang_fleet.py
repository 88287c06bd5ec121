"""Gangs on members that die: none starts in part, none is lost, and the largest do not starve.

The fleet, its gangs and the policies that are compared are in `tests/support/gangfleet.py`.
"""

from random import Random

import pytest
from tests.support.gangfleet import ByQueue, FirstCome, MultiKueue, Outcome, simulate

LONGEST = 2.0
"""A gang may wait so many times as long as the longest wait under first come first served."""


def compare(seed: int, gangs: int, members: int) -> tuple[Outcome, Outcome]:
    """Return the outcome of the queue and that of MultiKueue's rules, after the checks that hold for every seed."""
    queue = simulate(ByQueue(members), seed, gangs, members)
    kueue = simulate(MultiKueue(members, Random(seed)), seed, gangs, members)
    first = simulate(FirstCome(), seed, gangs, members)

    assert (queue.partial, queue.lost) == (0, 0)
    assert len(queue.waits) == gangs
    assert max(queue.waits) <= LONGEST * max(first.waits)
    assert sum(queue.waits) < sum(first.waits)
    return queue, kueue


@pytest.mark.parametrize("packs", [True, False], ids=["fullest cluster first", "freest cluster first"])
def test_no_gang_starts_in_part_or_is_lost_when_members_die(packs: bool) -> None:
    found = simulate(ByQueue(5, packs=packs), seed=3, gangs=150, members=5)

    assert found.restarts > 0, "a member with gangs died"
    assert (found.partial, found.lost, len(found.waits)) == (0, 0, 150)


def test_gangs_wait_no_longer_than_under_the_rules_of_multikueue() -> None:
    pairs = [compare(seed, 400, 12) for seed in range(2)]

    ours = sorted(wait for queue, _ in pairs for wait in queue.waits)
    theirs = sorted(wait for _, kueue in pairs for wait in kueue.waits)
    assert sum(ours) <= sum(theirs)
    assert ours[len(ours) * 95 // 100] <= theirs[len(theirs) * 95 // 100]


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(20))
def test_five_thousand_gangs_on_twenty_members_that_die(part: int) -> None:
    pairs = [compare(seed, 5_000, 20) for seed in range(part * 10, part * 10 + 10)]

    # The mean over gangs can be lower under MultiKueue's rules while much waits: small gangs pass large ones for hours.
    queue, kueue = zip(*pairs, strict=True)
    assert sum(each.by_core for each in queue) <= sum(each.by_core for each in kueue)
    assert sum(p95(each) for each in queue) <= sum(p95(each) for each in kueue)
    used = sum(each.used * each.saturated_s for each in queue) / sum(each.saturated_s for each in queue)
    assert used >= 0.95


def p95(outcome: Outcome) -> float:
    """Return the wait that 95 of 100 gangs stay below."""
    return sorted(outcome.waits)[len(outcome.waits) * 95 // 100]
