"""Debounce writes per key: wait until changes pause, up to a limit, and limit the writes over time. Pure.

A change is due after `quiet_s` without another one, at the latest `wait_s_max` after the first. An urgent change does
not wait for a pause. With a `burst` of several writes, neither does a change of a settled key: one whose changes so far
have all been processed. A patient change, which others are sure to follow, waits for `wait_s_max`, unless an urgent one
comes; from `begin` until `settle`, every change of a key is patient. Waits grow with the number of keys that wait.
Writes of a key are at least `spacing_s` apart, and more than `burst` of them `interval_s` on average: a single change
is written at once, and a long series of changes costs one write per interval. The caller brings the monotonic time and
owns the timer.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Pace:
    """How writes are spaced, in seconds."""

    quiet_s: float
    wait_s_max: float
    interval_s: float = 0.0
    burst: int = 1
    """Writes that need not keep the interval. After a pause of `burst * interval_s` there are as many again."""
    spacing_s: float = 0.0
    share_s: float = 0.0
    """`wait_s_max` is at least this long for each key with open changes: all together then have one write per share."""
    stretch_max: float = 1.0
    """By how much waits grow at most, so that every key is written sooner or later, however many there are."""

    def stretch(self, keys: int) -> float:
        """Return by how much waits grow while this many keys have open changes."""
        return min(max(1.0, keys * self.share_s / self.wait_s_max), self.stretch_max)


@dataclass(slots=True)
class _Changes:
    first_s: float
    last_s: float
    is_prompt: bool
    """Whether they do not wait for a pause."""
    is_patient: bool
    """Whether they do not end with a pause."""


@dataclass(slots=True)
class _Writes:
    last_s: float = -math.inf
    paid_s: float = -math.inf
    """When the writes so far would have ended at one per interval."""


class Coalescer(Generic[K]):
    """The open changes and last writes of all keys."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._open: dict[K, _Changes] = {}
        self._writes: dict[K, _Writes] = {}
        self._begun: set[K] = set()

    def note(self, key: K, now_s: float, *, is_urgent: bool = False, is_patient: bool = False) -> float:
        """Record a change; return the seconds until the key is due."""
        changes = self._open.get(key)
        if changes is None:
            is_prompt = is_urgent or (not is_patient and self._pace.burst > 1 and key in self._writes)
            self._open[key] = _Changes(now_s, now_s, is_prompt, is_patient)
        else:
            changes.last_s = now_s
            changes.is_prompt = changes.is_prompt or is_urgent
        return self.remaining_s(key, now_s)

    def remaining_s(self, key: K, now_s: float) -> float:
        """Return the seconds until the key is due, or until a wait may have become shorter; 0 without changes.

        A wait becomes shorter when fewer keys wait. That is looked at after `wait_s_max`, and then whenever the wait so
        far has doubled, so that a long wait costs few looks and is at most twice as long as it has to be.
        """
        changes = self._open.get(key)
        if changes is None:
            return 0.0
        pace, due_s = self._pace, now_s
        if not changes.is_prompt:
            stretch = pace.stretch(len(self._open))
            pause_s = math.inf if changes.is_patient else changes.last_s + pace.quiet_s * stretch
            due_s = min(pause_s, changes.first_s + pace.wait_s_max * stretch)
            if due_s > now_s:
                due_s = min(due_s, changes.first_s + max(pace.wait_s_max, 2 * (now_s - changes.first_s)))
        if (writes := self._writes.get(key)) is not None:
            due_s = max(due_s, writes.last_s + pace.spacing_s, writes.paid_s - (pace.burst - 1) * pace.interval_s)
        return max(due_s - now_s, 0.0)

    def has_changes(self, key: K) -> bool:
        """Return whether the key has open changes."""
        return key in self._open

    def hold(self, key: K) -> None:
        """Keep the key's changes open: they are patient from now on."""
        if (changes := self._open.get(key)) is not None:
            changes.is_prompt, changes.is_patient = False, True

    def take(self, key: K) -> None:
        """Close the key's changes at the start of their processing."""
        self._open.pop(key, None)

    def begin(self, key: K) -> None:
        """Record that a series of changes begins, of which only the last one or an urgent one is worth a hurry."""
        self._begun.add(key)

    def has_begun(self, key: K) -> bool:
        """Return whether a series of changes has begun that has not ended."""
        return key in self._begun

    def settle(self, key: K) -> None:
        """Record that the key's changes so far have been processed, with or without a write."""
        self._begun.discard(key)
        self._writes.setdefault(key, _Writes())

    def wrote(self, key: K, now_s: float) -> None:
        """Record a write."""
        if self._pace.interval_s > 0:
            writes = self._writes.setdefault(key, _Writes())
            writes.last_s, writes.paid_s = now_s, max(writes.paid_s, now_s) + self._pace.interval_s

    def forget(self, key: K) -> None:
        """Remove a key."""
        self._open.pop(key, None)
        self._writes.pop(key, None)
        self._begun.discard(key)
