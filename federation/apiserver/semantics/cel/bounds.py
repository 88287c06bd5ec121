"""Upper bounds of the values of a CEL evaluation, for `budget.py`. Pure.

A bound that comes from data keeps the values themselves, so fields and items of it have the bounds of the real values.
A bound of a computed value has sizes only. Bounds live as long as one estimate; each is computed once, when it is
needed.
"""

from collections.abc import Iterable
from typing import Any, Final

SCALAR_BYTES: Final = 16
"""The size of a value without items, without the bytes of a text."""
_VALUES_MAX: Final = 20_000
"""Values of one bound; of more, only the sizes are kept."""


class Bound:
    """The largest size in bytes, with everything below, and the largest number of items of a value."""

    __slots__ = ("_at", "_cells", "_count", "_items", "_size", "is_assumed", "values")

    def __init__(
        self, size: float = SCALAR_BYTES, count: float = 0, items: "Bound | None" = None, *, is_assumed: bool = False
    ) -> None:
        """Items without a bound of their own may be as large as the value itself."""
        self._size, self._count, self._items, self._cells = size, count, items, -1.0
        self._at: dict[Any, Bound] = {}
        self.values: tuple[Any, ...] | None = None
        """The value is one of these; None if it was computed."""
        self.is_assumed = is_assumed
        """The value is unknown data or made of them."""

    @classmethod
    def of(cls, values: tuple[Any, ...]) -> "Bound":
        """Return the bound of a value that is one of `values`."""
        found = cls(-1, -1)
        found.values = values
        return found

    @property
    def size(self) -> float:
        """Return the bytes of the value with everything below."""
        if self._size < 0:
            self._size = max(map(count_bytes, self.values or ()), default=SCALAR_BYTES)
        return self._size

    @property
    def cells(self) -> float:
        """Return the number of keys and values, with those of lists and maps below."""
        if self._cells < 0:
            if self._items is None or self.values is not None:
                self._cells = self.size / SCALAR_BYTES if self.count else 1
            else:
                self._cells = 1 + self.count * self._items.cells
        return self._cells

    @property
    def is_anything(self) -> bool:
        """Return True for a value of unknown type with items of unknown types."""
        return self.values is None and self._items is None and self.count > 0

    @property
    def count(self) -> float:
        """Return the number of items or entries; 0 for a text or number."""
        if self._count < 0:
            self._count = max(
                (len(value) for value in self.values or () if isinstance(value, (dict, list))),
                default=0,
            )
        return self._count

    def items(self) -> "Bound":
        """Return the bound of each item of a list, each key or value of a map."""
        if self.values is None:
            return self if self._items is None else self._items
        if self._items is None:
            self._items = Bound.of(tuple(_items(self.values)))
        return self._items

    def keys(self) -> "Bound":
        """Return the bound of what a loop iterates: items of lists, keys of maps."""
        if self.values is None:
            return self.items()
        key = ("keys",)
        if key not in self._at:
            self._at[key] = Bound.of(tuple(inner for value in self.values for inner in _iterated(value)))
        return self._at[key]

    def at(self, key: Any) -> "Bound":
        """Return the bound of a field or of an item at a known position."""
        if self.values is None:
            return self.items() if self.count else self
        if key not in self._at:
            self._at[key] = Bound.of(tuple(_selected(self.values, key)))
        return self._at[key]


def join(bounds: Iterable[Bound]) -> Bound:
    """Return the bound of a value that has one of these bounds."""
    found = list(bounds)
    if len(found) == 1:
        return found[0]
    if all(bound.values is not None for bound in found):
        values = {id(value): value for bound in found for value in bound.values or ()}
        if len(values) <= _VALUES_MAX:
            return Bound.of(tuple(values.values()))
    items = None
    if not any(bound.is_anything for bound in found):
        inner = [bound.items() for bound in found if bound.count]
        items = join(inner) if inner else Bound()
    return Bound(
        max((bound.size for bound in found), default=SCALAR_BYTES),
        max((bound.count for bound in found), default=0),
        items,
        is_assumed=any(bound.is_assumed for bound in found),
    )


def count_bytes(value: Any) -> int:
    """Return the size of a value of JSON: its texts and `SCALAR_BYTES` for each key and value."""
    total, pending = 0, [value]
    while pending:
        current = pending.pop()
        total += SCALAR_BYTES
        if isinstance(current, str):
            total += len(current) if current.isascii() else len(current.encode(errors="surrogatepass"))
        elif isinstance(current, dict):
            pending += current.keys()
            pending += current.values()
        elif isinstance(current, list):
            pending += current
        elif isinstance(current, (bytes, bytearray)):
            total += len(current)
    return total


def _items(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, list):
            yield from value


def _iterated(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (dict, list)) else ()


def _selected(values: Iterable[Any], key: Any) -> Iterable[Any]:
    for value in values:
        if isinstance(value, dict):
            if key in value:
                yield value[key]
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            yield value[key]
