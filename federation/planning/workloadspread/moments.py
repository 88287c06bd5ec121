"""Times in objects, and the delay of the next reconcile. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339


def parse_time(value: Any) -> datetime | None:
    """Return a Kubernetes time, None when it is absent or malformed."""
    try:
        return from_rfc3339(value) if isinstance(value, str) else None
    except ValueError:
        return None


def age_s(value: Any, now: datetime) -> float:
    """Return the seconds since a Kubernetes time; infinity when it is absent or malformed."""
    moment = parse_time(value)
    return float("inf") if moment is None else (now - moment).total_seconds()


def shortest_s(delays_s: Iterable[float | None]) -> float | None:
    """Return the shortest of the positive delays, None when there is none."""
    return min((delay_s for delay_s in delays_s if delay_s is not None and delay_s > 0), default=None)
