"""Count the time in which another party could have answered, and no other time.

A silence is evidence only while an answer could have arrived. A process that stood still, a machine that was suspended
and a database that answers no request say nothing about a member or a leader. `Silence` counts from one look to the
next, and at most a step each time; `Presence` looks at regular times and so knows how long this process was away. Its
`present_s` is the clock of waits in memory.
`Patience` is the timeout of a command. `Wait` is for waits that are stored and survive a restart; `Looks` says whether
the process was away between two looks.

Decision: docs/decisions/0212-silence-counts-while-an-answer-could-arrive.md
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from federation.apimachinery.clock import Clock

AWAY_S = 5.0
"""Shorter times away change no wait that lasts for minutes."""
LOOK_S_MAX = 10.0
"""The most that one look of a command counts. Commands look every second, and requests are answered sooner."""
_PERIOD_S = 1.0
_STEP_S_MAX = 1.5


class Silence:
    """Seconds of silence, counted from look to look. A look is a successful question; one that failed is no look."""

    __slots__ = ("_looked_s", "counted_s")

    def __init__(self) -> None:
        self.counted_s = 0.0
        self._looked_s: float | None = None

    def look(self, now_s: float, step_s_max: float) -> float:
        """Count the time since the last look, at most `step_s_max`, and return all that was counted."""
        if self._looked_s is not None:
            self.counted_s += max(0.0, min(now_s - self._looked_s, step_s_max))
        self._looked_s = now_s
        return self.counted_s

    def end(self, now_s: float) -> None:
        """Begin again: the other party answered."""
        self.counted_s, self._looked_s = 0.0, now_s


class Patience:
    """How long a command waits for an effect that it looks for again and again: the time between its looks counts.

    A command that was stopped, or whose machine was suspended, looks once more and does not give up.
    """

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock, self.timeout_s = clock, timeout_s
        self._silence = Silence()
        self._silence.look(clock.monotonic(), LOOK_S_MAX)

    def is_over(self) -> bool:
        """Return whether the time is over, after a look without the effect."""
        return self._silence.look(self._clock.monotonic(), LOOK_S_MAX) >= self.timeout_s


@dataclass(frozen=True, slots=True)
class Wait:
    """A stored wait: the time since `since` counts, except while it is stopped, as it is since `stopped_at`."""

    since: datetime
    stopped_at: datetime | None = None

    def at(self, now: datetime, *, counts: bool) -> "Wait":
        """Return the wait from now on, whose time counts or does not; what passed while it was stopped is left out."""
        if counts:
            return self if self.stopped_at is None else Wait(self.since + max(now - self.stopped_at, timedelta()))
        return self if self.stopped_at is not None else Wait(self.since, now)

    def with_half_left(self, limit_s: float, now: datetime) -> "Wait":
        """Return the wait after a time that was not measured: at least half of the limit is left."""
        return Wait(max(self.since, now - timedelta(seconds=limit_s / 2)), self.stopped_at)


class Presence:
    """How long this process was away: its event loop was blocked, or the process or its machine stood still.

    A time by which the wall clock moves more than the monotonic one counts too: the machine was suspended, or its
    clock was set. `run` measures until it is cancelled; without it, the process counts as present. `on_return` is
    called after each time of some length.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._away_s = 0.0
        self._lost_s = 0.0
        self._due_s: float | None = None
        self._back_at: datetime | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def away_s(self) -> float:
        """The seconds that the process was away since it started, up to now."""
        late_s = 0.0 if self._due_s is None else self._clock.monotonic() - self._due_s
        return self._away_s + (late_s if late_s > _STEP_S_MAX - _PERIOD_S else 0.0)

    @property
    def present_s(self) -> float:
        """Return a monotonic time that stands still while the process is away, up to now."""
        now_s = self._clock.monotonic()
        late_s = 0.0 if self._due_s is None else now_s - self._due_s
        return now_s - self._lost_s - max(0.0, late_s - (_STEP_S_MAX - _PERIOD_S))

    @property
    def back_at(self) -> datetime | None:
        """When this process was back after it had been away for some time, None if it never was away."""
        is_late = self._due_s is not None and self._clock.monotonic() - self._due_s >= AWAY_S
        return self._clock.now() if is_late else self._back_at

    def on_return(self, listener: Callable[[], None]) -> None:
        """Call the listener whenever the process was away for some time."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Measure until cancelled."""
        try:
            while True:
                began_s, began_at = self._clock.monotonic(), self._clock.now()
                self._due_s = began_s + _PERIOD_S
                await self._clock.sleep(_PERIOD_S)
                counted_s = self._clock.monotonic() - began_s
                self._lost_s += max(0.0, counted_s - _STEP_S_MAX)
                passed_s = max(counted_s, (self._clock.now() - began_at).total_seconds())
                if passed_s > _STEP_S_MAX:
                    self._away_s += passed_s - _PERIOD_S
                if passed_s >= _PERIOD_S + AWAY_S:
                    self._back_at = self._clock.now()
                    for listener in self._listeners:
                        listener()
        finally:
            self._due_s = None


_Key = TypeVar("_Key", bound=Hashable)


class Looks(Generic[_Key]):
    """Whether this process was away since it looked at something last, by key."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._away_s: dict[_Key, float] = {}

    def was_away(self, key: _Key) -> bool:
        """Look, and return whether the process was away for some time since the last look; True for the first one."""
        away_s = self._presence.away_s
        before_s = self._away_s.get(key)
        if before_s is None or away_s - before_s >= AWAY_S:
            self._away_s[key] = away_s
            return True
        return False

    def forget(self, key: _Key) -> None:
        """Remove what is known of a key."""
        self._away_s.pop(key, None)
