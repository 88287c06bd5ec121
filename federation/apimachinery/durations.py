"""Durations in Go's format, signed and with fractions: "5s", "1m30s", "250ms"."""

import re

_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_duration(text: str) -> float:
    """Return the duration in seconds; ValueError when it is malformed."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    total, end = 0.0, 0
    for part in _PART.finditer(rest):
        if part.start() != end:
            break
        total, end = total + float(part[1]) * _UNITS_S[part[2]], part.end()
    if not rest or end != len(rest):
        raise ValueError(f"{text!r} is not a duration such as 1m30s or 250ms")
    return -total if text.startswith("-") else total
