"""The one hash of the domain: FNV-1, 32 bit (multiply, then xor; not FNV-1a).

Generated names (planning/naming.py) and the tie break of the spread planner (planning/placement/replicas.py) must agree
with KubeAdmiral's bit for bit, so there is exactly one implementation. It is not for security and not for large inputs.
"""

import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=65536)
def fnv1_32(text: str) -> int:
    """Return the FNV-1 hash of the text's UTF-8 bytes as an unsigned 32 bit number."""
    value = _OFFSET
    for byte in text.encode():
        value = ((value * _PRIME) & _MASK) ^ byte
    return value


def fnv1_32_each(prefixes: Sequence[str], suffix: str) -> list[int]:
    """Return the hash of every prefix followed by the suffix; much cheaper than one by one for many prefixes.

    All prefixes are hashed at the same time, each in 64 bits of its own of one large integer: a hash has 32 bits and
    the prime 25, so no product reaches its neighbour.
    """
    if not prefixes:
        return []
    values, ones = _lanes(tuple(prefixes))
    mask = ones * _MASK
    for byte in suffix.encode():
        values = ((values * _PRIME) & mask) ^ (ones * byte)
    lanes = array("Q", values.to_bytes(8 * len(prefixes), sys.byteorder))
    return lanes.tolist() if sys.byteorder == "little" else lanes.tolist()[::-1]


@lru_cache(maxsize=64)
def _lanes(prefixes: tuple[str, ...]) -> tuple[int, int]:
    """Return the prefixes' hashes in lanes of 64 bits, the first one lowest, and a 1 in each of so many lanes."""
    hashes = array("Q", map(fnv1_32, prefixes))
    ones = array("Q", [1] * len(prefixes))
    if sys.byteorder == "big":
        hashes.byteswap()
        ones.byteswap()
    return int.from_bytes(hashes.tobytes(), "little"), int.from_bytes(ones.tobytes(), "little")
