"""Results that are kept from one decision to the next and from one snapshot to the next.

A thousand Deployments under one policy ask filters and scores the same questions, and between two of them only a member
or two have reported. So what came out for units of one shape (see `Shaped`) is kept with the clusters that it
is about, and only clusters that are other objects since then are asked about again: a cluster's identity is its content
(`ClusterCache`). What is kept has no influence on decisions, only on their cost.

A `Memo` lives as long as its framework. It holds on to clusters that changed for `_AGE_MAX` snapshots at the most, so
that shapes which nobody asks about any more do not keep old clusters in memory. `sieve.py` and `ranking.py` keep their
results here.
"""

from collections.abc import Callable, Hashable
from itertools import compress
from operator import is_not
from typing import Generic, TypeVar

from federation.scheduling.framework.types import Cluster

_SHAPES_MAX = 128
"""The oldest shape goes when there are more."""
_AGE_MAX = 256
"""Snapshots after which results that were not asked for are forgotten."""


class Roster:
    """The clusters of the newest snapshot, and which of them are others than in earlier ones."""

    def __init__(self) -> None:
        self.clusters: tuple[Cluster, ...] = ()
        self.snapshots = 0
        self.members = 0
        """Counts up when other clusters take part, or in another order."""
        self._known: dict[int, tuple[tuple[Cluster, ...], tuple[int, ...]]] = {}

    def move_to(self, clusters: tuple[Cluster, ...]) -> None:
        """Take in a snapshot."""
        if clusters is self.clusters:
            return
        old, self.clusters = self.clusters, clusters
        self.snapshots += 1
        self._known.clear()
        if len(old) != len(clusters) or any(old[at].name != clusters[at].name for at in self.changed(old)):
            self.members += 1

    def changed(self, old: tuple[Cluster, ...]) -> tuple[int, ...]:
        """Return the positions at which there are other clusters now; both must have as many."""
        known = self._known.get(id(old))  # what it is the id of is kept beside it, and so stays that
        if known is None:
            clusters = self.clusters
            known = self._known[id(old)] = (old, tuple(compress(range(len(old)), map(is_not, old, clusters))))
        return known[1]


class Result:
    """What is kept for one shape: true about `clusters`."""

    def __init__(self) -> None:
        self.clusters: tuple[Cluster, ...] = ()
        self.used_in = 0


R = TypeVar("R", bound=Result)


class Memo(Generic[R]):
    """The results per shape, all about the clusters of one roster."""

    def __init__(self, roster: Roster, make: Callable[[], R]) -> None:
        self._roster = roster
        self._make = make
        self._kept: dict[Hashable, R] = {}
        self._members = 0
        self._aged_in = 0

    def find(self, shape: Hashable) -> tuple[R, tuple[int, ...]]:
        """Return what is kept for the shape, and the positions of the clusters that it is not true about any more.

        The caller brings it up to date and sets its `clusters`; a new result is about no cluster yet.
        """
        roster = self._roster
        if roster.members != self._members:
            self._kept.clear()
            self._members = roster.members
        elif roster.snapshots - self._aged_in >= _AGE_MAX:
            oldest, self._aged_in = roster.snapshots - _AGE_MAX, roster.snapshots
            self._kept = {shape: known for shape, known in self._kept.items() if known.used_in > oldest}
        known = self._kept.get(shape)
        if known is None:
            if len(self._kept) >= _SHAPES_MAX:
                del self._kept[next(iter(self._kept))]
            known = self._kept[shape] = self._make()
        known.used_in = roster.snapshots
        if known.clusters is roster.clusters:
            return known, ()
        return known, roster.changed(known.clusters) if known.clusters else tuple(range(len(roster.clusters)))
