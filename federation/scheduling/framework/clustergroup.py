"""Clusters in a fixed order, with values computed from all of them: columns, which have one value per cluster.

Part of the public plugin API, which passes groups as `Sequence[Cluster]`. A cached value lives as long as its group: a
snapshot's group is released with the first report after it. Caches that live longer compare `versions`, and hold
neither groups nor clusters, because these keep the reports of all members in memory.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import attrgetter, itemgetter, ne
from typing import Any, Self, TypeVar

from federation.scheduling.framework.columns import Columns, Versions
from federation.scheduling.framework.types import Cluster

T = TypeVar("T")
_NAME, _VERSION, _LASTING = attrgetter("name"), attrgetter("version"), attrgetter("lasting")
_FEW = 16
"""A group with less than one in so many clusters of its whole reads these, not a column of all."""
Pick = Callable[[Sequence[Any]], tuple[Any, ...]]


class ClusterGroup(tuple[Cluster, ...]):  # noqa: SLOT001 - a tuple with attributes cannot have slots
    """Clusters in order. `whole` has all clusters of the snapshot, of which `pick` selects those of this group.

    `memo` caches values computed from the group. `lasting` caches values of the whole that do not depend on resources:
    the groups of snapshots that differ only in resources share it.

    A group does not refer to itself, also not through its memo once it is released: a cycle would keep hundreds of
    values per decision until the garbage collector comes, and take the processor's caches from the decisions before it.
    """

    pick: Pick
    memo: dict[Hashable, Any]
    lasting: dict[Any, Any]
    _whole: "ClusterGroup | None" = None
    """None if it is a whole itself."""
    _columns: Columns | None = None
    _updates: int = 0

    @classmethod
    def of(cls, clusters: Iterable[Cluster], lasting: dict[Any, Any] | None = None) -> Self:
        """Return the clusters as a group; a group is returned unchanged."""
        if isinstance(clusters, cls):
            return clusters
        self = cls(clusters)
        self.pick, self.memo = tuple, {}
        self.lasting = {} if lasting is None else lasting
        return self

    @classmethod
    def newest(cls, columns: Columns, lasting: dict[Any, Any]) -> Self:
        """Return the clusters of these columns."""
        self = cls.of(columns.clusters, lasting)
        self._columns, self._updates = columns, columns.updates
        return self

    def subset(self, positions: Sequence[int], pick: Pick | None = None) -> "ClusterGroup":
        """Return the clusters at these positions of the group, in that order; `pick` if known."""
        pick = picker(positions) if pick is None else pick
        group = ClusterGroup(pick(self))
        group._whole, group.memo, group.lasting = self.whole, {}, self.lasting
        group.pick = pick if self._whole is None else picker(pick(self.pick(range(len(self._whole)))))
        return group

    @property
    def whole(self) -> "ClusterGroup":
        """All clusters of the snapshot."""
        return self if self._whole is None else self._whole

    @property
    def is_small(self) -> bool:
        """Whether it is such a small part of its whole that reading its clusters is cheaper than columns of all."""
        return self._whole is not None and len(self) * _FEW <= len(self._whole)

    def release(self) -> None:
        """Forget what was computed, because newer clusters take its place; it is computed again if it is read."""
        self.memo.clear()

    def cached(self, key: Hashable, compute: Callable[["ClusterGroup"], T]) -> T:
        """Return a value computed from the group, computed once."""
        known: T | None = self.memo.get(key)
        if known is None:
            known = self.memo[key] = compute(self)
        return known

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the clusters."""
        if self._whole is None:
            return _cached_in(self.lasting, "names", self, _names)
        return self.cached("names", _pick_names)

    @property
    def positions(self) -> Mapping[str, int]:
        """The position of each cluster of the whole by name."""
        return _cached_in(self.lasting, "positions", self.whole, _positions)

    @property
    def lastings(self) -> tuple[dict[Any, Any], ...]:
        """The dictionary `lasting` of each cluster of the whole."""
        return _cached_in(self.lasting, "lastings", self.whole, _lastings)

    @property
    def versions(self) -> tuple[int, ...]:
        """The version of each cluster."""
        if (newest := self.newest_columns) is not None and "version" not in self.memo:
            self.memo["version"] = (newest.versions(),)
        return self.column("version", _VERSION)

    @property
    def by_name(self) -> Mapping[str, Cluster]:
        """The clusters by name."""
        return self.cached("by name", _by_name)

    def named(self, names: Iterable[str]) -> dict[str, Cluster]:
        """Return those of the clusters that have one of the names, in the order of the names."""
        whole, positions = self.whole, self.positions
        if len(self) == len(whole):  # in another order
            return {name: whole[positions[name]] for name in names if name in positions}
        by_name = self.by_name
        return {name: by_name[name] for name in names if name in by_name}

    def column(self, key: Hashable, value_of: Callable[[Cluster], T]) -> tuple[T, ...]:
        """Return the value of each cluster; `key` tells which value it is."""
        return self.columns(key, value_of)[0]

    def columns(self, key: Hashable, value_of: Callable[[Cluster], Any], width: int = 0) -> tuple[tuple[Any, ...], ...]:
        """Return a column for each of the `width` values that `value_of` returns for a cluster; without, of its one."""
        known: tuple[tuple[Any, ...], ...] | None = self.memo.get(key)
        if known is None:
            if self._whole is not None and (not self.is_small or key in self._whole.memo):
                known = tuple(map(self.pick, self._whole.columns(key, value_of, width)))
            elif (newest := self.newest_columns) is not None:
                known = newest.read_each(key, value_of, width)
            else:  # a report has arrived since this group was made, it is no snapshot's, or it has few of the clusters
                values = tuple(map(value_of, self))
                known = tuple([tuple([each[at] for each in values]) for at in range(width)]) if width else (values,)
            self.memo[key] = known
        return known

    @property
    def newest_columns(self) -> Columns | None:
        """The columns, if this is a whole and no report has arrived since it was made."""
        columns = self._columns
        return columns if columns is not None and columns.updates == self._updates else None

    def amounts(self, resource: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return how much of a resource each cluster can allocate, and how much is available; 0 where unknown."""
        return (
            self.column((_allocatable, resource), partial(_allocatable, resource)),
            self.column((_available, resource), partial(_available, resource)),
        )

    def changed_since(self, versions: tuple[int, ...]) -> tuple[int, ...]:
        """Return the positions whose cluster is another object than it was with these versions."""
        if (newest := self.newest_columns) is not None and isinstance(versions, Versions):
            known = newest.changed_since(versions)
            if known is not None:
                return known
        return tuple(compress(range(len(self)), map(ne, versions, self.versions)))


def picker(positions: Sequence[int]) -> Pick:
    """Return a function that returns the values of a column at these positions."""
    if len(positions) > 1:  # itemgetter returns a tuple only for two positions or more
        return itemgetter(*positions)
    return lambda column: tuple([column[at] for at in positions])


def _cached_in(lasting: dict[Any, Any], key: str, group: ClusterGroup, compute: Callable[[ClusterGroup], T]) -> T:
    known: T | None = lasting.get(key)
    if known is None:
        known = lasting[key] = compute(group)
    return known


def _names(group: ClusterGroup) -> tuple[str, ...]:
    return tuple(map(_NAME, group))


def _pick_names(group: ClusterGroup) -> tuple[str, ...]:
    return group.pick(group.whole.names)


def _positions(group: ClusterGroup) -> dict[str, int]:
    return {name: at for at, name in enumerate(group.names)}


def _lastings(group: ClusterGroup) -> tuple[dict[Any, Any], ...]:
    return tuple(map(_LASTING, group))


def _allocatable(resource: str, cluster: Cluster) -> int:
    return cluster.allocatable.get(resource, 0)


def _available(resource: str, cluster: Cluster) -> int:
    return cluster.available.get(resource, 0)


def _by_name(group: ClusterGroup) -> dict[str, Cluster]:
    if (newest := group.newest_columns) is not None:
        return newest.by_name.copy()
    return dict(zip(group.names, group, strict=True))
