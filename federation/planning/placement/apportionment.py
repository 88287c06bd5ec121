"""Apportion a number over clusters by weight, as near to the weights as whole numbers can be.

This is the quota method of Balinski and Young (1975), extended to a least and a most number per cluster. The share of a
cluster is its weight times a factor that is the same for all, raised to its least or cut to its most number; the factor
makes the shares add up to the total. Every cluster gets its share rounded down or up, and a larger total never gives a
cluster less (docs/decisions/0081).

The total is handed out one by one. The next one of a cluster is *released* when the share exceeds what the cluster has,
and *due* when the share reaches one more. The released one that is due first is given, which is the order that meets
every due date if any order does. Where the factor is an integer all shares are whole, so the work starts there instead
of at zero, and clusters of one weight and number are given theirs together. Pure integer arithmetic, except for
comparisons of quotients in which floating point is exact. Which numbers occur in a group of equal clusters does not
depend on the workload and is cached; which cluster of the group gets which does. Read next: `nearest.py`.
"""

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
    return _HandOut(total, groups, held, factor).run(given)


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


class _HandOut:
    """Replicas handed out one by one, beginning at an integer factor.

    The factor at a number of replicas is `(number - settled) / slope`: `slope` is the sum of the weights of the
    clusters whose share grows, `settled` what the others have. Both change where a share leaves its minimum or reaches
    its maximum.
    """

    def __init__(self, total: int, groups: Sequence[_Group], held: list[int], factor: int) -> None:
        self._total, self._groups, self._held = total, groups, held
        self._extra = [0] * len(groups)
        largest = max(total, *[group.weight for group in groups])
        self._ratio: Any = truediv if largest < _EXACT_MAX else Fraction
        self._settled = self._slope = 0
        self._changes: list[tuple[Any, int, int, int, int]] = []
        """Heap of (factor, its numerator and denominator, change of `slope`, change of `settled`)."""
        self._waiting: list[tuple[Any, int]] = []
        self._ready: list[tuple[Any, int, int]] = []
        for at, group in enumerate(groups):
            self._add(at, group, factor)

    def _add(self, at: int, group: _Group, factor: int) -> None:
        weight, least, most, clusters = group
        if self._held[at] == most:
            self._settled += most * clusters
            return
        if most < self._total:
            heappush(self._changes, (self._ratio(most, weight), most, weight, -weight * clusters, most * clusters))
        if least > weight * factor:
            self._settled += least * clusters
            heappush(self._changes, (self._ratio(least, weight), least, weight, weight * clusters, -least * clusters))
        else:
            self._slope += weight * clusters
        heappush(self._waiting, (self._ratio(self._held[at], weight), at))

    def run(self, given: int) -> Sequence[_Numbers]:
        """Hand out from `given` to the total, which the bounds allow."""
        groups, held, extra, total = self._groups, self._held, self._extra, self._total
        while given < total:
            self._advance(given + 1)
            at = self._ready[0][2]
            left = groups[at].clusters - extra[at]
            amount = left if left == 1 else min(left, total - given, self._unchanged_for(given))
            given += amount
            extra[at] += amount
            if amount == left:
                heappop(self._ready)
                held[at] += 1
                extra[at] = 0
                if held[at] < groups[at].most:
                    heappush(self._waiting, (self._ratio(held[at], groups[at].weight), at))
        return list(map(_Numbers, held, extra))

    def _advance(self, number: int) -> None:
        """Move to the factor of this number of replicas, and release what the shares exceed there."""
        while self._changes:
            _, numerator, weight, growth, settled = self._changes[0]
            if numerator * self._slope > (number - self._settled) * weight:
                break
            heappop(self._changes)
            self._slope += growth
            self._settled += settled
        while self._waiting:
            at = self._waiting[0][1]
            weight, held = self._groups[at].weight, self._held[at]
            if held * self._slope >= (number - self._settled) * weight:
                break
            heappop(self._waiting)
            heappush(self._ready, (self._ratio(held + 1, weight), held, at))

    def _unchanged_for(self, given: int) -> int:
        """Return how many replicas can be handed out before another release or another slope, at least 1."""
        number = self._total
        if self._waiting:
            at = self._waiting[0][1]
            number = self._settled + self._held[at] * self._slope // self._groups[at].weight
        if self._changes:
            _, numerator, weight, _, _ = self._changes[0]
            number = min(number, self._settled - (-numerator * self._slope // weight) - 1)
        return max(1, number - given)
