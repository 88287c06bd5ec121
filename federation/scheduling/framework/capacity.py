"""The number of further replicas that fit into a cluster, counted node by node.

Part of the public plugin API. A cluster with 20 free cores on 20 nodes takes no pod of two cores; `capacity_of` counts
that from `Cluster.node_classes` (`nodecapacity.py`). The result is a lower bound. A replica of several pods counts if
all of them fit at the same time (`gangfit.py`). `rooms_of` also subtracts assumed replicas.

Decision: docs/decisions/0164-what-is-divided-keeps-its-groups.md
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, repeat
from typing import NamedTuple

from federation.planning.placement.capacity import FreeCapacity
from federation.scheduling.framework.assumed import displaced_replicas
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.gangfit import count_groups
from federation.scheduling.framework.nodecapacity import Capacity, fit_into, pod_capacity, waiting_for
from federation.scheduling.framework.types import Cluster, PodShape, SchedulingUnit


class _Columns(NamedTuple):
    """Capacities of clusters, for one pod shape."""

    rooms: tuple[int, ...]
    sizes: tuple[int, ...]
    could_run: tuple[bool, ...]
    waiting: tuple[int, ...]


def capacity_of(cluster: Cluster, pod: PodShape) -> int:
    """Return how many further replicas fit into the cluster, a lower bound."""
    return _capacity_for(cluster, pod).room


def waiting_pods(cluster: Cluster, pod: PodShape) -> int:
    """Return how many such pods the requests of pods without a node amount to."""
    return _capacity_for(cluster, pod).waiting


def could_run(cluster: Cluster, pod: PodShape) -> bool:
    """Return whether a replica would fit on an empty node of the cluster; True when nodes are unknown."""
    return _capacity_for(cluster, pod).could_run


def could_run_each(clusters: ClusterGroup, pod: PodShape) -> tuple[bool, ...]:
    """Return for each cluster whether a replica would fit on an empty node of it."""
    return _columns_of(clusters, pod).could_run


def capacity_of_each(clusters: ClusterGroup, pod: PodShape) -> tuple[int, ...]:
    """Return for each cluster how many further replicas fit into it."""
    return _columns_of(clusters, pod).rooms


def rooms_of(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> FreeCapacity | None:
    """Return the capacity for the unit's replicas, openings included; None when no cluster reports its nodes."""
    group, pod = ClusterGroup.of(clusters), unit.shape
    if not group.cached(_reports_nodes, _reports_nodes):
        return None
    known = group.cached((_rooms, pod), partial(_rooms, pod))
    if unit.auto_migration is not None and unit.auto_migration.openings:
        known = known.with_openings(unit.auto_migration.openings)
    if not unit.assumed:
        return known
    lost = map(displaced_replicas(unit.assumed, pod.request).get, known.names, repeat(0))
    sure = [room - taken if taken < room else 0 for room, taken in zip(known.free.values(), lost, strict=True)]
    return replace(known, unreserved=dict(zip(known.names, sure, strict=True)))


def _reports_nodes(group: ClusterGroup) -> bool:
    return any(cluster.node_classes is not None for cluster in group)


def _rooms(pod: PodShape, group: ClusterGroup) -> FreeCapacity:
    """Return the capacity without assumed replicas; cached, because many units have the same shape."""
    columns, names = _columns_of(group, pod), group.names
    free = dict(zip(names, columns.rooms, strict=True))
    waiting = columns.waiting
    return FreeCapacity(
        free,
        free,
        dict(zip(names, columns.sizes, strict=True)),
        dict(zip(compress(names, waiting), filter(None, waiting), strict=True)) if any(waiting) else {},
        names,
    )


def _columns_of(clusters: ClusterGroup, pod: PodShape) -> _Columns:
    return _Columns(*clusters.columns((_capacity_for, pod), partial(_capacity_for, pod=pod), len(_Columns._fields)))


def _capacity_for(cluster: Cluster, pod: PodShape) -> Capacity:
    if not pod.parts:
        return pod_capacity(cluster, pod)
    known: Capacity | None = cluster.memo.get(pod)
    return cluster.memoize(pod, _of_groups(cluster, pod)) if known is None else known


def _of_groups(cluster: Cluster, pod: PodShape) -> Capacity:
    """Return the capacity for replicas of several pods, each of which has to fit whole."""
    could_run = all(pod_capacity(cluster, part.shape).could_run for part in pod.parts)
    room = count_groups(pod.parts, cluster) if could_run else 0
    size = max(fit_into(cluster.allocatable, pod.request), room, 1)
    return Capacity(room, size, could_run, waiting_for(cluster.waiting, pod.request))
