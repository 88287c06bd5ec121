"""Room that recent decisions have promised and that members' reports do not show yet.

A member reports what is free every few seconds; a hundred decisions may be made in between, all from the same report.
Each decision that gives a cluster more replicas takes a promise down here, and the next decision's Replicas step counts
it as used (`SchedulingUnit.reserved`). A promise lapses as far as a later report shows that so much less is free, the
oldest first, and in any case after a while.

Pure: time is an argument. What is lost in a restart only means less protection for a few seconds. The schedule
controller owns one; nothing of it is stored.
"""

from collections import deque
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from federation.scheduling.framework.promised import Promised, Request, Tallies, weight_of
from federation.scheduling.framework.types import Resources


class _Promise(NamedTuple):
    request: Request
    replicas: int
    until_s: float


class Reservations:
    """Promises by cluster and unit. `lifetime_s` bounds how long one counts without being seen in a report."""

    def __init__(self, lifetime_s: float = 60.0) -> None:
        self._lifetime_s = lifetime_s
        self._promises: dict[str, dict[Hashable, _Promise]] = {}
        self._clusters_of: dict[Hashable, set[str]] = {}
        self._expiries: deque[tuple[float, str, Hashable]] = deque()
        self._sums: dict[str, dict[Request, int]] = {}
        self._tallies = Tallies()
        self._weight = 0
        self._view = Promised({}, self._tallies, 0)
        self._changed: set[str] = set()

    def promised(self, now_s: float) -> Promised:
        """Return what is promised per cluster and request; the mapping does not change any more."""
        while self._expiries and self._expiries[0][0] <= now_s:
            until_s, cluster, key = self._expiries.popleft()
            promise = self._promises.get(cluster, {}).get(key)
            if promise is not None and promise.until_s <= until_s:
                self._put(cluster, key, None)
        if self._changed:
            view = Promised(self._view, self._tallies, self._weight)
            for cluster in self._changed:
                if sums := self._sums.get(cluster):
                    view[cluster] = dict(sums)
                else:
                    view.pop(cluster, None)
            self._view = view
            self._changed.clear()
        return self._view

    def reserve(
        self, key: Hashable, request: Request, before: Mapping[str, int], after: Mapping[str, int], now_s: float
    ) -> None:
        """Take down a unit's decision: what its clusters get more, and what they are no longer to get."""
        for cluster in before.keys() | after.keys():
            held = self._promises.get(cluster, {}).get(key)
            added = after.get(cluster, 0) - before.get(cluster, 0)
            if not added or (held is None and added < 0):
                continue
            replicas = (held.replicas if held is not None else 0) + added
            until_s = now_s + self._lifetime_s if held is None or added > 0 else held.until_s
            self._put(cluster, key, _Promise(request, replicas, until_s) if replicas > 0 else None)

    def release(self, key: Hashable) -> None:
        """Forget what was promised to a unit."""
        for cluster in tuple(self._clusters_of.get(key, ())):
            self._put(cluster, key, None)

    def reported(self, cluster: str, before: Resources, after: Resources) -> None:
        """Take in a report: what is less free than in the one before has been promised here, the oldest first."""
        promises = self._promises.get(cluster)
        if not promises:
            return
        taken = {name: amount - after.get(name, 0) for name, amount in before.items()}
        for key, promise in tuple(promises.items()):
            wanted = [(name, amount) for name, amount in promise.request if amount]
            seen = min((max(0, taken.get(name, 0)) // amount for name, amount in wanted), default=promise.replicas)
            seen = min(seen, promise.replicas)
            if seen:
                for name, amount in wanted:
                    taken[name] -= seen * amount
                left = promise.replicas - seen
                self._put(cluster, key, promise._replace(replicas=left) if left else None)

    def _put(self, cluster: str, key: Hashable, promise: _Promise | None) -> None:
        """Replace a unit's promise in a cluster and keep the sums; a new deadline goes to the end of the queue."""
        promises = self._promises.setdefault(cluster, {})
        old = promises.get(key)
        if old is not None:
            self._count(cluster, old.request, -old.replicas)
        if promise is None:
            promises.pop(key, None)
            clusters = self._clusters_of.get(key, set())
            clusters.discard(cluster)
            if not clusters:
                self._clusters_of.pop(key, None)
            if not promises:
                del self._promises[cluster]
            return
        promises[key] = promise
        self._clusters_of.setdefault(key, set()).add(cluster)
        self._count(cluster, promise.request, promise.replicas)
        if old is None or old.until_s != promise.until_s:
            self._expiries.append((promise.until_s, cluster, key))

    def _count(self, cluster: str, request: Request, replicas: int) -> None:
        self._changed.add(cluster)
        self._tallies.note(cluster, request, replicas)
        self._weight += replicas * weight_of(cluster, request)
        sums = self._sums.setdefault(cluster, {})
        sums[request] = sums.get(request, 0) + replicas
        if not sums[request]:
            del sums[request]
            if not sums:
                del self._sums[cluster]
