"""Sentences about times to come: how long a wait lasts, and nothing about one that is over. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import parse_rfc3339


def describe_toleration(until: datetime, now: datetime) -> str:
    """Return how long an object stays in a tainted cluster; an end that is over is not told as one to come."""
    if until <= now:
        return "its taints are not tolerated any more: the object is about to leave, or has no other cluster"
    return f"its taints are tolerated for {to_span(until - now)}, until {until:%H:%M:%S} UTC; then the object leaves"


def describe_drift(drift: Mapping[str, Any], now: datetime) -> str:
    """Return which fields a member changes, how often they were written back, and until when that pauses."""
    count = drift["corrections"]
    times = "once" if count == 1 else f"{count} times"
    return f"{drift['message']}; written back {times}{pause_of(drift, now)}"


def pause_of(drift: Mapping[str, Any], now: datetime) -> str:
    """Return until when corrections pause, as the end of a sentence; "" when they do not, or not any more."""
    until = parse_rfc3339(drift["pausedUntil"])
    return f"; corrections pause until {until:%H:%M:%S} UTC" if until is not None and until > now else ""


def to_span(span: timedelta) -> str:
    """Return a time span in one unit: 42 s, 5 min, 3 h."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
