"""Score normalization, and total scores in order.

Part of the public plugin API: plugins do not import each other, so that shared arithmetic is here.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import compress
from operator import attrgetter, itemgetter, ne
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
FEW = 32
"""The order is updated when at most one in so many scores changed; otherwise sorting again is cheaper."""


class Ranking:
    """Total scores by position, and the positions in order, best first. It holds no clusters.

    A rank is one integer made of score and position: a higher score, and for equal scores a smaller position, comes
    first. `with_scores` changes the order for a few scores by binary search over ranks. With more, the ranks are sorted
    again in their earlier order, which takes half as long as in any order.
    """

    __slots__ = ("_near", "_order", "_ranks", "scores")

    def __init__(self, scores: Sequence[int], near: Sequence[int] | None = None) -> None:
        self.scores = tuple(scores)
        self._near = near
        """The positions in nearly the right order, if such an order is known."""
        self._ranks: list[int] | None = None
        self._order: list[int] | None = None

    @property
    def order(self) -> list[int]:
        """The positions, best first."""
        if self._order is None:
            scores, bits = self.scores, self._bits
            near = range(len(scores)) if self._near is None else self._near
            self._ranks = [at - (scores[at] << bits) for at in near]
            self._ranks.sort()
            last = (1 << bits) - 1
            self._order, self._near = [rank & last for rank in self._ranks], None
        return self._order

    @property
    def _bits(self) -> int:
        """The bits of a rank that are the position: few, because small integers are compared faster."""
        return len(self.scores).bit_length()

    def with_scores(self, scores: Sequence[int]) -> "Ranking":
        """Return the ranking with other scores, as many as before."""
        if self._order is None or self._ranks is None:
            return Ranking(scores, self._near)
        changed = list(compress(range(len(scores)), map(ne, scores, self.scores)))
        if len(changed) * FEW > len(scores):
            return Ranking(scores, self._order)
        result, bits = Ranking(scores), self._bits
        result._ranks, result._order = ranks, order = self._ranks.copy(), self._order.copy()
        for at in changed:
            old = bisect_left(ranks, at - (self.scores[at] << bits))
            del ranks[old], order[old]
            new = bisect_left(ranks, rank := at - (scores[at] << bits))
            ranks.insert(new, rank)
            order.insert(new, at)
        return result


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
