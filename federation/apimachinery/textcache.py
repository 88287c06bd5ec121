"""Caching of functions of one text, for short texts only.

The number of entries alone does not limit the memory of a cache whose keys come from requests: a path or selector may
have 64 KB and a JSON pointer megabytes, and a client chooses a new one for each request.
"""

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K", str, bytes)
V = TypeVar("V")


def cache_short(entries_max: int, *, chars_max: int = 256) -> Callable[[Callable[[K], V]], Callable[[K], V]]:
    """Return a decorator that caches the results for texts of at most `chars_max` characters."""

    def decorate(function: Callable[[K], V]) -> Callable[[K], V]:
        return _Cache(function, entries_max, chars_max).__getitem__

    return decorate


class _Cache(dict[Any, Any]):
    """Results by text. A lookup of a known text calls no Python function; a full cache is emptied."""

    def __init__(self, function: Callable[[Any], Any], entries_max: int, chars_max: int) -> None:
        super().__init__()
        self._function = function
        self._entries_max = entries_max
        self._chars_max = chars_max

    def __missing__(self, text: str | bytes) -> Any:
        result = self._function(text)
        if len(text) <= self._chars_max:
            if len(self) >= self._entries_max:
                self.clear()
            self[text] = result
        return result
