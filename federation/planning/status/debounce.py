"""Debounce writes per key: wait until changes pause, up to a limit, and keep a minimum interval. Pure.

A change is due after `quiet_s` without another one, at the latest `wait_s_max` after the first, and at the earliest
`interval_s_min` after the previous write. An urgent change does not wait for a pause. With `is_leading`, neither does a
change that follows the previous write after more than the interval: only bursts wait. The caller brings the monotonic
time and owns the timer.
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
    is_leading: bool = False


@dataclass(slots=True)
class _Changes:
    first_s: float
    last_s: float
    is_urgent: bool
    is_alone: bool
    """Whether it is one change that follows the previous write after a while."""


class Coalescer(Generic[K]):
    """The open changes and last writes of all keys."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._open: dict[K, _Changes] = {}
        self._written_s: dict[K, float] = {}

    def note(self, key: K, now_s: float, *, is_urgent: bool = False) -> float:
        """Record a change; return the seconds until the key is due."""
        changes = self._open.get(key)
        if changes is None:
            written_s = self._written_s.get(key)
            is_alone = written_s is not None and now_s >= written_s + self._pace.interval_s_min
            self._open[key] = _Changes(now_s, now_s, is_urgent, self._pace.is_leading and is_alone)
        else:
            changes.last_s = now_s
            changes.is_alone = False
            changes.is_urgent = changes.is_urgent or is_urgent
        return self.remaining_s(key, now_s)

    def remaining_s(self, key: K, now_s: float) -> float:
        """Return the seconds until the key is due; 0 for a key without changes."""
        changes = self._open.get(key)
        if changes is None:
            return 0.0
        due_s = now_s
        if not (changes.is_urgent or changes.is_alone):
            due_s = min(changes.last_s + self._pace.quiet_s, changes.first_s + self._pace.wait_s_max)
        if (written_s := self._written_s.get(key)) is not None:
            due_s = max(due_s, written_s + self._pace.interval_s_min)
        return max(due_s - now_s, 0.0)

    def open_s(self, key: K, now_s: float) -> float | None:
        """Return the age of the key's first open change, None without changes."""
        changes = self._open.get(key)
        return now_s - changes.first_s if changes is not None else None

    def take(self, key: K) -> None:
        """Close the key's changes at the start of their processing."""
        self._open.pop(key, None)

    def wrote(self, key: K, now_s: float) -> None:
        """Record a write."""
        if self._pace.interval_s_min > 0:
            self._written_s[key] = now_s

    def forget(self, key: K) -> None:
        """Remove a key."""
        self._open.pop(key, None)
        self._written_s.pop(key, None)
