"""Partitions of devices: how many fit beside each other within the counters that they share. Pure.

A driver offers every partition that a device can be divided into, and each consumes counters of a set. They are
counted as a scheduler allocates them, one after the other, the smallest first: of a class with partitions of several
sizes that is the most that it can have. A partition of one kind takes the place of some of another kind; `displaced`
says of how many at most.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Pool = tuple[str, str]
"""Driver and name of a pool."""
Consumption = tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
"""(set, (counter, amount) …) of each set from which a device consumes."""
Partition = tuple[tuple[str, str, str], Consumption]
"""A device as (driver, pool, name), and what it consumes; whole devices consume nothing."""
_Structure = frozenset[tuple[str, Consumption]]
_STRUCTURES_MAX = 16
"""Different devices that are compared partition by partition."""
_PAIRS_MAX = 10_000


class CounterPools:
    """The counter sets of a member, and the partitions that consume each."""

    def __init__(self) -> None:
        self._sets: dict[tuple[Pool, str], Mapping[str, int]] = {}
        self._consumers: dict[tuple[Pool, str], list[tuple[str, Consumption]]] = {}
        self._displaced: dict[tuple[str, str], int] | None = None

    def add(self, pool: Pool, counters: Mapping[str, Mapping[str, int]]) -> None:
        """Add the counter sets of a slice."""
        for name, amounts in counters.items():
            self._sets[pool, name] = amounts

    def see(self, pool: Pool, kind: str, consumes: Consumption) -> None:
        """Add a partition."""
        for name, _ in consumes:
            self._consumers.setdefault((pool, name), []).append((kind, consumes))

    def count(self, partitions: Sequence[Partition], taken: Sequence[Partition]) -> int:
        """Return how many of the partitions can be allocated one after the other beside those that are taken."""
        left: dict[tuple[Pool, str], dict[str, int]] = {}
        for device, consumes in taken:
            self._take(device[:2], consumes, left)
        smallest = sorted(partitions, key=lambda each: _size(each[1]))
        return sum(self._take(device[:2], consumes, left, is_checked=True) for device, consumes in smallest)

    def _take(
        self,
        pool: Pool,
        consumes: Consumption,
        left: dict[tuple[Pool, str], dict[str, int]],
        *,
        is_checked: bool = False,
    ) -> bool:
        parts = []
        for name, amounts in consumes:
            key = pool, name
            if key not in left:
                left[key] = dict(self._sets.get(key) or {})
            parts.append((left[key], amounts))
        if is_checked and any(
            remaining.get(counter, 0) < amount for remaining, each in parts for counter, amount in each
        ):
            return False
        for remaining, each in parts:
            for counter, amount in each:
                remaining[counter] = remaining.get(counter, 0) - amount
        return True

    def displaced(self, kind: str, kinds: Mapping[str, Any]) -> dict[str, int]:
        """Return for the other kinds how many of their devices one device of this kind displaces, 0 left out."""
        if self._displaced is None:
            self._displaced = self._compare()
        found = {other: self._displaced.get((kind, other), 0) for other in kinds}
        return {other: count for other, count in found.items() if count > (other == kind)}

    def _compare(self) -> dict[tuple[str, str], int]:
        """Return (kind, other) → devices of the other kind that one of the kind displaces, the largest of all sets."""
        result: dict[tuple[str, str], int] = {}
        seen: set[_Structure] = set()
        for (_, name), members in self._consumers.items():
            structure = frozenset((kind, _within(consumes, name)) for kind, consumes in members)
            if structure in seen:
                continue
            seen.add(structure)
            by_kind: dict[str, list[Mapping[str, int]]] = {}
            for kind, consumes in members:
                by_kind.setdefault(kind, []).append(dict(_within(consumes, name)[0][1]))
            is_exact = len(seen) <= _STRUCTURES_MAX and len(members) ** 2 <= _PAIRS_MAX
            for kind, own in by_kind.items():
                for other, others in by_kind.items():
                    count = max(_displaced_by(each, others) for each in own) if is_exact else len(others)
                    result[kind, other] = max(result.get((kind, other), 0), count)
        return result


def _displaced_by(taken: Mapping[str, int], others: Sequence[Mapping[str, int]]) -> int:
    """Return the most of `others` that one partition displaces, of those that could be allocated without it."""
    meeting = sum(1 for other in others if any(taken.get(counter, 0) and amount for counter, amount in other.items()))
    first = others[0]
    if all(other == first for other in others):
        shares = [-(-taken.get(counter, 0) // amount) for counter, amount in first.items() if amount]
        return min(meeting, max(shares, default=0))
    return meeting


def _within(consumes: Consumption, name: str) -> Consumption:
    return tuple(each for each in consumes if each[0] == name)[:1]


def _size(consumes: Consumption) -> int:
    return sum(amount for _, amounts in consumes for _, amount in amounts)
