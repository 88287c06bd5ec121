"""Parse times given on the command line: an RFC 3339 time, or a duration before now."""

import re
from datetime import datetime, timedelta

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError

_DAYS = re.compile(r"([0-9]+)d(.*)")


def parse_time(text: str, now: datetime, option: str) -> datetime:
    """Return the time written as 2026-01-01T12:00:00Z, -10m, 10m or `10m ago`; ConfigurationError names the option."""
    words = text.strip().removesuffix(" ago").strip()
    try:
        return from_rfc3339(words)
    except ValueError:
        pass
    days, rest = 0, words.removeprefix("-")
    if found := _DAYS.fullmatch(rest):
        days, rest = int(found[1]), found[2] or "0"
    try:
        return now - timedelta(days=days, seconds=abs(parse_duration(rest)))
    except (ValueError, OverflowError):
        raise ConfigurationError(
            f"{option} {text!r}: write a time with its zone, for example 2026-01-01T12:00:00Z, or how long ago,"
            " for example 10m, 2h30m or 3d"
        ) from None
