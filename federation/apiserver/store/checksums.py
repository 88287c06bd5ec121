"""The checksum of a log row: detects values and keys that the disk has damaged, not forged ones.

The writer stores it beside the row, `history.py` compares it with each row that it reads. Pure.
"""

import re
from zlib import crc32

import orjson

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


def checksum(key: str, value: bytes) -> int:
    """Return the CRC-32 of a row's key and stored value, encrypted or not: about a microsecond per kB."""
    return crc32(value, crc32(key.encode()))


def is_intact(key: object, value: object, stored: object) -> bool:
    """Return whether a row matches its checksum. Rows of older versions have none: they must be encrypted, or JSON.

    A damaged row may hold values of any type, because SQLite keeps the type of each value in the row.
    """
    if not isinstance(key, str) or not isinstance(value, bytes):
        return False
    if stored is None:
        return value[:1] == b"\0" or _is_json(value)
    return stored == checksum(key, value)


def _is_json(value: bytes) -> bool:
    try:
        return isinstance(orjson.loads(value), dict)
    except orjson.JSONDecodeError:
        return False


def repaired_key(key: object, value: object, stored: object) -> str | None:
    """Return the key of a row in whose key one bit was flipped, None if the row has other damage.

    `key` is escaped where its bytes are no UTF-8. An object under a wrong key would look deleted, and the garbage
    collector would delete its dependents. It takes about a millisecond.
    """
    if stored is None or not isinstance(key, str) or not isinstance(value, bytes):
        return None
    raw = bytearray(_ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), key.encode()))
    for position in range(len(raw)):
        for bit in range(8):
            raw[position] ^= 1 << bit
            if crc32(value, crc32(raw)) == stored:
                return raw.decode(errors="replace")
            raw[position] ^= 1 << bit
    return None
