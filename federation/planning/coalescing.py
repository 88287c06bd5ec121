"""When to write once for many changes: wait until it is quiet, but not for ever, and not too often.

Three times decide per key: a change is written after `quiet_s` without another one, at the latest `wait_s_max` after
the first, and at the earliest `interval_s_min` after the previous write. Pure: the caller brings the monotonic time and
owns the timer. `controllers/statuscollect` and `controllers/statusaggregate` ask it.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Pace:
    """How writes are spaced, in seconds."""

    quiet_s: float
    wait_s_max: float
    interval_s_min: float = 0.0


@dataclass(slots=True)
class _Changes:
    first_s: float
    last_s: float


class Coalescer(Generic[K]):
    """The open changes and last writes of any number of keys."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._open: dict[K, _Changes] = {}
        self._written_s: dict[K, float] = {}

    def note(self, key: K, now_s: float) -> float:
        """Take down a change and return in how many seconds the key should be looked at."""
        changes = self._open.get(key)
        if changes is None:
            self._open[key] = _Changes(now_s, now_s)
        else:
            changes.last_s = now_s
        return self.remaining_s(key, now_s)

    def remaining_s(self, key: K, now_s: float) -> float:
        """Return the seconds until the key is due, 0 when it is (a key without open changes always is)."""
        changes = self._open.get(key)
        if changes is None:
            return 0.0
        due_s = min(changes.last_s + self._pace.quiet_s, changes.first_s + self._pace.wait_s_max)
        if (written_s := self._written_s.get(key)) is not None:
            due_s = max(due_s, written_s + self._pace.interval_s_min)
        return max(due_s - now_s, 0.0)

    def open_s(self, key: K, now_s: float) -> float:
        """Return for how long the key has had open changes, 0 when it has none."""
        changes = self._open.get(key)
        return now_s - changes.first_s if changes is not None else 0.0

    def take(self, key: K) -> None:
        """Close the key's changes: they are being looked at."""
        self._open.pop(key, None)

    def wrote(self, key: K, now_s: float) -> None:
        """Take down a write."""
        if self._pace.interval_s_min > 0:
            self._written_s[key] = now_s

    def forget(self, key: K) -> None:
        """Drop everything of a key that is gone."""
        self._open.pop(key, None)
        self._written_s.pop(key, None)
