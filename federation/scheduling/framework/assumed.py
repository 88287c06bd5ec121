"""Assumed replicas as Replicas plugins see them: cluster → request → replicas that no member's report shows yet.

Part of the public plugin API (`SchedulingUnit.assumed`). An `AssumedReplicas` is an immutable version of
`AssumeCache` (`scheduling/assumedreplicas.py`), which creates one per decision. Versions of one cache share their
`DisplacedCounts`: per request, how many replicas lose their capacity in each cluster. These counts are updated with the
changes between two versions, because only a few of hundreds of clusters differ.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat
from typing import Any, NamedTuple

import orjson

from federation.scheduling.framework.clustergroup import picker

Request = tuple[tuple[str, int], ...]
"""The sorted resource request of one replica."""
_CHANGES_MAX = 50_000
"""Length limit of the change log, some megabytes."""
_REPLAYED_MAX = 2
"""Changes per cluster up to which counts are updated; with more, counting again is cheaper."""
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


class _Logged(NamedTuple):
    request: Request
    changes: Changes
    by_difference: Sequence[tuple[int, Sequence[int]]]
    """The numbers of the clusters whose replicas change by the same difference."""


class DisplacedCounts:
    """The change log of one `AssumeCache`, and counts by request. A version is the number of changes before it.

    Counts are lists by the number of the cluster, in the order in which clusters were first seen.
    """

    def __init__(self) -> None:
        self._log: list[_Logged] = []
        self._start = 0
        self._size = 0
        self._numbers: dict[str, int] = {}
        self._counts: dict[Request, tuple[int, list[int]]] = {}

    @property
    def version(self) -> int:
        """The number of changes so far."""
        return self._start + len(self._log)

    def between(self, before: int, after: int) -> "list[tuple[Request, Changes]] | None":
        """Return the changes between two versions; None if the log has them no more."""
        if before < self._start:
            return None
        return [each[:2] for each in self._log[before - self._start : after - self._start]]

    def record(self, request: Request, changes: Changes) -> None:
        """Add changes to the log."""
        self._size += len(changes)
        if self._size > _CHANGES_MAX:
            self._start += len(self._log)
            self._log.clear()
            self._counts.clear()  # Without the log no earlier counts can be updated.
            self._size = len(changes)
        numbers, found = self._numbers, defaultdict[int, list[int]](list)
        for cluster, difference in changes:
            if cluster not in numbers:
                numbers[cluster] = len(numbers)
            found[difference].append(numbers[cluster])
        self._log.append(_Logged(request, changes, list(found.items())))

    def counts_for(self, request: Request, assumed: AssumedReplicas) -> dict[str, int]:
        """Return displaced replicas by cluster, without clusters in which none is."""
        counts = self._update(request, assumed)
        return {name: count for name, count in zip(self._numbers, counts, strict=False) if count}

    def each(
        self, request: Request, assumed: AssumedReplicas, clusters: tuple[str, ...], lasting: dict[Any, Any]
    ) -> tuple[int, ...]:
        """Return displaced replicas for each cluster; `lasting` caches what depends on the clusters only."""
        pick = lasting.get(self)
        if pick is None:
            numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in clusters]
            pick = lasting[self] = picker(numbers)
        column: tuple[int, ...] = pick(self._update(request, assumed))
        return column

    def _update(self, request: Request, assumed: AssumedReplicas) -> list[int]:
        version, counts = self._counts.get(request, (self.version, None))
        if counts is None or not 0 <= assumed.version - version <= _REPLAYED_MAX * len(assumed):
            found = _count_displaced(assumed, request)
            for name in found:
                self._numbers.setdefault(name, len(self._numbers))
            counts = list(map(found.get, self._numbers, repeat(0)))
        else:
            counts = counts.copy() if version < assumed.version else counts
            counts += repeat(0, len(self._numbers) - len(counts))
            for logged in self._log[version - self._start : assumed.version - self._start]:
                each = replicas_displaced_by(logged.request, request)
                for difference, numbers in logged.by_difference:
                    more = difference * each
                    for number in numbers:
                        counts[number] += more
        if version <= assumed.version:
            if len(self._counts) >= _REQUESTS_MAX:
                self._counts.clear()
            self._counts[request] = (assumed.version, counts)
        return counts


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
