"""Validate the schedule of a CronJob as the controllers of members parse it.

They use robfig/cron: five fields of `*`, numbers, names, ranges and steps, or a descriptor. Other programs know more,
such as 7 for Sunday and L for the last day of a month; a CronJob with these never runs. `apimachinery/cron.py` computes
times, also of schedules that only this control plane reads.
"""

from typing import Final, NamedTuple

from federation.apimachinery.durations import parse_duration

_DESCRIPTORS: Final = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY: Final = "@every "
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class _Field(NamedTuple):
    """The numbers that a field may have, and the names that stand for them from the lowest on."""

    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 6, _DAYS))


def schedule_problem(schedule: str) -> str:
    """Return the problem of a schedule, "" if it is valid."""
    try:
        _check(schedule)
    except ValueError as error:
        return str(error)
    return ""


def _check(schedule: str) -> None:
    if schedule.startswith(_EVERY):
        try:
            parse_duration(schedule.removeprefix(_EVERY))
        except ValueError as error:
            raise ValueError(f"failed to parse duration {schedule}: {error}") from error
        return
    if schedule.startswith("@"):
        if schedule not in _DESCRIPTORS:
            raise ValueError(f"unrecognized descriptor: {schedule}")
        return
    texts = schedule.split()
    if len(texts) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(texts)}: {texts}")
    for text, field in zip(texts, _FIELDS, strict=True):
        for part in text.split(","):
            if part:  # the parser leaves out empty parts
                _check_range(part, field)


def _check_range(text: str, field: _Field) -> None:
    """Raise ValueError for a part such as `*`, 5, 1-5, jan, */10 or 10-30/5 that is none."""
    bounds, *steps = text.split("/")
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    start, end = _bounds(bounds, text, field)
    if steps:
        step = _number(steps[0], text)
        end = end if "-" in bounds else field.high
    else:
        step = 1
    if start < field.low:
        raise ValueError(f"beginning of range ({start}) below minimum ({field.low}): {text}")
    if end > field.high:
        raise ValueError(f"end of range ({end}) above maximum ({field.high}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if not step:
        raise ValueError(f"step of range should be a positive number: {text}")


def _bounds(bounds: str, text: str, field: _Field) -> tuple[int, int]:
    first, *more = bounds.split("-")
    if first in {"*", "?"}:  # the parser ignores what follows a hyphen
        return field.low, field.high
    start = _number_or_name(first, text, field)
    if len(more) > 1:
        raise ValueError(f"too many hyphens: {text}")
    return start, _number_or_name(more[0], text, field) if more else start


def _number_or_name(value: str, text: str, field: _Field) -> int:
    if value.lower() in field.names:
        return field.low + field.names.index(value.lower())
    return _number(value, text)


def _number(value: str, text: str) -> int:
    digits = value[1:] if value[:1] in {"+", "-"} else value
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"failed to parse int from {text}: {value!r} is not a number")
    if value.startswith("-"):
        raise ValueError(f"negative number ({value}) not allowed: {text}")
    if len(digits.lstrip("0")) > len("1000000000"):
        raise ValueError(f"failed to parse int from {text}: value out of range")
    return int(digits)
