"""Replicas that recent decisions placed and that members' reports do not show yet: the assume cache.

A member reports its free resources every few seconds; a hundred decisions may be made in between from the same report.
Each decision that adds replicas to a cluster records them here as assumed, and the Replicas plugins of later decisions
count them as used (`SchedulingUnit.assumed`). Entries are removed, oldest first, as far as a later report shows less
free resources on nodes, and in any case after a while.

Pure: time is an argument. Nothing is stored; after a restart the protection is missing for a few seconds, except for
gangs (`recalledgangs.py`).

Decision: docs/decisions/0083-decisions-count-each-other.md
"""

import heapq
import itertools
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from federation.scheduling.framework.assumed import (
    AssumedReplicas,
    Changes,
    DisplacedCounts,
    Request,
    hash_weight_of,
)
from federation.scheduling.framework.types import Resources


class _AssumedEntry(NamedTuple):
    request: Request
    replicas: int
    until_s: float


class WholePart(NamedTuple):
    """The pods of an object with one request, as a unit of their own."""

    key: Hashable
    request: Request


_WHOLE_EXTRA_S = 240.0
_Change = tuple[Hashable, str, _AssumedEntry | None, _AssumedEntry | None]
"""A unit, a cluster, the entry before and the entry after."""


class AssumeCache:
    """Assumed replicas by cluster and unit. `lifetime_s` bounds how long an entry counts that no report confirms."""

    def __init__(self, lifetime_s: float = 60.0) -> None:
        self._lifetime_s = lifetime_s
        self._entries: defaultdict[str, dict[Hashable, _AssumedEntry]] = defaultdict(dict)
        self._clusters_of: defaultdict[Hashable, set[str]] = defaultdict(set)
        self._expiries: list[tuple[float, int, Hashable]] = []
        self._requests_of: dict[Hashable, tuple[Request, ...]] = {}
        """The requests of the pods of objects with components."""
        self._count = itertools.count()
        self._sums: defaultdict[str, dict[Request, int]] = defaultdict(dict)
        self._displaced = DisplacedCounts()
        self._weight = 0
        self._weights = _Weights()
        self._view = AssumedReplicas({}, self._displaced, 0)
        self._changed: set[str] = set()

    def snapshot(self, now_s: float) -> AssumedReplicas:
        """Return the assumed replicas per cluster and request; the mapping never changes."""
        while self._expiries and self._expiries[0][0] <= now_s:
            until_s, _, key = heapq.heappop(self._expiries)
            entries = self._entries
            self._remove(
                key, [name for name in self._clusters_of.get(key, ()) if entries[name][key].until_s <= until_s]
            )
        if self._changed:
            view = AssumedReplicas(self._view, self._displaced, self._weight)
            for cluster in self._changed:
                if sums := self._sums.get(cluster):
                    view[cluster] = dict(sums)
                else:
                    view.pop(cluster, None)
            self._view = view
            self._changed.clear()
        return self._view

    def assume(
        self, key: Hashable, request: Request, before: Mapping[str, int], after: Mapping[str, int], now_s: float
    ) -> None:
        """Record a unit's decision: replicas that its clusters gain, and assumed replicas that they lose again."""
        until_s, known = now_s + self._lifetime_s, self._clusters_of.get(key, ())
        changes: list[_Change] = []
        added_first: Changes = []
        if not before and not known:
            added_first = [(cluster, count) for cluster, count in after.items() if count > 0]
            after = {}
        for cluster in (*after, *(before.keys() - after.keys())) if before else after:
            added = after.get(cluster, 0) - before.get(cluster, 0)
            if not added:
                continue
            if cluster not in known:
                if added > 0:
                    added_first.append((cluster, added))
                continue
            old = self._entries[cluster][key]
            entry = _AssumedEntry(request, old.replicas + added, until_s if added > 0 else old.until_s)
            changes.append((key, cluster, old, entry if entry.replicas > 0 else None))
        if changes or added_first:
            heapq.heappush(self._expiries, (until_s, next(self._count), key))  # of keys that cannot be compared
            self._put(changes)
            self._put_first(key, request, added_first, until_s)

    def assume_whole(
        self,
        key: Hashable,
        pods: Mapping[Request, int],
        before: Collection[str],
        after: Collection[str],
        now_s: float,
    ) -> None:
        """Record that all pods of an object with components go to each cluster of `after`, and leave the others.

        They count longer than replicas: an operator may create them late, and all of them must find their room.
        """
        requests = [request for request, count in pods.items() if count]
        for request in dict.fromkeys((*requests, *self._requests_of.get(key, ()))):
            part = WholePart(key, request)
            count = pods.get(part.request, 0)
            left, joined = (dict.fromkeys(names, count) for names in (before, after))
            self.assume(part, part.request, left, joined, now_s + _WHOLE_EXTRA_S)
        if requests:
            self._requests_of[key] = tuple(requests)

    def forget(self, key: Hashable) -> None:
        """Remove a unit's assumed replicas."""
        for part in (key, *[WholePart(key, request) for request in self._requests_of.pop(key, ())]):
            self._remove(part, list(self._clusters_of.get(part, ())))

    def confirm(self, cluster: str, before: Resources, after: Resources) -> None:
        """Remove the entries, oldest first, that account for the difference between a cluster's last two reports."""
        entries = self._entries.get(cluster)
        if not entries:
            return
        used = {name: amount - after.get(name, 0) for name, amount in before.items()}
        changes: list[_Change] = []
        for key, entry in entries.items():
            # Sums leave out resources that only nodes with taints have.
            wanted = [(name, amount) for name, amount in entry.request if amount and name in used]
            unknown = 0 if any(amount for _, amount in entry.request) else entry.replicas
            seen = min((max(0, used[name]) // amount for name, amount in wanted), default=unknown)
            seen = min(seen, entry.replicas)
            if seen:
                for name, amount in wanted:
                    used[name] -= seen * amount
                left = entry.replicas - seen
                changes.append((key, cluster, entry, entry._replace(replicas=left) if left else None))
        self._put(changes)

    def _put_first(self, key: Hashable, request: Request, counts: Changes, until_s: float) -> None:
        """Add a unit's entries in clusters where it had none.

        Most entries are such, hundreds at a time; so this path does without the bookkeeping of `_put`.
        """
        if not counts:
            return
        entries = {count: _AssumedEntry(request, count, until_s) for count in {count for _, count in counts}}
        for cluster, count in counts:
            self._entries[cluster][key] = entries[count]
        self._clusters_of[key].update([cluster for cluster, _ in counts])
        self._add_to_sums(request, counts)

    def _remove(self, key: Hashable, clusters: Sequence[str]) -> None:
        """Remove a unit's entries in clusters, as each one ends: hundreds at a time, like those that begin."""
        if not clusters:
            return
        entries, differences = self._entries, defaultdict[Request, Changes](list)
        request: Request | None = None
        counts: Changes = []
        for cluster in clusters:
            of_cluster = entries[cluster]
            entry = of_cluster.pop(key)
            if not of_cluster:
                del entries[cluster]
            if entry.request is not request:
                request, counts = entry.request, differences[entry.request]
            counts.append((cluster, -entry.replicas))
        left = self._clusters_of[key]
        left.difference_update(clusters)
        if not left:
            del self._clusters_of[key]
        for request, counts in differences.items():
            self._add_to_sums(request, counts)

    def _put(self, changes: Iterable[_Change]) -> None:
        """Replace entries and update the sums."""
        differences: dict[Request, Changes] = {}
        for key, cluster, old, entry in changes:
            if old is not None and entry is not None and old.request == entry.request:
                if old.replicas != entry.replicas:
                    differences.setdefault(entry.request, []).append((cluster, entry.replicas - old.replicas))
            else:
                for each, sign in ((old, -1), (entry, 1)):
                    if each is not None:
                        differences.setdefault(each.request, []).append((cluster, sign * each.replicas))
            if entry is not None:
                self._entries[cluster][key] = entry
                self._clusters_of[key].add(cluster)
            elif old is not None:
                _discard(self._entries, cluster, key)
                _discard(self._clusters_of, key, cluster)
        for request, counts in differences.items():
            self._add_to_sums(request, counts)

    def _add_to_sums(self, request: Request, counts: Changes) -> None:
        self._displaced.record(request, counts)
        weight, sums, weights = 0, self._sums, self._weights
        for cluster, replicas in counts:
            weight += replicas * weights[cluster]
            of_cluster = sums[cluster]
            if left := of_cluster.get(request, 0) + replicas:
                of_cluster[request] = left
            else:
                of_cluster.pop(request, None)
        self._weight += weight * hash_weight_of(request)
        self._changed.update([cluster for cluster, _ in counts])


class _Weights(dict[str, int]):
    """The weight of each cluster in the hash, without a call for those that are known."""

    def __missing__(self, cluster: str) -> int:
        weight = self[cluster] = hash_weight_of(cluster)
        return weight


def _discard(groups: dict[Any, Any], group: Hashable, member: Hashable) -> None:
    """Remove a member from its group, a set or a dictionary, and remove the group when it is empty."""
    members = groups[group]
    members.remove(member) if isinstance(members, set) else members.pop(member)
    if not members:
        del groups[group]
