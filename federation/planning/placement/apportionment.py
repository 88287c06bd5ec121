"""Apportion a number over clusters by weight, as near to the weights as whole numbers can be.

This is Webster's method within the quota (Still 1979), extended to a least and a most number per cluster. The share of
a cluster is its weight times a factor that is the same for all, raised to its least or cut to its most number; the
factor makes the shares add up to the total. Every cluster gets its share rounded down or up, and a larger total never
gives a cluster less (docs/decisions/0081).

The total is handed out one by one. The next one of a cluster is *released* when the share exceeds what the cluster has,
and *due* when the share reaches one more. Of the released ones, the one whose share passes the half first is given:
that is Webster's order. It is passed over if the total would then not suffice for all that is due before it. Where the
factor is an integer all shares are whole, so the work starts there instead of at zero, and clusters of one weight and
number are given theirs together. Pure integer arithmetic, except for comparisons of quotients in which floating point
is exact. Which numbers occur in a group of equal clusters does not depend on the workload and is cached; which cluster
of the group gets which does. Read next: `nearest.py`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush
from math import gcd
from operator import truediv
from typing import Any, NamedTuple

from federation.apimachinery.hashing import fnv1_32_each
from federation.planning.placement.replicas import Preference

_EXACT_MAX = 1 << 25
"""Quotients of smaller numbers are equal as floats only if they are equal."""
_ROOM_MAX = 255


class _Group(NamedTuple):
    """Clusters with equal bounds; a `most` of the total is no bound."""

    weight: int
    least: int
    most: int
    clusters: int

    def share(self, factor: int) -> int:
        """Return the share of one cluster at an integer factor."""
        return min(max(self.weight * factor, self.least), self.most)


class _Numbers(NamedTuple):
    """The result of a group: every cluster has `number`, and `extra` of them have one more."""

    number: int
    extra: int


def apportion(
    total: int, shares: Mapping[str, Preference], key: str = "", *, is_removal: bool = False
) -> dict[str, int]:
    """Return the number of each cluster; they add up to the total as far as the bounds allow.

    Ties go to the cluster with fewer replicas, then to the one with the lower bounds, then to the lower hash of cluster
    and key; when replicas are removed, that cluster is the first to lose one, as with KubeAdmiral's formula. When the
    total does not suffice for all minimums, clusters get theirs in the order of their weights. A cluster without weight
    gets no more than its minimum.
    """
    alike: dict[Preference, list[str]] = {}
    for cluster, own in shares.items():
        alike.setdefault(own, []).append(cluster)
    if total < sum(_least(own) * len(clusters) for own, clusters in alike.items()):
        return _fill_minimums(total, shares, key)
    result = dict.fromkeys(shares, 0)
    # The order of the groups decides ties, so it must not depend on the total, which cuts maximums.
    ordered = sorted(alike, key=_bounds_of)
    groups = tuple([_to_group(own, len(alike[own]), total) for own in ordered])
    for (number, extra), own in zip(_number(total, groups), ordered, strict=True):
        clusters = alike[own]
        if number:
            for cluster in clusters:
                result[cluster] = number
        if extra:
            ranked = sorted(zip(fnv1_32_each(clusters, key), clusters, strict=True), reverse=is_removal)
            for _, cluster in ranked[:extra]:
                result[cluster] = number + 1
    return result


def _least(own: Preference) -> int:
    """Return the minimum, cut to the maximum."""
    return own.minimum if own.maximum is None else min(own.minimum, own.maximum)


def _bounds_of(own: Preference) -> tuple[int, int, bool, int]:
    return own.weight, own.minimum, own.maximum is None, own.maximum or 0


def _to_group(own: Preference, clusters: int, total: int) -> _Group:
    least = _least(own)
    most = total if own.maximum is None else min(own.maximum, total)
    return _Group(own.weight, least, most if own.weight > 0 else least, clusters)


def _fill_minimums(total: int, shares: Mapping[str, Preference], key: str) -> dict[str, int]:
    """Give the minimums by descending weight, then in the order of the hash of cluster and key."""
    result = dict.fromkeys(shares, 0)
    ranked = sorted(zip(fnv1_32_each(list(shares), key), shares, strict=True), key=lambda e: (-shares[e[1]].weight, *e))
    for _, cluster in ranked:
        result[cluster] = min(_least(shares[cluster]), total)
        total -= result[cluster]
    return result


@lru_cache(maxsize=512)
def _number(total: int, groups: tuple[_Group, ...]) -> Sequence[_Numbers]:
    """Return the numbers of each group; the total suffices for all minimums."""
    if sum(group.most * group.clusters for group in groups) <= total:
        return [_Numbers(group.most, 0) for group in groups]
    divisor = gcd(*[group.weight for group in groups if group.most > group.least])
    groups = tuple([group._replace(weight=group.weight // divisor) for group in groups])
    factor = _factor_at(total, groups)
    held = [group.share(factor) for group in groups]
    given = sum(number * group.clusters for number, group in zip(held, groups, strict=True))
    if given == total:
        return [_Numbers(number, 0) for number in held]
    return _HandOut(total, groups, held, factor).run()


def _factor_at(total: int, groups: Iterable[_Group]) -> int:
    """Return the largest integer factor at which the shares add up to at most the total."""
    if all((group.least, group.most) in ((0, total), (0, 0)) for group in groups):
        return total // sum(group.weight * group.clusters for group in groups if group.most)
    low, high = 0, total
    while low < high:
        middle = (low + high + 1) // 2
        if sum(group.share(middle) * group.clusters for group in groups) <= total:
            low = middle
        else:
            high = middle - 1
    return low


class _Line(NamedTuple):
    """From this factor on, the factor at a number of replicas is `(number - settled) / slope`.

    `slope` is the sum of the weights of the clusters whose share grows, `settled` is what the others have.
    """

    factor: Any
    settled: int
    slope: int


class _Next(NamedTuple):
    """The next replica of the clusters of a group: its rank in Webster's order, and when it is due."""

    rank: Any
    held: int
    group: int
    due: int


class _HandOut:
    """Replicas handed out one by one, beginning at an integer factor."""

    def __init__(self, total: int, groups: Sequence[_Group], held: list[int], factor: int) -> None:
        self._total, self._groups, self._held = total, groups, held
        self._extra = [0] * len(groups)
        largest = max(2 * total, *[group.weight for group in groups])
        self._ratio: Any = truediv if largest < _EXACT_MAX else Fraction
        self._given = self._first = sum(number * group.clusters for number, group in zip(held, groups, strict=True))
        self._lines = list(self._to_lines(factor))
        self._factors = [line.factor for line in self._lines]
        self._waiting: list[tuple[int, int]] = []
        """Heap of (number of replicas at which the next one of a group is released, group)."""
        self._ready: list[_Next | None] = [None] * len(groups)
        """By group what is released; the heaps also have what was given."""
        self._by_rank: list[_Next] = []
        self._by_due: list[tuple[int, _Next]] = []
        self._room = bytearray(1)
        """By number of replicas: how many others may be given before it without delaying what is due by then.

        It is cut to 255, so that it can say too little. Then the replica that is due first is given, which is right.
        """
        self._promised = 0
        """How many replicas are due within `_room`."""
        self._dues: list[tuple[int, int, int]] = []
        """Heap of what is due after it: number of replicas, group, what its clusters have then."""
        for at, number in enumerate(held):
            self._wait(at)
            self._promise(at, number + 1)

    def _to_lines(self, factor: int) -> Iterable[_Line]:
        """Yield the relation of factor and number, which changes where shares leave a minimum or reach a maximum."""
        settled = slope = 0
        changes: list[tuple[Any, int, int]] = []
        for (weight, least, most, clusters), held in zip(self._groups, self._held, strict=True):
            if held == most:
                settled += most * clusters
                continue
            if most < self._total:
                changes.append((self._ratio(most, weight), most * clusters, -weight * clusters))
            if least > weight * factor:
                settled += least * clusters
                changes.append((self._ratio(least, weight), -least * clusters, weight * clusters))
            else:
                slope += weight * clusters
        yield _Line(factor, settled, slope)
        for at, more_settled, more_slope in sorted(changes):
            settled, slope = settled + more_settled, slope + more_slope
            yield _Line(at, settled, slope)

    def _number_at(self, numerator: int, weight: int) -> int:
        """Return `weight` times the number of replicas at the factor `numerator / weight`."""
        line = self._lines[0]
        if len(self._lines) > 1:
            line = self._lines[max(0, bisect_right(self._factors, self._ratio(numerator, weight)) - 1)]
        return line.settled * weight + line.slope * numerator

    def run(self) -> Sequence[_Numbers]:
        """Hand out the total, which the bounds allow."""
        while self._given < self._total:
            self._release()
            chosen, amount = self._choose()
            at = chosen.group
            self._given += amount
            self._extra[at] += amount
            if self._extra[at] == self._groups[at].clusters:
                self._held[at] += 1
                self._extra[at] = 0
                self._ready[at] = None
                self._wait(at)
        return list(map(_Numbers, self._held, self._extra))

    def _wait(self, at: int) -> None:
        """Let a group wait until the share of its clusters exceeds what they have."""
        weight, held = self._groups[at].weight, self._held[at]
        if held < self._groups[at].most:
            heappush(self._waiting, (self._number_at(held, weight) // weight + 1, at))

    def _release(self) -> None:
        """Make ready what is released at the next number."""
        while self._waiting and self._waiting[0][0] <= self._given + 1:
            _, at = heappop(self._waiting)
            held, due = self._held[at], self._due(at, self._held[at] + 1)
            self._ready[at] = ready = _Next(self._ratio(2 * held + 1, self._groups[at].weight), held, at, due)
            heappush(self._by_rank, ready)
            heappush(self._by_due, (due, ready))

    def _choose(self) -> tuple[_Next, int]:
        """Return what is given next, and how many of it at once."""
        number, until = self._given + 1, self._waiting[0][0] if self._waiting else self._total + 1
        while self._ready[(chosen := self._by_rank[0]).group] is not chosen:
            heappop(self._by_rank)
        self._look_ahead(chosen.due)
        full = self._room.find(0, number - self._first, chosen.due - self._first)
        if full >= 0:
            # Up to the number that leaves no room, only what is due by then is given.
            chosen = self._first_due(full + self._first)
            until = min(until, full + self._first + 1)
        room = self._room[number - self._first : chosen.due - self._first]
        at, amount = chosen.group, 1
        left = min(self._groups[at].clusters - self._extra[at], self._total - self._given, until - number)
        while amount < min(left, len(room)) and room[amount - 1] == amount and min(room[amount:]) > amount:
            amount += 1
        if len(room) > amount:
            self._room[number + amount - self._first : chosen.due - self._first] = room[amount:].translate(
                _less(amount)
            )
        return chosen, amount

    def _first_due(self, number: int) -> _Next:
        """Return the first in Webster's order of what is due by this number."""
        found: list[tuple[int, _Next]] = []
        while self._by_due and (not found or self._by_due[0][0] <= number):
            entry = heappop(self._by_due)
            if self._ready[entry[1].group] is entry[1]:
                found.append(entry)
        for entry in found:
            heappush(self._by_due, entry)
        return min(entry[1] for entry in found if entry[0] <= max(number, found[0][0]))

    def _look_ahead(self, until: int) -> None:
        """Extend the room to the numbers before this one."""
        while len(self._room) + self._first < until:
            number = len(self._room) + self._first
            while self._dues and self._dues[0][0] <= number:
                _, at, held = heappop(self._dues)
                self._promised += self._groups[at].clusters
                self._promise(at, held + 1)
            self._room.append(min(_ROOM_MAX, number - self._first - self._promised))

    def _promise(self, at: int, held: int) -> None:
        """Note when the clusters of a group are due to have this number."""
        if held <= self._groups[at].most:
            heappush(self._dues, (self._due(at, held), at, held))

    def _due(self, at: int, held: int) -> int:
        """Return the number of replicas at which the share of a group's clusters reaches this number."""
        weight = self._groups[at].weight
        return -(-self._number_at(held, weight) // weight)


@lru_cache(maxsize=_ROOM_MAX + 1)
def _less(amount: int) -> bytes:
    """Return the table that takes an amount away from bytes, down to 0."""
    return bytes(max(0, room - amount) for room in range(256))
