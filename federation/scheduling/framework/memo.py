"""Answers of one local plugin, kept from one decision to the next and from one snapshot to the next.

A thousand Deployments under one policy ask filters and scores the same questions, and between two of them only a member
or two have reported. So per shape of units (see `Shaped`) the plugin's answers are kept with the clusters that they are
about, and only clusters that are other objects since then are asked again: a cluster's identity is its content
(`ClusterCache`). What is kept has no influence on decisions, only on their cost.

A `Memo` lives as long as its plugin. It holds on to clusters that changed for `_AGE_MAX` snapshots at the most, so that
shapes which nobody asks about any more do not keep old clusters in memory.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import is_not
from typing import Any

from federation.scheduling.framework.types import Cluster

_SHAPES_MAX = 128
"""The oldest shape goes when there are more."""
_AGE_MAX = 256
"""Snapshots after which answers that were not asked for are forgotten."""


@dataclass(slots=True)
class Answers:
    """One answer per cluster, in the order of the snapshot. `unasked` are the positions that have none yet."""

    clusters: tuple[Cluster, ...]
    values: list[Any]
    unasked: set[int]
    used_in: int = 0

    def move_to(self, clusters: tuple[Cluster, ...], moves: "Moves") -> None:
        """Keep what is still true for these clusters, which are as many as before."""
        self.unasked.update(moves.changed(self.clusters, clusters))
        self.clusters = clusters

    def fill_in(self, positions: Sequence[int], answers: Sequence[Any]) -> None:
        """Keep the answers about the clusters at these positions."""
        for at, answer in zip(positions, answers, strict=True):
            self.values[at] = answer
        self.unasked.difference_update(positions)

    def to_ask(self, positions: Iterable[int] | None) -> Sequence[int]:
        """Return which of the positions (None: all) have no answer yet."""
        if not self.unasked:
            return ()
        return sorted(self.unasked if positions is None else self.unasked.intersection(positions))


class Moves:
    """What differs between earlier snapshots and the newest one: most plugins were last asked at the same few."""

    def __init__(self) -> None:
        self._newest: tuple[Cluster, ...] = ()
        self._known: dict[int, tuple[tuple[Cluster, ...], tuple[int, ...]]] = {}

    def changed(self, old: tuple[Cluster, ...], new: tuple[Cluster, ...]) -> tuple[int, ...]:
        """Return the positions at which there are other clusters; both must be of one length."""
        if new is not self._newest:
            self._newest = new
            self._known.clear()
        known = self._known.get(id(old))  # what it is the id of is kept beside it, and so stays that
        if known is None:
            known = self._known[id(old)] = (old, tuple(compress(range(len(new)), map(is_not, old, new))))
        return known[1]


class Memo:
    """The answers per shape. Memos that share `moves` find what changed once for all of them."""

    def __init__(self, moves: Moves | None = None) -> None:
        self._moves = moves or Moves()
        self._kept: dict[Hashable, Answers] = {}
        self._latest: tuple[Cluster, ...] = ()
        self._snapshots = 0

    def answers(self, shape: Hashable, clusters: tuple[Cluster, ...]) -> Answers:
        """Return what is known for a shape about these clusters; the caller fills in what is not."""
        if clusters is not self._latest:
            self._latest = clusters
            self._snapshots += 1
            if self._snapshots % _AGE_MAX == 0:
                self._forget_old()
        known = self._kept.get(shape)
        if known is None or len(known.clusters) != len(clusters):
            known = Answers(clusters, [None] * len(clusters), set(range(len(clusters))))
            if len(self._kept) >= _SHAPES_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[shape] = known
        elif known.clusters is not clusters:
            known.move_to(clusters, self._moves)
        known.used_in = self._snapshots
        return known

    def _forget_old(self) -> None:
        oldest = self._snapshots - _AGE_MAX
        self._kept = {shape: known for shape, known in self._kept.items() if known.used_in > oldest}
