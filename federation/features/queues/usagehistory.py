"""The course of queues over the last hours: `/federation/v1/queuehistory`, from the memory of this process.

For each ClusterJobQueue two numbers per minute: the largest used part of its quota, above 1 when it borrows, and the
jobs that wait. There is no timer: a value counts until the next status. It begins with the start of the process, and
with several replicas each one answers with what it has seen. Its size has a bound: `QUEUES_MAX` queues, six hours.
`queuehistory.py` records and serves it.
"""

import math
from array import array
from collections.abc import Mapping
from typing import Any

from federation.apimachinery.clock import Clock
from federation.apimachinery.quantity import parse

PATH = "/federation/v1/queuehistory"
SLOT_S, SLOTS = 60.0, 360
QUEUES_MAX = 50


class QueueHistory:
    """Rings of numbers, one column per minute, for the queues that were seen first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rings: dict[str, tuple[array[float], array[float]]] = {}
        self._slot = self._slot_now()

    def record(self, name: str, used: float, pending: float) -> None:
        """Record the values of a queue from now on; a queue beyond `QUEUES_MAX` is not recorded."""
        self._advance()
        if name not in self._rings:
            if len(self._rings) >= QUEUES_MAX:
                return
            self._rings[name] = (array("d", [math.nan]) * SLOTS, array("d", [math.nan]) * SLOTS)
        for ring, value in zip(self._rings[name], (used, pending), strict=True):
            ring[self._slot % SLOTS] = value

    def forget(self, name: str) -> None:
        """Remove a queue."""
        self._rings.pop(name, None)

    def read(self) -> dict[str, dict[str, list[float | None]]]:
        """Return used parts and waiting jobs of each queue per minute, the newest last; None where nothing is known."""
        self._advance()
        slots = range(self._slot - SLOTS + 1, self._slot + 1)
        return {
            name: {
                key: [None if math.isnan(value := ring[slot % SLOTS]) else value for slot in slots]
                for key, ring in zip(("used", "pending"), rings, strict=True)
            }
            for name, rings in sorted(self._rings.items())
        }

    def _slot_now(self) -> int:
        return int(self._clock.monotonic() // SLOT_S)

    def _advance(self) -> None:
        """Fill the slots since the last change with the last values."""
        now = self._slot_now()
        for ring in (ring for rings in self._rings.values() for ring in rings) if now > self._slot else ():
            value = ring[self._slot % SLOTS]
            for slot in range(max(self._slot + 1, now - SLOTS + 1), now + 1):
                ring[slot % SLOTS] = value
        self._slot = max(now, self._slot)


def used_part(queue: Mapping[str, Any]) -> float:
    """Return the largest used part of the quota of a ClusterJobQueue, over flavours and resources, by its status."""
    lines = (queue.get("status") or {}).get("usage") or ()
    amounts = ((parse(line["used"]).nanos, parse(line["nominalQuota"]).nanos) for line in lines)
    return max((used / quota for used, quota in amounts if quota), default=0.0)
