"""Watch streams: bytes in, one event per line out. Pure; `http.py` feeds it and reads next.

Lines may be cut anywhere by the transport and may be long (a Secret can have a megabyte); a line is joined once, when
its end has come.
"""

from typing import Any

import orjson

from federation.base.errors import ApiError, ClusterError, from_status
from federation.client.protocol import WatchEvent, WatchEventType

_TYPES = {type_.value: type_ for type_ in WatchEventType}


class LineSplitter:
    """Collects chunks and gives out complete lines, without their ends and without blank ones."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._parts: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes; ClusterError when one becomes longer than allowed."""
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
                raise ClusterError(f"a watch event is longer than {self._bytes_max} bytes")
        return [line for line in lines if line]


def to_event(line: bytes) -> WatchEvent | ApiError:
    """Return the event of a line, or the error that an ERROR event carries; ClusterError when it is neither."""
    try:
        found: Any = orjson.loads(line)
        kind, obj = found["type"], found["object"]
        if kind == "ERROR":
            return from_status(obj, int(obj.get("code") or 500))
        return WatchEvent(_TYPES[kind], obj)
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as problem:
        raise ClusterError("a watch event is not valid") from problem
