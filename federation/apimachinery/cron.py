"""Schedules of cron, with five fields or a macro such as @daily. The only module that uses croniter. Pure.

croniter also knows fields of its own: `R` is another minute at each call, and `H` needs a key. They are refused, as are
texts so long that parsing them takes time.
"""

import re
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

_CHARS_MAX: Final = 256
_FIELDS: Final = ("minute", "hour", "day of month", "month", "day of week")
_MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_WORD: Final = re.compile(
    "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat|l", re.IGNORECASE
)


def next_time(text: str, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first time of a schedule after a time; ValueError for a malformed one."""
    found: datetime = _times(text, after, zone).get_next(datetime)
    return found


def last_time(text: str, until: datetime, zone: ZoneInfo) -> datetime:
    """Return the last time of a schedule that is not after a time; ValueError for a malformed one."""
    # croniter gives times before its start; the next second includes a time that is now.
    start = until.replace(microsecond=0) + timedelta(seconds=1)
    found: datetime = _times(text, start, zone).get_prev(datetime)
    return found


def _times(text: str, start: datetime, zone: ZoneInfo) -> Any:
    if len(text) > _CHARS_MAX:
        raise ValueError(f"a schedule may have {_CHARS_MAX} characters")
    if text not in _MACROS:
        if len(text.split()) != len(_FIELDS):
            raise ValueError(f"expected the five fields {', '.join(_FIELDS)}")
        if not re.fullmatch(r"[0-9A-Za-z*?,/#\s-]*", text):
            raise ValueError("a field has a character that schedules do not have")
        if unknown := [word for word in re.findall("[A-Za-z]+", text) if not _WORD.fullmatch(word)]:
            raise ValueError(f"{unknown[0]!r} is no month, no day of the week and not L")
    # Commands that check no schedule do without the import, which takes 20 ms. It has no stubs of its own.
    from croniter import croniter  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        return croniter(text.replace("?", "*"), start.astimezone(zone))
    except (KeyError, OverflowError, IndexError) as error:
        raise ValueError(str(error)) from error
