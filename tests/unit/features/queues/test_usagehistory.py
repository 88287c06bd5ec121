"""The course of queues: values that last, gaps, and a bounded size."""

import asyncio

from federation.apimachinery.clock import ManualClock
from federation.features.queues.screens import to_course
from federation.features.queues.usagehistory import QUEUES_MAX, SLOT_S, SLOTS, QueueHistory, used_part


async def advance(clock: ManualClock, slots: int) -> None:
    await clock.advance(slots * SLOT_S)


def test_a_value_lasts_until_the_next_one_and_nothing_is_known_from_before() -> None:
    clock = ManualClock()
    history = QueueHistory(clock)
    history.record("ml", 0.5, 3)
    asyncio.run(advance(clock, 2))
    history.record("ml", 1.5, 0)
    asyncio.run(advance(clock, 1))

    found = history.read()["ml"]
    assert [len(values) for values in found.values()] == [SLOTS, SLOTS]
    assert found["used"][-5:] == [None, 0.5, 0.5, 1.5, 1.5]
    assert found["pending"][-4:] == [3, 3, 0, 0]

    asyncio.run(advance(clock, 3 * SLOTS))
    assert history.read()["ml"]["used"] == [1.5] * SLOTS


def test_queues_that_are_gone_are_forgotten_and_their_number_has_a_bound() -> None:
    history = QueueHistory(ManualClock())
    for number in range(QUEUES_MAX + 1):
        history.record(f"q{number}", 0.0, 0)
    assert len(history.read()) == QUEUES_MAX
    history.forget("q0")
    history.forget("unknown")
    history.record("new", 0.0, 0)
    assert "new" in history.read()
    assert "q0" not in history.read()


def test_the_largest_part_of_the_quota_counts() -> None:
    lines = [
        {"nominalQuota": "10", "used": "5"},
        {"nominalQuota": "2", "used": "3"},
        {"nominalQuota": "0", "used": "1"},
    ]
    assert used_part({"status": {"usage": lines}}) == 1.5
    assert used_part({}) == 0.0


def test_a_course_is_drawn_below_a_full_quota_and_described() -> None:
    course = to_course({"used": [None, 0.5, 1.25]})
    assert course["words"] == "used in the last 6 h: now 125 %, from 50 to 125 %"
    assert course["line"].line
    assert to_course(None) == to_course({"used": [None]}) == {"line": None, "words": ""}
