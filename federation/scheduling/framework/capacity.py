"""The number of further replicas that fit into a cluster, counted node by node.

Part of the public plugin API. A cluster with 20 free cores on 20 nodes takes no pod of two cores; `capacity_of` counts
that from `Cluster.node_classes`. The result is a lower bound: free amounts are rounded down, and a node whose labels
are unknown counts as unsuitable. For a cluster that reports no nodes, sums are compared. Results are memoized with the
cluster, per pod shape. `rooms_of` also subtracts assumed replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, repeat
from operator import mul
from typing import NamedTuple

from federation.api.selectors import ClusterTerm
from federation.apimachinery.quantity import to_int64
from federation.planning.placement.capacity import FreeCapacity
from federation.scheduling.framework.assumed import displaced_replicas
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.types import (
    ANY_NODE,
    PODS,
    Cluster,
    NodeClass,
    NodeNeeds,
    PodShape,
    Resources,
    SchedulingUnit,
)

_Request = tuple[tuple[str, int], ...]


class _Capacity(NamedTuple):
    """Capacity of one cluster for one pod shape."""

    room: int
    size: int
    could_run: bool
    waiting: int


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
    return (cluster.memo.get(pod) or _capacity_for(cluster, pod)).could_run


def could_run_each(clusters: ClusterGroup, pod: PodShape) -> tuple[bool, ...]:
    """Return for each cluster whether a replica would fit on an empty node of it."""
    return _columns_of(clusters, pod).could_run


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


def _capacity_for(cluster: Cluster, pod: PodShape) -> _Capacity:
    known: _Capacity | None = cluster.memo.get(pod)
    return cluster.memoize(pod, _compute(cluster, pod)) if known is None else known


def _compute(cluster: Cluster, pod: PodShape) -> _Capacity:
    room = _count_fitting(cluster, pod)
    size = max(_fit_into(cluster.allocatable, pod.request), room, 1)
    return _Capacity(room, size, room > 0 or _could_run(cluster, pod), _waiting(cluster.waiting, pod.request))


def _could_run(cluster: Cluster, pod: PodShape) -> bool:
    if cluster.node_classes is None:
        return True
    return any(
        suits(node_class, pod.needs, cluster.omitted_node_labels, is_sure=False)
        and all(node_class.largest.get(name, 0) >= amount for name, amount in pod.request)
        for node_class in cluster.node_classes
    )


def _count_fitting(cluster: Cluster, pod: PodShape) -> int:
    """Return how many replicas fit: in each class of suitable nodes, resource by resource over all node groups."""
    if cluster.node_classes is None:
        return _fit_into(cluster.available, pod.request)
    room, needs, request = 0, pod.needs, pod.request
    for node_class in cluster.node_classes:
        if (needs is ANY_NODE and not node_class.taints) or suits(
            node_class, needs, cluster.omitted_node_labels, is_sure=True
        ):
            free = node_class.free
            fits: Sequence[int] = free.get(PODS, ())
            for name, amount in request:
                if amount:
                    fits = [
                        n if (n := rest // amount) < most else most
                        for rest, most in zip(free.get(name, ()), fits, strict=False)
                    ]
            room += sum(map(mul, node_class.nodes, fits))
    return to_int64(room)


def _waiting(waiting: Resources, request: _Request) -> int:
    """Return how many replicas the requests of waiting pods amount to."""
    if not waiting:
        return 0
    if not request:
        return waiting.get(PODS, 0)
    return max((-(-waiting.get(name, 0) // amount) for name, amount in request if amount), default=0)


def _fit_into(amounts: Resources, request: _Request) -> int:
    """Return how often the request fits into the amounts; 0 for an empty request."""
    fits = [amounts.get(name, 0) // amount for name, amount in request if amount]
    return max(0, min(fits)) if fits else 0


def suits(node_class: NodeClass, needs: NodeNeeds, omitted: frozenset[str], *, is_sure: bool) -> bool:
    """Return whether the pods can run on the nodes; with `is_sure`, unknown labels count as a mismatch."""
    if node_class.taints and not all(
        any(toleration.tolerates(taint) for toleration in needs.tolerations) for taint in node_class.taints
    ):
        return False
    labels = node_class.labels
    for key, value in needs.selector:
        if is_sure if key in omitted else labels.get(key) != value:
            return False
    return needs.terms is None or any(_matches(term, labels, omitted, is_sure) for term in needs.terms.terms)


def _matches(term: ClusterTerm, labels: Mapping[str, str], omitted: frozenset[str], is_sure: bool) -> bool:
    if term.error or not (term.labels or term.name_in or term.name_not_in):
        return False
    if is_sure and (term.name_in or term.name_not_in):
        return False
    return all(not is_sure if wanted.key in omitted else wanted.matches(labels) for wanted in term.labels)
