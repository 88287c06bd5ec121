"""Score normalization, and total scores in order.

Part of the public plugin API: plugins do not import each other, so that shared arithmetic is here.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from typing import Self

from federation.scheduling.framework.types import CPU, MEMORY, Cluster, ClusterScore, Resources

SCORE_MAX = 100


def normalise_to_max(scores: Sequence[int], *, is_reversed: bool = False) -> list[int]:
    """Return the scores scaled so that the highest is 100, rounded down; reversed, the highest becomes 0.

    All zero stays all zero; reversed it becomes 100 for all. When there are negative ones, the lowest counts as 0.
    """
    lowest = min(scores, default=0)
    if lowest < 0:
        scores = [score - lowest for score in scores]
    highest = max(scores, default=0)
    if highest == 0:
        return [SCORE_MAX] * len(scores) if is_reversed else list(scores)
    scaled = [score * SCORE_MAX // highest for score in scores]
    return [SCORE_MAX - score for score in scaled] if is_reversed else scaled


_BY_NAME = attrgetter("cluster.name")
_SCORE, _CLUSTER, _NAME = itemgetter(1), itemgetter(0), attrgetter("name")
_to_score = partial(tuple.__new__, ClusterScore)
"""Makes a ClusterScore from a pair without the Python frame that the NamedTuple's own constructor costs."""
_RANK_BITS = 32
FEW = 8
"""The order is updated when at most one in so many scores changed; otherwise sorting again is cheaper."""


class BestFirst(tuple[ClusterScore, ...]):  # noqa: SLOT001 - a tuple with attributes cannot have slots
    """Clusters in descending order of scores, so that several select plugins need not sort hundreds again."""

    clusters: tuple[Cluster, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, entries: Iterable[ClusterScore], names: tuple[str, ...] | None = None) -> Self:
        """Return entries that are already in order; `names` if known."""
        self = cls(entries)
        self.clusters = tuple(map(_CLUSTER, self))
        self.names = tuple(map(_NAME, self.clusters)) if names is None else names
        return self


class Totals(tuple[ClusterScore, ...]):  # noqa: SLOT001 - as above
    """All feasible clusters with their total scores, by name; `in_order` has the best first.

    `replaced` updates the order for a few changed scores by binary search over ranks. A rank is one integer made of
    score and position: a higher score, and for equal scores a smaller position, comes first.
    """

    order: BestFirst | None = None
    _ranks: list[int] | None = None
    _names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, clusters: Sequence[Cluster], scores: Iterable[int]) -> Self:
        """Return the clusters with their scores."""
        scores = tuple(scores)
        self = cls(map(_to_score, zip(clusters, scores, strict=True)))
        self.scores = scores
        return self

    @cached_property
    def scores(self) -> Sequence[int]:
        """The scores alone."""
        return tuple(map(_SCORE, self))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clusters."""
        if self._names is None:
            self._names = tuple(map(_NAME, map(_CLUSTER, self)))
        return self._names

    @property
    def in_order(self) -> BestFirst:
        """The clusters, best first."""
        if self.order is None:
            best = sorted(range(len(self)), key=self.scores.__getitem__, reverse=True)
            self.order = BestFirst.of(map(self.__getitem__, best))
        return self.order

    def replaced(self, changes: Mapping[int, ClusterScore]) -> "Totals":
        """Return the totals with other entries at some positions."""
        entries = list(self)
        for at, entry in changes.items():
            entries[at] = entry
        new = Totals(entries)
        new._names = self._names
        if self.order is not None and len(changes) * FEW <= len(entries):
            new.order, new._ranks = self._updated_order(changes)
        return new

    def _updated_order(self, changes: Mapping[int, ClusterScore]) -> tuple[BestFirst, list[int]]:
        assert self.order is not None
        if self._ranks is None:
            self._ranks = sorted([at - (score << _RANK_BITS) for at, (_, score) in enumerate(self)])
        ranks, order, names = self._ranks.copy(), list(self.order), list(self.order.names)
        for at, entry in changes.items():
            old = bisect_left(ranks, at - (self[at].score << _RANK_BITS))
            if entry.score == self[at].score:
                order[old] = entry
                continue
            del ranks[old], order[old], names[old]
            rank = at - (entry.score << _RANK_BITS)
            new = bisect_left(ranks, rank)
            ranks.insert(new, rank)
            order.insert(new, entry)
            names.insert(new, entry.cluster.name)
        return BestFirst.of(order, tuple(names)), ranks


def best_first(scored: Sequence[ClusterScore]) -> Sequence[ClusterScore]:
    """Return the clusters in the order of their scores, highest first, and of their names where scores are equal."""
    if isinstance(scored, BestFirst):
        return scored
    if isinstance(scored, Totals):
        return scored.in_order
    return BestFirst.of(sorted(sorted(scored, key=_BY_NAME), key=_SCORE, reverse=True))


_ALWAYS = (CPU, MEMORY)


def scored_resources(request: Resources) -> Sequence[str]:
    """Return the resources that count for resource scores: cpu and memory always, others when requested."""
    if len(request) == len(_ALWAYS) and CPU in request and MEMORY in request:
        return _ALWAYS
    others = [name for name, amount in request.items() if amount and name not in _ALWAYS]
    return (*_ALWAYS, *sorted(others)) if others else _ALWAYS
