"""The one hash of the domain: FNV-1, 32 bit (multiply, then xor; not FNV-1a).

Generated names (planning/naming.py) and the tie break of the spread planner (planning/placement/replicas.py) must agree
with KubeAdmiral's bit for bit, so there is exactly one implementation. It is not for security and not for large inputs.
"""

from collections.abc import Iterable
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


def fnv1_32_each(prefixes: Iterable[str], suffix: str) -> list[int]:
    """Return the hash of every prefix followed by the suffix; much cheaper than one by one for many prefixes."""
    values = [fnv1_32(prefix) for prefix in prefixes]
    for byte in suffix.encode():
        values = [((value * _PRIME) & _MASK) ^ byte for value in values]
    return values
