"""Times in objects, and the delay of the next reconcile. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import parse_rfc3339


def age_s(value: Any, now: datetime) -> float:
    """Return the seconds since a Kubernetes time; infinity when it is absent or malformed."""
    moment = parse_rfc3339(value)
    return float("inf") if moment is None else (now - moment).total_seconds()


def shortest_s(delays_s: Iterable[float | None]) -> float | None:
    """Return the shortest of the positive delays, None when there is none."""
    return min((delay_s for delay_s in delays_s if delay_s is not None and delay_s > 0), default=None)
