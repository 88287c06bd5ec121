"""Columns of the newest clusters, in the order of the snapshot: lists with one value per cluster, such as its free cpu.

A report changes one value in each column. It is computed with the report, while the cluster's data is at hand, so that
a decision reads lists of values instead of hundreds of clusters that it would have to fetch from memory. A column is
made when it is first read, and removed when no decision reads it any more. `clustergroup.py` reads columns.

Decision: docs/decisions/0074-columns-of-the-newest-clusters.md
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from federation.scheduling.framework.types import Cluster

_UNUSED_VERSIONS_MAX = 30
"""A column is kept up to date while it was read within so many reports of each cluster, some minutes."""
_COLUMNS_MAX = 128
"""With more columns, the least recently read column is removed."""


@dataclass(slots=True)
class _Column:
    value_of: Callable[[Cluster], Any]
    values: list[Any]
    read_at: int


class Columns:
    """Columns of clusters, which `replace` keeps up to date."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self.clusters = list(clusters)
        self.updates = 0
        """Number of replaced clusters so far."""
        self._columns: dict[Hashable, _Column] = {}

    def replace(self, at: int, cluster: Cluster) -> None:
        """Replace the cluster at a position, and its value in each column."""
        self.clusters[at] = cluster
        self.updates += 1
        unused = self.updates - _UNUSED_VERSIONS_MAX * len(self.clusters)
        for key, column in list(self._columns.items()):
            if column.read_at < unused:
                del self._columns[key]
            else:
                column.values[at] = column.value_of(cluster)

    def read(self, key: Hashable, value_of: Callable[[Cluster], Any]) -> tuple[Any, ...]:
        """Return the column of a key; `value_of` returns the value of a cluster."""
        column = self._columns.get(key)
        if column is None:
            if len(self._columns) >= _COLUMNS_MAX:
                del self._columns[min(self._columns, key=lambda each: self._columns[each].read_at)]
            column = self._columns[key] = _Column(value_of, list(map(value_of, self.clusters)), self.updates)
        column.read_at = self.updates
        return tuple(column.values)
