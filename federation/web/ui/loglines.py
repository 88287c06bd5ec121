"""Lines of logs for a page: merged by time, searched, and without what a terminal would obey. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from federation.apimachinery.controlcharacters import escape

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Colours and cursor movements."""
_LINE_LENGTH_MAX = 4_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log; `source` is the pod, "" for the only one."""

    at: str
    source: str
    text: str


def to_lines(log: bytes, lines_max: int, source: str = "") -> list[Line]:
    """Return the last lines of a log with timestamps; a line without one has the time of the line before.

    A member may send more lines than it was asked for.
    """
    lines: list[Line] = []
    at = ""
    for encoded in log.removesuffix(b"\n").rsplit(b"\n", lines_max)[-lines_max:] if log else ():
        raw = encoded[: 4 * _LINE_LENGTH_MAX].decode("utf-8", "replace").rstrip("\r")
        stamp, _, text = raw.partition(" ")
        is_stamped = len(stamp) >= len("2026-01-01T00:00:00Z") and stamp[4:5] == "-" and stamp[10:11] == "T"
        at = stamp if is_stamped else at
        shown = _ESCAPES.sub("", (text if is_stamped else raw)[:_LINE_LENGTH_MAX])
        lines.append(Line(at, source, "\t".join(map(escape, shown.split("\t")))))
    return lines


def merge(logs: Mapping[str, bytes], text: str, lines_max: int) -> Sequence[Line]:
    """Return the newest lines of several logs by time, those that contain the text."""
    found = [line for source, log in logs.items() for line in to_lines(log, lines_max, source) if text in line.text]
    found.sort(key=lambda line: line.at)  # stable: lines of one moment stay as the pod wrote them
    return found[-lines_max:]
