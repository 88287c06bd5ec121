"""Random histories of pods that three instances of the WorkloadSpread service admit while everything fails.

`SPREAD_PODS=100000` creates that many pods in all, `SPREAD_SEED=17` begins with that history; a problem names its
history. `tests/support/spreadfaults.py` has the faults.
"""

import itertools
import os

import pytest
from tests.support.spreadfaults import History

PODS, FIRST = int(os.environ.get("SPREAD_PODS", "120")), int(os.environ.get("SPREAD_SEED", "0"))
PODS_OF_HISTORY = 300


@pytest.mark.slow("three services and more than a hundred pods through faults")
@pytest.mark.timeout(24 * 3600)
async def test_no_limit_is_exceeded_and_every_pod_is_matched_or_reported() -> None:
    created = unmatched = 0
    problems: list[str] = []
    for seed in itertools.count(FIRST):
        history = History(seed)
        await history.run(min(PODS_OF_HISTORY, PODS - created))
        problems += await history.problems()
        created += history.created
        unmatched += history.unmatched
        print(f"history {seed}: {created} pods, {unmatched} without a subset at first, {len(problems)} problems")
        if created >= PODS:
            break
    assert unmatched
    assert problems == []
