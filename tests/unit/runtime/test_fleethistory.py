"""The history of the fleet: values last until they change, counters begin anew, and memory has a fixed size."""

import math
from datetime import timedelta

import pytest

from federation.apimachinery.clock import ManualClock
from federation.runtime.fleethistory import (
    BYTES_MAX,
    INCIDENTS_MAX,
    Counter,
    FleetHistory,
    Gauge,
    Happening,
    HistoryOptions,
)

SMALL = HistoryOptions(slot_s=10.0, slots=6)
MINUTE = timedelta(minutes=1)


def read(history: FleetHistory, name: str, points: int = 6) -> list[float | None]:
    return [None if math.isnan(value) else value for value in history.read(MINUTE, points).series[name]]


async def test_a_gauge_keeps_its_value_until_the_next_one() -> None:
    clock = ManualClock()
    history = FleetHistory(clock, SMALL)
    history.set(Gauge.CLUSTERS, 3)
    await clock.advance(30)
    history.set(Gauge.CLUSTERS, 5)
    await clock.advance(10)
    assert read(history, "clusters") == [None, 3, 3, 3, 5, 5]
    await clock.advance(600)
    assert read(history, "clusters") == [5] * 6, "an idle fleet has a line, too"


async def test_a_counter_begins_anew_in_each_slot() -> None:
    clock = ManualClock()
    history = FleetHistory(clock, SMALL)
    history.count(Counter.MOVES)
    history.count(Counter.MOVES)
    await clock.advance(20)
    history.count(Counter.MOVES)
    await clock.advance(30)
    assert read(history, "moves") == [2, 0, 1, 0, 0, 0]
    assert read(history, "moves", points=3) == [2, 1, 0]
    await clock.advance(300)
    assert read(history, "moves") == [0] * 6


async def test_a_cluster_that_was_lost_for_a_moment_shows_in_a_coarse_line() -> None:
    clock = ManualClock()
    history = FleetHistory(clock, SMALL)
    history.set(Gauge.CLUSTERS_READY, 4)
    await clock.advance(30)
    history.set(Gauge.CLUSTERS_READY, 3)
    await clock.advance(10)
    history.set(Gauge.CLUSTERS_READY, 4)
    await clock.advance(10)
    assert read(history, "clustersReady", points=2) == [4, 3]
    assert read(history, "clusters", points=1) == [0]


@pytest.mark.parametrize(("points", "steps", "step_s"), [(1, 1, 60.0), (2, 2, 30.0), (4, 3, 20.0), (500, 6, 10.0)])
async def test_an_excerpt_has_no_more_points_than_asked(points: int, steps: int, step_s: float) -> None:
    found = FleetHistory(ManualClock(), SMALL).read(timedelta(hours=9), points)
    assert {len(values) for values in found.series.values()} == {steps}
    assert found.step_s == step_s


def size_bytes(history: FleetHistory) -> int:
    """Return the memory of all series."""
    return sum(ring.itemsize * len(ring) for ring in history._rings.values())


async def test_the_memory_has_a_bound_whatever_happens() -> None:
    clock = ManualClock()
    history = FleetHistory(clock)
    before = size_bytes(history)
    assert before + INCIDENTS_MAX * 1000 <= BYTES_MAX
    for number in range(2 * INCIDENTS_MAX):
        history.tell(f"member-{number}", Happening.LOST, "x" * 100_000)
        history.set(Gauge.CLUSTERS, number)
        await clock.advance(60)
    assert size_bytes(history) == before
    found = list(history.incidents(clock.now() - timedelta(days=9)))
    assert len(found) == INCIDENTS_MAX
    assert found[0].cluster == f"member-{2 * INCIDENTS_MAX - 1}", "the newest first"
    assert max(len(incident.text) for incident in found) == 200


async def test_a_jump_of_the_clock_costs_no_more_than_the_ring() -> None:
    clock = ManualClock()
    history = FleetHistory(clock, SMALL)
    history.set(Gauge.CLUSTERS, 2)
    clock.skip(10.0**9)
    assert read(history, "clusters") == [2] * 6
    assert history.age_s == 60.0
