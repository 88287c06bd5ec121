"""Explanations of divisions whose large parts are made when somebody reads them: most decisions are never looked at."""

from collections.abc import Iterator, Mapping
from typing import Any


class Explanation(Mapping[str, Any]):
    """The parts of an explanation. Functions among them are called when somebody reads their part."""

    __slots__ = ("_parts",)

    def __init__(self, parts: dict[str, Any]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Any:
        part = self._parts[name]
        if callable(part):
            part = self._parts[name] = part()
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)
