"""Caching of functions of one text, for short texts only.

The number of entries alone does not limit the memory of a cache whose keys come from requests: a path or selector may
have 64 KB and a JSON pointer megabytes, and a client chooses a new one for each request.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

K = TypeVar("K", str, bytes)
V = TypeVar("V")


def cache_short(entries_max: int, *, chars_max: int = 256) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Return a decorator that caches the results for texts of at most `chars_max` characters."""

    def decorate(function: Callable[[K], V]) -> Callable[[K], V]:
        cached = lru_cache(maxsize=entries_max)(function)

        @wraps(function)
        def call(text: K) -> V:
            return cached(text) if len(text) <= chars_max else function(text)

        return call

    return decorate
