"""Score normalization, and total scores in order.

Part of the public plugin API: plugins do not import each other, so that shared arithmetic is here.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import attrgetter, itemgetter
from typing import overload

from federation.scheduling.framework.clustergroup import ClusterGroup, picker
from federation.scheduling.framework.types import CPU, MEMORY, ClusterScore, Resources

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


_BY_NAME, _SCORE = attrgetter("cluster.name"), itemgetter(1)
_to_entry = partial(tuple.__new__, ClusterScore)
"""Makes a ClusterScore from a pair without the Python frame that the NamedTuple's own constructor costs."""
_RANK_BITS = 32
FEW = 8
"""The order is updated when at most one in so many scores changed; otherwise sorting again is cheaper."""


class Ranking:
    """Total scores by position, and the positions in order, best first. It holds no clusters.

    `updated` changes the order for a few scores by binary search over ranks. A rank is one integer made of score and
    position: a higher score, and for equal scores a smaller position, comes first.
    """

    __slots__ = ("_order", "_ranks", "scores")

    def __init__(self, scores: Sequence[int], ranks: list[int] | None = None, order: list[int] | None = None) -> None:
        self.scores = tuple(scores)
        self._ranks = ranks
        self._order = order

    @property
    def order(self) -> list[int]:
        """The positions, best first."""
        if self._order is None:
            self._order = sorted(range(len(self.scores)), key=self.scores.__getitem__, reverse=True)
        return self._order

    def updated(self, changes: Mapping[int, int]) -> "Ranking":
        """Return the ranking with other scores at some positions."""
        scores = list(self.scores)
        for at, score in changes.items():
            scores[at] = score
        if self._order is None or len(changes) * FEW > len(scores):
            return Ranking(scores)
        if self._ranks is None:
            self._ranks = [at - (self.scores[at] << _RANK_BITS) for at in self._order]
        ranks, order = self._ranks.copy(), self._order.copy()
        for at, score in changes.items():
            if score != self.scores[at]:
                old = bisect_left(ranks, at - (self.scores[at] << _RANK_BITS))
                del ranks[old], order[old]
                new = bisect_left(ranks, rank := at - (score << _RANK_BITS))
                ranks.insert(new, rank)
                order.insert(new, at)
        return Ranking(scores, ranks, order)


class Scored(Sequence[ClusterScore]):
    """A column of clusters and a column of their scores. The entries are made on demand: most cycles need none."""

    def __init__(self, clusters: ClusterGroup, scores: Sequence[int]) -> None:
        self.clusters = clusters
        self.scores = scores

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clusters."""
        return self.clusters.names

    def __len__(self) -> int:
        return len(self.clusters)

    def __iter__(self) -> Iterator[ClusterScore]:
        return map(_to_entry, zip(self.clusters, self.scores, strict=True))

    @overload
    def __getitem__(self, at: int) -> ClusterScore: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ClusterScore]: ...
    def __getitem__(self, at: int | slice) -> ClusterScore | Sequence[ClusterScore]:
        if isinstance(at, int):
            return ClusterScore(self.clusters[at], self.scores[at])
        return Scored(self.clusters.subset(range(len(self))[at]), self.scores[at])


class BestFirst(Scored):
    """Clusters in descending order of scores, so that several select plugins need not sort hundreds again."""


class Totals(Scored):
    """All feasible clusters with their total scores, by name; `in_order` has the best first."""

    def __init__(self, clusters: ClusterGroup, ranking: Ranking) -> None:
        super().__init__(clusters, ranking.scores)
        self._ranking = ranking

    @cached_property
    def in_order(self) -> BestFirst:
        """The clusters, best first."""
        pick = picker(self._ranking.order)
        return BestFirst(self.clusters.subset(self._ranking.order, pick), pick(self.scores))


def best_first(scored: Sequence[ClusterScore]) -> Sequence[ClusterScore]:
    """Return the clusters in the order of their scores, highest first, and of their names where scores are equal."""
    if isinstance(scored, BestFirst):
        return scored
    if isinstance(scored, Totals):
        return scored.in_order
    return sorted(sorted(scored, key=_BY_NAME), key=_SCORE, reverse=True)


_ALWAYS = (CPU, MEMORY)


def scored_resources(request: Resources) -> Sequence[str]:
    """Return the resources that count for resource scores: cpu and memory always, others when requested."""
    if len(request) == len(_ALWAYS) and CPU in request and MEMORY in request:
        return _ALWAYS
    others = [name for name, amount in request.items() if amount and name not in _ALWAYS]
    return (*_ALWAYS, *sorted(others)) if others else _ALWAYS
