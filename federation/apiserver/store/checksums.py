"""The checksum of a log row: detects values and keys that the disk has damaged, not forged ones.

The writer stores it beside the row, `history.py` compares it with each row that it reads. Pure.
"""

from zlib import crc32


def checksum(key: str, value: bytes) -> int:
    """Return the CRC-32 of a row's key and stored value, encrypted or not: about a microsecond per kB."""
    return crc32(value, crc32(key.encode()))


def is_intact(key: object, value: object, stored: object) -> bool:
    """Return whether a row matches its checksum. Rows that older versions wrote have none and count as intact.

    A damaged row may hold values of any type, because SQLite keeps the type of each value in the row.
    """
    if not isinstance(key, str) or not isinstance(value, bytes):
        return False
    return stored is None or stored == checksum(key, value)
