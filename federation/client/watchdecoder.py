"""Decoding of watch streams: chunks of bytes in, one event per line out. Pure; `http.py` uses it.

Chunks end anywhere in a line, and lines can be long (a Secret can have a megabyte), so a line is joined only once, when
its end has arrived.
"""

from typing import Any

import orjson

from federation.apimachinery.deepjson import is_encodable, parse_cut
from federation.apimachinery.errors import ApiError, ClusterError, ClusterLimitExceeded, from_status
from federation.apimachinery.jsonsize import may_have_more_values
from federation.client.body import BYTES_PER_VALUE
from federation.client.client import WatchEvent, WatchEventType

_TYPES = {type_.value: type_ for type_ in WatchEventType}


class LineSplitter:
    """Collects chunks and returns complete lines, without line ends and blank lines."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes; ClusterLimitExceeded for a line above a limit."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._length = 0
        if rest:
            self._parts.append(rest)
            self._length += len(rest)
            if self._length > self._bytes_max:
                raise ClusterLimitExceeded(
                    f"a watch event is longer than {self._bytes_max} bytes (watch_line_bytes_max)"
                )
        values_max = self._bytes_max // BYTES_PER_VALUE
        if any(may_have_more_values(line, values_max) for line in lines):
            raise ClusterLimitExceeded(
                f"a watch event has more than {values_max} values (watch_line_bytes_max / {BYTES_PER_VALUE})"
            )
        return [line for line in lines if line]


def to_event(line: bytes) -> WatchEvent | ApiError:
    """Return the event of a line, or the error of an ERROR event; ClusterError for anything else.

    The event of an object that is nested too deeply has {} instead of the object.
    """
    try:
        found: Any = _parse(line)
        kind, obj = found["type"], found["object"]
        if kind == "ERROR":
            return from_status(obj, int(obj.get("code") or 500))
        return WatchEvent(_TYPES[kind], obj)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise ClusterError("a watch event is not valid") from problem


def _parse(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        found = parse_cut(line)
        return found if is_encodable(found) else {**found, "object": {}}
