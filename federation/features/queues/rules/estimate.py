"""When waiting jobs may start: a forecast from what runs, what waits before them, and how long jobs took. Pure.

What is used is released when running jobs are expected to end, and the jobs of a queue take it in their order. A job
ends at its limit or after the mean time of its queue's jobs, whichever comes first. Without either nothing is forecast.
The cost is linear in the number of jobs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_HORIZON_S = 90 * 24 * 3600.0
"""Later starts are not forecast."""


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs: when it started, its limit, and its part of the capacity."""

    started_s: float
    limit_s: float | None
    part: float
    has_end: bool = True
    """Whether anything is known of its end."""


def expected_end(started_s: float, limit_s: float | None, mean_s: float | None, now: float) -> float | None:
    """Return when a job that runs is expected to end, None if that is not known.

    One that is late is expected to run for a tenth of its time more.
    """
    lengths = [length for length in (limit_s, mean_s) if length is not None]
    if not lengths:
        return None
    length = min(lengths)
    end = started_s + length
    return end if end > now else now + (now - started_s) / 10


def estimate_starts(
    running: Iterable[Running], waiting: Sequence[float], mean_s: float | None, now: float
) -> list[float | None]:
    """Return the expected start of each waiting job; `waiting` are their parts of the capacity, in their order."""
    ends: list[tuple[float, float]] = []
    free = 1.0
    for each in running:
        free -= each.part
        end = expected_end(each.started_s, each.limit_s, mean_s, now) if each.has_end else None
        if end is not None:
            ends.append((end, each.part))
    return list(_starts(sorted(ends), waiting, max(0.0, free), mean_s, now))


def _starts(
    ends: list[tuple[float, float]], waiting: Sequence[float], free: float, mean_s: float | None, now: float
) -> Iterator[float | None]:
    demand, at, time_s = 0.0, 0, now
    for part in waiting:
        demand += part
        while demand > free + 1e-9 and at < len(ends):
            time_s, released = ends[at]
            free += released
            at += 1
        start: float | None = time_s
        if demand > free + 1e-9:
            # More than one generation of jobs: each takes the whole capacity for the mean time.
            start = None if not mean_s or free <= 0 else time_s + mean_s * (demand - free) / max(free, 1e-3)
        yield start if start is not None and start - now <= _HORIZON_S else None
