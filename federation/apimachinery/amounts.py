"""Counts and amounts of resources as people read them: `1 object`, `1.5Gi`, `east, west and 3 more`. Pure."""

from collections.abc import Sequence

_UNITS = ((2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


def to_count(number: float, noun: str) -> str:
    """Return `1 replica`, `2 replicas`; the plural of the noun ends in s."""
    return f"{number:g} {noun}" if number == 1 else f"{number:.0f} {noun}s"


def first_of(items: Sequence[object], most: int, *, separator: str = ", ") -> str:
    """Return the first `most` items and how many more there are: `a, b and 3 more`, or `a; b; and 3 more`."""
    text, more = separator.join(map(str, items[:most])), len(items) - most
    return f"{text}{'; ' if separator == '; ' else ' '}and {more} more" if more > 0 else text


def to_amount(resource: str, value: int | None) -> str:
    """Return an amount of a resource: cpu in cores (`value` is in millicores), others with a binary unit: 1.5Gi.

    `-` stands for an unknown amount.
    """
    if value is None:
        return "-"
    if resource == "cpu":
        return f"{value / 1000:,.3f}".rstrip("0").rstrip(".")
    for size, unit in _UNITS if resource != "pods" else ():
        if abs(value) >= size:
            return f"{value / size:,.1f}".removesuffix(".0") + unit
    return str(value)
