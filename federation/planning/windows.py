"""Windows of time: single ones with start and end, and those that a schedule of cron opens in a time zone. Pure.

A schedule is in the wall time of its zone, and a window lasts as long as it says, also when clocks change meanwhile.
Each function raises one of `MALFORMED` for a window that its schema does not rule out.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from federation.apimachinery import cron
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.durations import parse_duration

MALFORMED = (ValueError, TypeError, KeyError, OverflowError, ZoneInfoNotFoundError)


def end_of(window: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return when the window that is open now ends, None if it is not open."""
    if window.get("start"):
        start, end = from_rfc3339(str(window["start"])), from_rfc3339(str(window["end"]))
    else:
        start = cron.last_time(str(window["schedule"]), now, _zone(window))
        end = start + timedelta(seconds=parse_duration(str(window["duration"])))
    return end if start <= now < end else None


def is_open(window: Mapping[str, Any], now: datetime) -> bool:
    """Return whether the time is in the window."""
    return end_of(window, now) is not None


def next_opening(window: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return when the window opens next, None for a single window that is over."""
    if window.get("start"):
        start = from_rfc3339(str(window["start"]))
        return start if start > now else None
    return cron.next_time(str(window["schedule"]), now, _zone(window))


def _zone(window: Mapping[str, Any]) -> ZoneInfo:
    return ZoneInfo(str(window.get("timeZone") or "UTC"))
