"""The history of the fleet: a few numbers over the last hours, and what happened to clusters, in memory of fixed size.

Each process keeps its own, from its start on; a monitoring system keeps what must last. There is no timer: a value
counts until the next one is set, so slots without changes are filled when somebody reads or writes. No series belongs
to an object or a cluster, so the size does not depend on how many there are (`BYTES_MAX`).

`controllers/fleetmetrics` writes it; `web/history.py` serves it.

Decision: docs/decisions/0128-the-course-of-the-fleet-is-in-memory.md
"""

import math
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from federation.apimachinery.clock import Clock

BYTES_MAX = 512 << 10
"""Bound of the memory of all series and incidents."""
INCIDENTS_MAX = 300
_TEXT_LENGTH_MAX = 200


class Gauge(StrEnum):
    """Values that last until they change: clusters, objects by state, amounts of the fleet."""

    CLUSTERS = "clusters"
    CLUSTERS_READY = "clustersReady"
    OBJECTS_DELIVERED = "objectsDelivered"
    OBJECTS_UNDERWAY = "objectsUnderway"
    OBJECTS_SILENT = "objectsSilent"
    OBJECTS_FAILING = "objectsFailing"
    REPLICAS_UNPLACED = "replicasUnplaced"
    CPU = "cpu"
    CPU_REQUESTED = "cpuRequested"
    MEMORY = "memory"
    MEMORY_REQUESTED = "memoryRequested"
    PRICE = "price"


class Counter(StrEnum):
    """Counts per slot: objects that moved between clusters, and objects that could not be delivered."""

    MOVES = "moves"
    FAILURES = "failures"


_COUNTERS = frozenset(each.value for each in Counter)


class Happening(StrEnum):
    """A change of a cluster."""

    JOINED = "joined"
    LEFT = "left"
    LOST = "lost"
    BACK = "back"


@dataclass(frozen=True, slots=True)
class Incident:
    """A change of a cluster; `text` is the message of its condition."""

    at: datetime
    cluster: str
    what: Happening
    text: str = ""


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """Resolution and length of the history: six hours."""

    slot_s: float = 15.0
    slots: int = 1440


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of the history: each series has one value per step, NaN from before the process started."""

    end: datetime
    step_s: float
    series: Mapping[str, Sequence[float]]


class FleetHistory:
    """Rings of numbers, one column per slot of time."""

    def __init__(self, clock: Clock, options: HistoryOptions | None = None) -> None:
        self._clock = clock
        self._options = options or HistoryOptions()
        self._slot = self._slot_now()
        self._first = self._slot
        names = [each.value for kind in (Gauge, Counter) for each in kind]
        self._rings = {name: array("d", [math.nan]) * self._options.slots for name in names}
        self._incidents: deque[Incident] = deque(maxlen=INCIDENTS_MAX)
        for name in names:
            self._rings[name][self._slot % self._options.slots] = 0.0

    @property
    def age_s(self) -> float:
        """How much of the past is known."""
        return min(self._slot_now() - self._first + 1, self._options.slots) * self._options.slot_s

    def set(self, gauge: Gauge, value: float) -> None:
        """Record the value of a gauge from now on."""
        self._advance()
        self._rings[gauge][self._slot % self._options.slots] = value

    def count(self, counter: Counter) -> None:
        """Count one more in this slot."""
        self._advance()
        self._rings[counter][self._slot % self._options.slots] += 1

    def tell(self, cluster: str, what: Happening, text: str = "") -> None:
        """Record what happened to a cluster."""
        self._incidents.append(Incident(self._clock.now(), cluster, what, text[:_TEXT_LENGTH_MAX]))

    def incidents(self, since: datetime) -> Iterator[Incident]:
        """Yield what happened to clusters since then, newest first."""
        return (incident for incident in reversed(self._incidents) if incident.at >= since)

    def read(self, span: timedelta, points: int) -> Excerpt:
        """Return at most `points` steps of the last `span`: sums of counters, means of gauges, the least of readiness.

        The least, because a cluster that was lost for a moment would not show in a mean.
        """
        self._advance()
        options = self._options
        count = min(options.slots, max(1, round(span.total_seconds() / options.slot_s)))
        size = -(-count // max(1, points))
        steps = -(-count // size)
        first = self._slot - steps * size + 1
        series = {}
        for name, ring in self._rings.items():
            fold = sum if name in _COUNTERS else min if name == Gauge.CLUSTERS_READY else _mean
            values = []
            for step in range(first, self._slot + 1, size):
                known = [
                    value
                    for slot in range(step, step + size)
                    if slot > self._slot - options.slots and not math.isnan(value := ring[slot % options.slots])
                ]
                values.append(fold(known) if known else math.nan)
            series[name] = values
        return Excerpt(self._clock.now(), size * options.slot_s, series)

    def _slot_now(self) -> int:
        return int(self._clock.monotonic() // self._options.slot_s)

    def _advance(self) -> None:
        """Fill the slots since the last change: gauges keep their values, counters start at zero."""
        now, slots = self._slot_now(), self._options.slots
        if now <= self._slot:
            return
        for name, ring in self._rings.items():
            value = 0.0 if name in _COUNTERS else ring[self._slot % slots]
            for slot in range(max(self._slot + 1, now - slots + 1), now + 1):
                ring[slot % slots] = value
        self._slot = now


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
