"""Results that are kept from one decision to the next and from one snapshot to the next.

A thousand Deployments under one policy ask filters and scores the same questions, and between two of them only a member
or two have reported. So what came out for units of one shape (see `Shaped`) is kept with the clusters that it is about,
and only clusters that are other objects since then are asked about again: a cluster's identity is its content
(`ClusterCache`). What is kept has no influence on decisions, only on their cost.

A `Memo` lives as long as its framework. What nobody asks about any more is forgotten when about as many clusters have
changed as there are, so that it does not keep old ones in memory. `sieve.py` and `ranking.py` keep their results here.
"""

from collections.abc import Callable, Hashable
from itertools import compress
from operator import is_not
from typing import Generic, TypeVar

from federation.scheduling.framework.types import Cluster

_SHAPES_MAX = 128
"""The oldest shape goes when there are more."""
_AGE_MAX = 256
"""Changed clusters after which results that were not asked for are forgotten; at least as many as there are."""


class Roster:
    """The clusters of the newest snapshot, and which of them are others than in earlier ones."""

    def __init__(self) -> None:
        self.clusters: tuple[Cluster, ...] = ()
        self.age = 0
        """How many clusters have changed so far."""
        self.members = 0
        """Counts up when other clusters take part, or in another order."""
        self._known: dict[int, tuple[tuple[Cluster, ...], tuple[int, ...]]] = {}

    def move_to(self, clusters: tuple[Cluster, ...]) -> None:
        """Take in a snapshot."""
        if clusters is self.clusters:
            return
        old, self.clusters = self.clusters, clusters
        self._known.clear()
        changed = self.changed(old) if len(old) == len(clusters) else ()
        self.age += len(changed)
        if len(old) != len(clusters) or any(old[at].name != clusters[at].name for at in changed):
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
        elif roster.age - self._aged_in >= max(_AGE_MAX, len(roster.clusters)):
            oldest, self._aged_in = self._aged_in, roster.age
            self._kept = {shape: known for shape, known in self._kept.items() if known.used_in > oldest}
        known = self._kept.get(shape)
        if known is None:
            if len(self._kept) >= _SHAPES_MAX:
                del self._kept[next(iter(self._kept))]
            known = self._kept[shape] = self._make()
        known.used_in = roster.age
        if known.clusters is roster.clusters:
            return known, ()
        return known, roster.changed(known.clusters) if known.clusters else tuple(range(len(roster.clusters)))
