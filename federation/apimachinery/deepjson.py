"""JSON of other servers that is nested too deeply to be parsed, in part. Pure.

The parser refuses text of more than 1,024 levels, and the encoder values of more than 254, but etcd stores both. One
such object must not hide the others of a list. `parse_cut` replaces the parts below the parser's limit by null;
`is_encodable` finds the objects that they were in, which are incomplete and must not be used.
"""

import re
from typing import Any

import orjson

_PARTS_MAX = 16
"""Deep parts of one text. The text is parsed again after each."""
_PART_BYTES_MAX = 2 * 1024 * 1024
"""Bytes of all deep parts together; an object in etcd has less. It takes half a second to read so many brackets."""
_LEVELS_MIN = 1000
"""A text with fewer brackets before an error is malformed in another way."""
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)


def parse_cut(text: bytes) -> Any:
    """Return the JSON value, with null for each part that is nested too deeply for the parser.

    JSONDecodeError for other malformed text, and for text with too many or too large parts of that kind.
    """
    left = _PART_BYTES_MAX
    for _ in range(_PARTS_MAX):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            # The position is a character behind the bracket that is one too many.
            start = len(error.doc[: error.pos].encode()) - 1
            end = _end_of(text, start, left)
            if end is None or text.count(b"{", 0, start) + text.count(b"[", 0, start) < _LEVELS_MIN:
                raise
            left -= end - start
            text = text[:start] + b"null" + text[end:]
    return orjson.loads(text)


def is_encodable(value: Any) -> bool:
    """Return False for a value that is nested too deeply to be written."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def _end_of(text: bytes, start: int, bytes_max: int) -> int | None:
    """Return the index behind the mapping or list that begins at `start`; None when none begins or ends there."""
    if start < 0 or text[start : start + 1] not in (b"{", b"["):
        return None
    depth = 0
    for token in _TOKEN.finditer(text, start, start + bytes_max):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return token.end()
    return None
