"""The number of further replicas that fit into a cluster, counted node by node.

Part of the public plugin API. A cluster with 20 free cores on 20 nodes takes no pod of two cores; `capacity_of` counts
that from `Cluster.node_classes` (`nodecapacity.py`). The result is a lower bound. A replica of several pods counts if
all of them fit at the same time (`gangfit.py`). `rooms_of` also subtracts assumed replicas.

Decision: docs/decisions/0164-what-is-divided-keeps-its-groups.md
"""

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import Any

from federation.planning.placement.capacity import FreeCapacity
from federation.planning.placement.replicas import Column
from federation.scheduling.framework.assumed import AssumedReplicas, displaced_replicas
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.gangfit import count_groups
from federation.scheduling.framework.migrations import AUTO_MIGRATION
from federation.scheduling.framework.nodecapacity import Capacity, fit_into, pod_capacity, waiting_for
from federation.scheduling.framework.types import Cluster, PodShape, SchedulingUnit

_ROOMS, _SIZES, _COULD_RUN, _WAITING = map(Capacity._fields.index, ("room", "size", "could_run", "waiting"))


def capacity_of(cluster: Cluster, pod: PodShape) -> int:
    """Return how many further replicas fit into the cluster, a lower bound."""
    return _capacity_for(pod, cluster).room


def waiting_pods(cluster: Cluster, pod: PodShape) -> int:
    """Return how many such pods the requests of pods without a node amount to."""
    return _capacity_for(pod, cluster).waiting


def could_run(cluster: Cluster, pod: PodShape) -> bool:
    """Return whether a replica would fit on an empty node of the cluster; True when nodes are unknown."""
    return _capacity_for(pod, cluster).could_run


def could_run_each(clusters: ClusterGroup, pod: PodShape) -> tuple[bool, ...]:
    """Return for each cluster whether a replica would fit on an empty node of it."""
    return _column_of(clusters, pod, _COULD_RUN)


def capacity_of_each(clusters: ClusterGroup, pod: PodShape) -> tuple[int, ...]:
    """Return for each cluster how many further replicas fit into it."""
    return _column_of(clusters, pod, _ROOMS)


def rooms_of(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> FreeCapacity | None:
    """Return the capacity for the unit's replicas, openings included; None when no cluster reports its nodes."""
    group, pod = ClusterGroup.of(clusters), unit.shape
    if not group.cached(_reports_nodes, _reports_nodes):
        return None
    known = group.cached((_rooms, pod), partial(_rooms, pod))
    if openings := AUTO_MIGRATION.of(unit).openings:
        known = known.with_openings(openings)
    if not unit.assumed:
        return known
    lost = _displaced_each(unit, group)
    free = known.free.values()
    sure = [room - taken if taken < room else 0 for room, taken in zip(free, lost, strict=True)] if any(lost) else free
    return FreeCapacity(known.free, Column(group.names, tuple(sure)), known.sizes, known.waiting)


def _displaced_each(unit: SchedulingUnit, group: ClusterGroup) -> Sequence[int]:
    """Return for each cluster how many replicas have no capacity left because of assumed ones."""
    assumed, request, whole = unit.assumed, unit.shape.request, group.whole
    if not isinstance(assumed, AssumedReplicas) or group.is_small:
        return list(map(displaced_replicas(assumed, request).get, group.names, repeat(0)))
    return group.pick(assumed.displaced.each(request, assumed, whole.names, whole.lasting))


def _reports_nodes(group: ClusterGroup) -> bool:
    return any(cluster.node_classes is not None for cluster in group)


def _rooms(pod: PodShape, group: ClusterGroup) -> FreeCapacity:
    """Return the capacity without assumed replicas; cached, because many units have the same shape."""
    rooms, sizes, waiting = (_column_of(group, pod, number) for number in (_ROOMS, _SIZES, _WAITING))
    free = Column(group.names, rooms)
    return FreeCapacity(free, free, Column(group.names, sizes), Column(group.names, waiting).placed())


def _column_of(clusters: ClusterGroup, pod: PodShape, number: int) -> tuple[Any, ...]:
    """Return one of the columns."""
    if clusters.is_small:
        return _columns_of(clusters, pod)[number]
    return clusters.pick(_columns_of(clusters.whole, pod)[number])


def _columns_of(clusters: ClusterGroup, pod: PodShape) -> tuple[tuple[Any, ...], ...]:
    return clusters.columns((_capacity_for, pod), partial(_capacity_for, pod), len(Capacity._fields))


def _capacity_for(pod: PodShape, cluster: Cluster) -> Capacity:
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
