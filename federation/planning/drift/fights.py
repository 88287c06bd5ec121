"""When the federation pauses the correction of an object that somebody in a member keeps changing. Pure.

More than `CORRECTIONS_MAX` corrections of one field within ten minutes are a fight: a controller that repeats its work
every minute is one, too. Each further correction of that field is followed by a pause, first of a minute, then twice as
long each time, up to ten minutes. A fight is over when nothing was corrected for ten minutes after the last pause.
Times are monotonic seconds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

CORRECTIONS_MAX = 5
WINDOW_S = 600.0
PAUSE_S_MIN = 60.0
PAUSE_S_MAX = 600.0
QUIET_S = 600.0
"""After this time without a correction the next one begins a new burst."""
_FIELDS_MAX = 32
_OTHERS = "other fields"
"""Counts the corrections of all fields beyond the first `_FIELDS_MAX`, so that changing names evades no limit."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Corrections of one object in one cluster that follow each other within `QUIET_S`.

    `recent` has the times of the last corrections by field, `fought` the fields that are fought over, and `pauses` the
    number of pauses so far.
    """

    first_s: float
    last_s: float
    count: int = 0
    recent: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    fought: frozenset[str] = frozenset()
    pauses: int = 0
    paused_until_s: float = 0.0


def is_over(burst: Burst, now_s: float) -> bool:
    """Return whether a correction now belongs to another burst."""
    return now_s - max(burst.last_s, burst.paused_until_s) >= QUIET_S


def pause_left_s(burst: Burst | None, now_s: float) -> float:
    """Return how long no correction may be made, 0 when one may be made now."""
    return 0.0 if burst is None else max(burst.paused_until_s - now_s, 0.0)


def after_correction(burst: Burst | None, fields: Iterable[str], now_s: float) -> Burst:
    """Return the burst after these fields were corrected; it differs in `pauses` when a pause begins."""
    if burst is None or is_over(burst, now_s):
        burst = Burst(now_s, now_s)
    recent = {name: kept for name, times in burst.recent.items() if (kept := _within(times, now_s))}
    touched = set()
    for name in fields:
        key = name if name in recent or len(recent) < _FIELDS_MAX else _OTHERS
        touched.add(key)
    for key in touched:
        recent[key] = (*recent.get(key, ()), now_s)[-CORRECTIONS_MAX - 1 :]
    fought = burst.fought.union(key for key in touched if len(recent[key]) > CORRECTIONS_MAX)
    after = replace(burst, last_s=now_s, count=burst.count + 1, recent=recent, fought=fought)
    if not fought.intersection(touched):
        return after
    pause_s = min(PAUSE_S_MIN * 2 ** min(burst.pauses, 16), PAUSE_S_MAX)
    return replace(after, pauses=burst.pauses + 1, paused_until_s=now_s + pause_s)


def _within(times: tuple[float, ...], now_s: float) -> tuple[float, ...]:
    return tuple(time_s for time_s in times if now_s - time_s < WINDOW_S)
