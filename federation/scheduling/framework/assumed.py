"""Assumed replicas as Replicas plugins see them: cluster → request → replicas that no member's report shows yet.

Part of the public plugin API (`SchedulingUnit.assumed`). An `AssumedReplicas` is an immutable version of
`AssumeCache` (`scheduling/assumedreplicas.py`), which creates one per decision. Versions of one cache share their
`DisplacedCounts`: per request, how many replicas lose their capacity in each cluster, for all clusters at once.
"""

import sys
from array import array
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from typing import Any

import orjson

from federation.scheduling.framework.clustergroup import picker

Request = tuple[tuple[str, int], ...]
"""The sorted resource request of one replica."""
_CHANGES_MAX = 50_000
"""Length limit of the change log, some megabytes."""
_PRIME = 2**61 - 1
_REQUESTS_MAX = 256
"""Cache size. When counts for more requests are cached, the cache is cleared."""


@lru_cache(maxsize=4096)
def replicas_displaced_by(other: Request, request: Request) -> int:
    """Return the most replicas of the request that one pod of the other request can displace."""
    amounts = dict(other)
    return max([1, *(-(-amounts.get(name, 0) // amount) for name, amount in request if amount)])


class AssumedReplicas(dict[str, Mapping[Request, int]]):
    """Cluster → request → replicas in one version; `weight` is the sum that `hash_of_assumed` is made from."""

    __slots__ = ("displaced", "version", "weight")

    def __init__(self, content: Mapping[str, Mapping[Request, int]], displaced: "DisplacedCounts", weight: int) -> None:
        super().__init__(content)
        self.displaced = displaced
        self.version = displaced.version
        self.weight = weight


Changes = list[tuple[str, int]]
"""Clusters, and by how much the assumed replicas of one request change there."""


class DisplacedCounts:
    """The change log of one `AssumeCache`, and counts by request. A version is the number of changes before it.

    The assumed replicas of a request in all clusters are one integer, with a lane of 32 bits for each cluster, in the
    order in which clusters were first seen. Adding the replicas of two requests, times what each of them displaces, is
    one addition for all clusters. A lane may be negative: the integer is the sum of lane·2^(32·number).
    """

    def __init__(self) -> None:
        self._log: list[tuple[Request, Changes]] = []
        self._start = 0
        self._size = 0
        self._numbers: dict[str, int] = {}
        self._packed: dict[Request, int] = {}
        self._bounds: dict[Request, int] = {}
        """No lane of a request is farther from 0."""
        self._counts: dict[Request, tuple[int, list[int]]] = {}
        """The counts of one version, for those who ask again."""

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._start + len(self._log)

    def between(self, before: int, after: int) -> "list[tuple[Request, Changes]] | None":
        """Return the changes between two versions; None if the log has them no more."""
        return None if before < self._start else self._log[before - self._start : after - self._start]

    def record(self, request: Request, changes: Changes) -> None:
        """Add changes to the log."""
        self._size += len(changes)
        if self._size > _CHANGES_MAX:
            self._start += len(self._log)
            self._log.clear()
            self._size = len(changes)
        self._log.append((request, changes))
        before, bound, most = self._packed.pop(request, 0), self._bounds.pop(request, 0), _most(changes)
        if packed := before + self._pack(changes):
            if bound + most > _LANE_MAX >= bound:
                bound = self._bound_of(before)
            self._packed[request], self._bounds[request] = packed, bound + most

    def counts_for(self, request: Request, assumed: AssumedReplicas) -> dict[str, int]:
        """Return displaced replicas by cluster, without clusters in which none is."""
        counts = self._counts_of(request, assumed)
        return {name: count for name, count in zip(self._numbers, counts, strict=False) if count}

    def each(
        self, request: Request, assumed: AssumedReplicas, clusters: tuple[str, ...], lasting: dict[Any, Any]
    ) -> tuple[int, ...]:
        """Return displaced replicas for each cluster; `lasting` caches what depends on the clusters only."""
        pick = lasting.get(self)
        if pick is None:
            numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in clusters]
            pick = lasting[self] = picker(numbers)
        column: tuple[int, ...] = pick(self._counts_of(request, assumed))
        return column

    def _counts_of(self, request: Request, assumed: AssumedReplicas) -> list[int]:
        """Return displaced replicas by the number of the cluster."""
        version, counts = self._counts.get(request, (-1, []))
        if version == assumed.version and len(counts) == len(self._numbers):
            return counts
        summed = self._sum(request, assumed.version)
        if summed is None:
            found = _count_displaced(assumed, request)
            for name in found:
                self._numbers.setdefault(name, len(self._numbers))
            counts = list(map(found.get, self._numbers, repeat(0)))
        else:
            counts = _to_lanes(summed, len(self._numbers))
        if len(self._counts) >= _REQUESTS_MAX:
            self._counts.clear()
        self._counts[request] = (assumed.version, counts)
        return counts

    def _sum(self, request: Request, version: int) -> int | None:
        """Return the counts of a version as lanes; None if it is too old, or a count may not fit into its lane."""
        if version < self._start:
            return None
        packed, bound = 0, 0
        for other, lanes in self._packed.items():
            each = replicas_displaced_by(other, request)
            packed += lanes if each == 1 else lanes * each
            bound += self._bounds[other] * each
        for other, changes in self._log[version - self._start :]:
            each = replicas_displaced_by(other, request)
            packed -= self._pack(changes) * each
            bound += _most(changes) * each
        if bound <= _LANE_MAX:
            return packed
        for other, lanes in self._packed.items():
            if self._bounds[other] <= _LANE_MAX:
                self._bounds[other] = self._bound_of(lanes)
        return None

    def _bound_of(self, packed: int) -> int:
        """Return the farthest lane from 0, because a bound that is only added to grows for ever."""
        return max(map(abs, _to_lanes(packed, len(self._numbers))), default=0)

    def _pack(self, changes: Changes) -> int:
        """Return changes as lanes."""
        numbers = self._numbers
        for cluster in [cluster for cluster, _ in changes if cluster not in numbers]:
            numbers.setdefault(cluster, len(numbers))
        if len(changes) > _FEW:
            lanes = array(_LANE, bytes(_LANE_BYTES * len(numbers)))
            try:
                for cluster, difference in changes:
                    lanes[numbers[cluster]] += difference
                return _from_lanes(lanes)
            except OverflowError:
                pass  # the sum below is exact, too
        return sum([difference << 8 * _LANE_BYTES * numbers[cluster] for cluster, difference in changes])


_LANE, _LANE_BYTES, _LANE_MAX = "i", 4, 2**31 - 1
_FEW = 8
"""Up to so many changes are added one by one."""


def _most(changes: Changes) -> int:
    """Return a bound of what changes add to a lane, or take away."""
    return sum([abs(difference) for _, difference in changes])


@lru_cache(maxsize=16)
def _signs(count: int) -> int:
    """Return lanes with nothing but the sign."""
    return int.from_bytes(b"\0\0\0\x80" * count, "little")


def _from_lanes(lanes: "array[int]") -> int:
    """Return signed lanes as one integer."""
    if sys.byteorder == "big":
        lanes.byteswap()
    signs = _signs(len(lanes))  # two's complement: turning the sign over adds 2^31 to each lane
    return (int.from_bytes(lanes.tobytes(), "little") ^ signs) - signs


def _to_lanes(packed: int, count: int) -> list[int]:
    """Return the signed lanes of an integer, each of which fits."""
    signs = _signs(count)
    lanes = array(_LANE, ((packed + signs) ^ signs).to_bytes(_LANE_BYTES * count, "little"))
    if sys.byteorder == "big":
        lanes.byteswap()
    return lanes.tolist()


def displaced_replicas(assumed: Mapping[str, Mapping[Request, int]], request: Request) -> Mapping[str, int]:
    """Return, by cluster, how many replicas of the request have no capacity left because of assumed replicas."""
    if isinstance(assumed, AssumedReplicas):
        return assumed.displaced.counts_for(request, assumed)
    return _count_displaced(assumed, request)


@lru_cache(maxsize=16384)
def hash_weight_of(part: str | Request) -> int:
    """Return the factor of a cluster, or of a request, in the hash of all assumed replicas.

    Each assumed replica adds the product of both, so that the hash is updated without reading all entries.
    """
    return int.from_bytes(blake2b(orjson.dumps(part), digest_size=8).digest(), "big")


def hash_of_assumed(assumed: Mapping[str, Mapping[Request, int]]) -> str:
    """Return the hash of all assumed replicas."""
    weight = assumed.weight if isinstance(assumed, AssumedReplicas) else _total_weight(assumed)
    return f"{weight % _PRIME:016x}"


def _total_weight(assumed: Mapping[str, Mapping[Request, int]]) -> int:
    return sum(
        count * hash_weight_of(cluster) * hash_weight_of(request)
        for cluster, counts in assumed.items()
        for request, count in counts.items()
    )


def _count_displaced(assumed: Mapping[str, Mapping[Request, int]], request: Request) -> dict[str, int]:
    return {
        cluster: sum(count * replicas_displaced_by(other, request) for other, count in counts.items())
        for cluster, counts in assumed.items()
    }
