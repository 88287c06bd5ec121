"""Columns of the newest clusters, in the order of the snapshot: lists with one value per cluster, such as its free cpu.

A report changes one value in each column. It is computed with the report, while the cluster's data is at hand, so that
a decision reads lists of values instead of hundreds of clusters that it would have to fetch from memory. A column is
made when it is first read, and removed when no decision reads it any more. `clustergroup.py` reads columns.

While no report changes a column, it is the same tuple.

Decision: docs/decisions/0074-columns-of-the-newest-clusters.md
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from federation.scheduling.framework.types import Cluster

_VERSION = attrgetter("version")
_UNUSED_VERSIONS_MAX = 30
"""A column is kept up to date while it was read within so many reports of each cluster, some minutes."""
_COLUMNS_MAX = 128
"""With more columns, the least recently read column is removed."""


_REPORTS_MAX = 4_096
"""The length of the list of reports."""


class Versions(tuple[int, ...]):  # noqa: SLOT001 - a tuple with attributes cannot have slots
    """The version of each cluster, after so many `updates` of the columns that `origin` identifies; it holds none."""

    origin: object
    updates: int


@dataclass(slots=True)
class _Column:
    """One list of values, or several if `value_of` returns a tuple of `width` values."""

    value_of: Callable[[Cluster], Any]
    width: int
    parts: list[list[Any]]
    tuples: list[tuple[Any, ...] | None]
    """The parts as they are now; None if they were not read since a change."""
    read_at: int

    def read(self) -> tuple[tuple[Any, ...], ...]:
        """Return the parts."""
        for number, known in enumerate(self.tuples):
            if known is None:
                self.tuples[number] = tuple(self.parts[number])
        return tuple(self.tuples)  # type: ignore[arg-type]  # none of them is None


class Columns:
    """Columns of clusters, which `replace` keeps up to date."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self.clusters = list(clusters)
        self.by_name = {cluster.name: cluster for cluster in clusters}
        self.updates = 0
        """Number of replaced clusters so far."""
        self.origin = object()
        self._columns: dict[Hashable, _Column] = {}
        self._reported: list[int] = []
        """The positions of the last replaced clusters, so that nobody looks for them among all versions."""

    def replace(self, at: int, cluster: Cluster) -> None:
        """Replace the cluster at a position, and its value in each column."""
        self.clusters[at] = self.by_name[cluster.name] = cluster
        self.updates += 1
        if len(self._reported) >= _REPORTS_MAX:
            del self._reported[: _REPORTS_MAX // 2]
        self._reported.append(at)
        unused = self.updates - _UNUSED_VERSIONS_MAX * len(self.clusters)
        for key, column in list(self._columns.items()):
            if column.read_at < unused:
                del self._columns[key]
                continue
            value, parts = column.value_of(cluster), column.parts
            for number, one in enumerate(value if column.width else (value,)):
                if parts[number][at] != one:
                    parts[number][at], column.tuples[number] = one, None

    def versions(self) -> Versions:
        """Return the version of each cluster."""
        versions = Versions(self.read("version", _VERSION))
        versions.origin, versions.updates = self.origin, self.updates
        return versions

    def changed_since(self, versions: Versions) -> tuple[int, ...] | None:
        """Return the positions of clusters that were replaced since these versions, in order; None if unknown."""
        count = self.updates - versions.updates
        if versions.origin is not self.origin or count > len(self._reported):
            return None
        return tuple(sorted(set(self._reported[len(self._reported) - count :])))

    def read(self, key: Hashable, value_of: Callable[[Cluster], Any]) -> tuple[Any, ...]:
        """Return the column of a key; `value_of` returns the value of a cluster."""
        return self.read_each(key, value_of)[0]

    def read_each(
        self, key: Hashable, value_of: Callable[[Cluster], Any], width: int = 0
    ) -> tuple[tuple[Any, ...], ...]:
        """Return the columns of a key; `value_of` returns the value of a cluster, or a tuple of `width` values."""
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= _COLUMNS_MAX:
                del self._columns[min(self._columns, key=lambda each: self._columns[each].read_at)]
            values = list(map(value_of, self.clusters))
            parts = [[value[number] for value in values] for number in range(width)] if width else [values]
            column = self._columns[key] = _Column(value_of, width, parts, [None] * len(parts), self.updates)
        column.read_at = self.updates
        return column.read()
