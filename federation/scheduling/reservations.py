"""Room that recent decisions have promised and that members' reports do not show yet.

A member reports what is free every few seconds; a hundred decisions may be made in between, all from the same report.
Each decision that gives a cluster more replicas takes a promise down here, and the next decision's Replicas step counts
it as used (`SchedulingUnit.reserved`). A promise lapses as far as a later report shows that so much less is free, the
oldest first, and in any case after a while.

Pure: time is an argument. What is lost in a restart only means less protection for a few seconds. The schedule
controller owns one; nothing of it is stored.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple

from federation.scheduling.framework.promised import Changes, Promised, Request, Tallies, weight_of
from federation.scheduling.framework.types import Resources


class _Promise(NamedTuple):
    request: Request
    replicas: int
    until_s: float


_Change = tuple[Hashable, str, _Promise | None, _Promise | None]
"""A unit, a cluster, what was promised to it there, and what is now."""


class Reservations:
    """Promises by cluster and unit. `lifetime_s` bounds how long one counts without being seen in a report."""

    def __init__(self, lifetime_s: float = 60.0) -> None:
        self._lifetime_s = lifetime_s
        self._promises: defaultdict[str, dict[Hashable, _Promise]] = defaultdict(dict)
        self._clusters_of: defaultdict[Hashable, set[str]] = defaultdict(set)
        self._expiries: deque[tuple[float, Hashable]] = deque()
        self._sums: defaultdict[str, dict[Request, int]] = defaultdict(dict)
        self._tallies = Tallies()
        self._weight = 0
        self._view = Promised({}, self._tallies, 0)
        self._changed: set[str] = set()

    def promised(self, now_s: float) -> Promised:
        """Return what is promised per cluster and request; the mapping does not change any more."""
        while self._expiries and self._expiries[0][0] <= now_s:
            until_s, key = self._expiries.popleft()
            held = [(cluster, self._promises[cluster][key]) for cluster in self._clusters_of.get(key, ())]
            self._put([(key, cluster, old, None) for cluster, old in held if old.until_s <= until_s])
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
        until_s, known = now_s + self._lifetime_s, self._clusters_of.get(key, ())
        changes: list[_Change] = []
        fresh: Changes = []
        for cluster in (*after, *(before.keys() - after.keys())) if before else after:
            added = after.get(cluster, 0) - before.get(cluster, 0)
            if not added:
                continue
            if cluster not in known:
                if added > 0:
                    fresh.append((cluster, added))
                continue
            held = self._promises[cluster][key]
            promise = _Promise(request, held.replicas + added, until_s if added > 0 else held.until_s)
            changes.append((key, cluster, held, promise if promise.replicas > 0 else None))
        if changes or fresh:
            self._expiries.append((until_s, key))
            self._put(changes)
            self._put_first(key, request, fresh, until_s)

    def release(self, key: Hashable) -> None:
        """Forget what was promised to a unit."""
        clusters = self._clusters_of.get(key, ())
        self._put([(key, cluster, self._promises[cluster][key], None) for cluster in clusters])

    def reported(self, cluster: str, before: Resources, after: Resources) -> None:
        """Take in a report: what is less free than in the one before has been promised here, the oldest first."""
        promises = self._promises.get(cluster)
        if not promises:
            return
        taken = {name: amount - after.get(name, 0) for name, amount in before.items()}
        changes: list[_Change] = []
        for key, promise in promises.items():
            wanted = [(name, amount) for name, amount in promise.request if amount]
            seen = min((max(0, taken.get(name, 0)) // amount for name, amount in wanted), default=promise.replicas)
            seen = min(seen, promise.replicas)
            if seen:
                for name, amount in wanted:
                    taken[name] -= seen * amount
                left = promise.replicas - seen
                changes.append((key, cluster, promise, promise._replace(replicas=left) if left else None))
        self._put(changes)

    def _put_first(self, key: Hashable, request: Request, counts: Changes, until_s: float) -> None:
        """Take down what is promised to a unit in clusters where nothing was: most promises, by hundreds at a time."""
        if not counts:
            return
        promises = {count: _Promise(request, count, until_s) for count in {count for _, count in counts}}
        for cluster, count in counts:
            self._promises[cluster][key] = promises[count]
        self._clusters_of[key].update([cluster for cluster, _ in counts])
        self._count(request, counts)

    def _put(self, changes: Iterable[_Change]) -> None:
        """Replace promises, and keep what is summed up of all of them."""
        differences: dict[Request, Changes] = {}
        for key, cluster, old, promise in changes:
            if old is not None:
                differences.setdefault(old.request, []).append((cluster, -old.replicas))
            if promise is not None:
                differences.setdefault(promise.request, []).append((cluster, promise.replicas))
                self._promises[cluster][key] = promise
                self._clusters_of[key].add(cluster)
            elif old is not None:
                _discard(self._promises, cluster, key)
                _discard(self._clusters_of, key, cluster)
        for request, counts in differences.items():
            self._count(request, counts)

    def _count(self, request: Request, counts: Changes) -> None:
        self._tallies.note(request, counts)
        weight = 0
        for cluster, replicas in counts:
            weight += replicas * weight_of(cluster)
            sums = self._sums[cluster]
            sums[request] = left = sums.get(request, 0) + replicas
            if not left:
                del sums[request]
                if not sums:
                    del self._sums[cluster]
        self._weight += weight * weight_of(request)
        self._changed.update([cluster for cluster, _ in counts])


def _discard(groups: dict[Any, Any], group: Hashable, member: Hashable) -> None:
    """Take a member out of its group, a set or a dictionary, and the group when it was the last."""
    members = groups[group]
    members.remove(member) if isinstance(members, set) else members.pop(member)
    if not members:
        del groups[group]
