"""What recent decisions have promised, as Replicas plugins see it: replicas per cluster and request.

Part of the public plugin API (`SchedulingUnit.reserved`). A `Promised` is a mapping that does not change; the ledger
(`scheduling/reservations.py`) makes a new one after every decision, and between two of them only some clusters differ.
So the versions of one ledger share their `Tallies`: how many replicas of a request lose their place in each cluster is
kept per request and brought up to date with what was promised and redeemed since it was asked for last.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

import orjson

Request = tuple[tuple[str, int], ...]
"""What one replica requests, sorted."""
_LOG_MAX = 50_000
"""Changes of one cluster and request that are remembered: some megabytes."""
_FEW = 2
"""Changes per cluster that are added up; when there are more, counting anew is cheaper."""
_PRIME = 2**61 - 1
_REQUESTS_MAX = 256
"""Requests that counts are kept for; when there are more they are all made anew."""


@lru_cache(maxsize=4096)
def displaced_by(other: Request, request: Request) -> int:
    """Return how many replicas of the request a pod of the other request can take the place of, at most."""
    amounts = dict(other)
    return max([1, *(-(-amounts.get(name, 0) // amount) for name, amount in request if amount)])


class Promised(dict[str, Mapping[Request, int]]):
    """Cluster → request → replicas at one moment; `weight` is the sum of `weight_of` over all of them."""

    __slots__ = ("tallies", "version", "weight")

    def __init__(self, content: Mapping[str, Mapping[Request, int]], tallies: "Tallies", weight: int) -> None:
        super().__init__(content)
        self.tallies = tallies
        self.version = tallies.version
        self.weight = weight


Changes = list[tuple[str, int]]
"""Clusters, and how many more replicas of a request are promised there, or fewer."""


class Tallies:
    """The changes of one ledger in their order, and what was counted from them. A version is how many there were."""

    def __init__(self) -> None:
        self._log: list[tuple[Request, Changes]] = []
        self._start = 0
        self._size = 0
        self._kept: dict[Request, tuple[int, defaultdict[str, int]]] = {}

    @property
    def version(self) -> int:
        """How many changes there were."""
        return self._start + len(self._log)

    def note(self, request: Request, changes: Changes) -> None:
        """Take down what changed."""
        self._size += len(changes)
        if self._size > _LOG_MAX:
            self._start += len(self._log)
            self._log.clear()
            self._kept.clear()  # Nothing that was counted earlier can be brought up to date any more.
            self._size = len(changes)
        self._log.append((request, changes))

    def displaced(self, request: Request, promised: Promised) -> Mapping[str, int]:
        """Return the counts for a request; zero, or no entry, where nothing is displaced."""
        version, counts = self._kept.get(request, (self.version, None))
        if counts is None or not 0 <= promised.version - version <= _FEW * len(promised):
            counts = defaultdict(int, _count(promised, request))
        elif version < promised.version:
            counts = counts.copy()
            for other, changes in self._log[version - self._start : promised.version - self._start]:
                each = displaced_by(other, request)
                for cluster, difference in changes:
                    counts[cluster] += difference * each
        if version <= promised.version:
            if len(self._kept) >= _REQUESTS_MAX:
                self._kept.clear()
            self._kept[request] = (promised.version, counts)
        return counts


def displaced(reserved: Mapping[str, Mapping[Request, int]], request: Request) -> Mapping[str, int]:
    """Return how many replicas of the request lose their place to promises, per cluster where any do."""
    return (
        reserved.tallies.displaced(request, reserved) if isinstance(reserved, Promised) else _count(reserved, request)
    )


@lru_cache(maxsize=16384)
def weight_of(part: str | Request) -> int:
    """Return the factor of a cluster, or of a request, in the hash of all promises.

    A promised replica adds the product of both: so the hash is kept up to date without reading all promises.
    """
    return int.from_bytes(blake2b(orjson.dumps(part), digest_size=8).digest(), "big")


def content_hash(reserved: Mapping[str, Mapping[Request, int]]) -> str:
    """Return the hash of everything that is promised."""
    weight = reserved.weight if isinstance(reserved, Promised) else _weigh(reserved)
    return f"{weight % _PRIME:016x}"


def _weigh(reserved: Mapping[str, Mapping[Request, int]]) -> int:
    return sum(
        count * weight_of(cluster) * weight_of(request)
        for cluster, held in reserved.items()
        for request, count in held.items()
    )


def _count(reserved: Mapping[str, Mapping[Request, int]], request: Request) -> dict[str, int]:
    return {
        cluster: sum(count * displaced_by(other, request) for other, count in held.items())
        for cluster, held in reserved.items()
    }
