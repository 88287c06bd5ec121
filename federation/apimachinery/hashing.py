"""FNV-1, 32 bit: multiply, then xor (not FNV-1a).

Names of federated objects and the tie break of the replica planner must equal those of KubeAdmiral bit for bit. The
hash is not for security and not for large inputs.
"""

import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=1024)
def fnv1_32(text: str) -> int:
    """Return the FNV-1 hash of the text's UTF-8 bytes as an unsigned 32 bit number."""
    value = _OFFSET
    for byte in text.encode():
        value = ((value * _PRIME) & _MASK) ^ byte
    return value


def fnv1_32_each(prefixes: Sequence[str], suffix: str) -> list[int]:
    """Return the hash of every prefix followed by the suffix; for many prefixes far cheaper than `fnv1_32` for each.

    One large integer holds all hashes, 64 bits each. A hash has 32 bits and the prime 25, so no product overflows into
    the next hash.
    """
    if not prefixes:
        return []
    values, ones = _packed(tuple(prefixes))
    mask = ones * _MASK
    for byte in suffix.encode():
        values = ((values * _PRIME) & mask) ^ (ones * byte)
    hashes = array("Q", values.to_bytes(8 * len(prefixes), sys.byteorder))
    return hashes.tolist() if sys.byteorder == "little" else hashes.tolist()[::-1]


@lru_cache(maxsize=64)
def _packed(prefixes: tuple[str, ...]) -> tuple[int, int]:
    """Return an integer with the prefixes' hashes, 64 bits each, the first one lowest, and one with a 1 for each."""
    hashes = array("Q", map(fnv1_32, prefixes))
    ones = array("Q", [1] * len(prefixes))
    if sys.byteorder == "big":
        hashes.byteswap()
        ones.byteswap()
    return int.from_bytes(hashes.tobytes(), "little"), int.from_bytes(ones.tobytes(), "little")
