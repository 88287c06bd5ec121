"""Arithmetic on scores that several plugins need.

Part of the public plugin API: plugins do not import each other, so what two of them share is here.
"""

from collections.abc import Iterable, Sequence
from operator import attrgetter

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
_BY_SCORE = attrgetter("score")


class _BestFirst(tuple[ClusterScore, ...]):
    """Clusters that are in order already: every select plugin wants them so, and sorting hundreds twice shows."""

    __slots__ = ()


def best_first(scored: Sequence[ClusterScore]) -> Sequence[ClusterScore]:
    """Return the clusters in the order of their scores, highest first, and of their names where scores are equal."""
    if type(scored) is _BestFirst:
        return scored
    return _BestFirst(sorted(sorted(scored, key=_BY_NAME), key=_BY_SCORE, reverse=True))


_ALWAYS = (CPU, MEMORY)


def resources_in_play(request: Resources) -> Sequence[str]:
    """Return the resources that a resource score looks at: cpu and memory always, others when requested."""
    others = [name for name, amount in request.items() if amount and name not in _ALWAYS]
    return (*_ALWAYS, *sorted(others)) if others else _ALWAYS


def usage_with(cluster: Cluster, request: Resources, names: Iterable[str]) -> list[tuple[str, int, int]]:
    """Return (resource, what would be used with one replica more, allocatable) for each of the resources."""
    allocatable, available = cluster.allocatable, cluster.available
    return [
        (name, (capacity := allocatable.get(name, 0)) - available.get(name, 0) + request.get(name, 0), capacity)
        for name in names
    ]
