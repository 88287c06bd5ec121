"""The number of further replicas that fit into a cluster, counted node by node.

Part of the public plugin API. A cluster with 20 free cores on 20 nodes takes no pod of two cores; `capacity_of` counts
that from `Cluster.node_classes`. The result is a lower bound: free amounts are rounded down, and a node whose labels
are unknown counts as unsuitable. For a cluster that reports no nodes, sums are compared. Results are memoized with the
cluster, per pod shape. `rooms_of` also subtracts assumed replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import mul
from typing import NamedTuple

from federation.api.selectors import ClusterTerm
from federation.apimachinery.quantity import to_int64
from federation.planning.placement.capacity import FreeCapacity
from federation.scheduling.framework.assumed import displaced_replicas
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.types import (
    PODS,
    Cluster,
    NodeClass,
    NodeNeeds,
    PodShape,
    Resources,
    SchedulingUnit,
)

_NOTHING: Mapping[PodShape, tuple[int, "_Capacity"]] = {}
_UNUSED_VERSIONS_MAX = 30
"""A capacity is carried over as long as one of so many versions of its cluster, several minutes, was used for it."""
_CARRIED_MAX = 64
"""Pod shapes whose capacity is carried over."""
_Request = tuple[tuple[str, int], ...]


class _Capacity(NamedTuple):
    """Capacity of one cluster for one pod shape."""

    room: int
    size: int
    could_run: bool
    waiting: int


class _Columns(NamedTuple):
    """Capacities of the clusters of a snapshot, for one pod shape."""

    versions: tuple[int, ...]
    each: list[_Capacity]
    rooms: tuple[int, ...]
    sizes: tuple[int, ...]
    could_run: tuple[bool, ...]
    waiting: tuple[int, ...]


def capacity_of(cluster: Cluster, pod: PodShape) -> int:
    """Return how many further replicas fit into the cluster, a lower bound."""
    return _capacity_for(cluster, pod).room


def could_run(cluster: Cluster, pod: PodShape) -> bool:
    """Return whether a replica would fit on an empty node of the cluster; True when nodes are unknown."""
    return (cluster.memo.get(pod) or _capacity_for(cluster, pod)).could_run


def could_run_each(clusters: ClusterGroup, pod: PodShape) -> tuple[bool, ...]:
    """Return for each cluster whether a replica would fit on an empty node of it."""
    return clusters.pick(_columns_of(clusters, pod).could_run)


def rooms_of(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> FreeCapacity | None:
    """Return the capacity for the unit's replicas, openings included; None when no cluster reports its nodes."""
    group, pod = ClusterGroup.of(clusters), unit.shape
    if not group.cached(_reports_nodes, _reports_nodes):
        return None
    known: FreeCapacity | None = group.memo.get(pod)
    if known is None:
        known = group.memo[pod] = _rooms(group, pod)
    if unit.auto_migration is not None and unit.auto_migration.openings:
        known = known.with_openings(unit.auto_migration.openings)
    if not unit.assumed:
        return known
    lost = displaced_replicas(unit.assumed, pod.request).get
    sure = {name: room - taken if (taken := lost(name, 0)) < room else 0 for name, room in known.free.items()}
    return replace(known, unreserved=sure)


def _reports_nodes(group: ClusterGroup) -> bool:
    return any(cluster.node_classes is not None for cluster in group)


def _rooms(group: ClusterGroup, pod: PodShape) -> FreeCapacity:
    """Return the capacity without assumed replicas; cached, because many units have the same shape."""
    columns, names = _columns_of(group, pod), group.names
    free = dict(zip(names, group.pick(columns.rooms), strict=True))
    waiting = group.pick(columns.waiting)
    return FreeCapacity(
        free,
        free,
        dict(zip(names, group.pick(columns.sizes), strict=True)),
        dict(zip(compress(names, waiting), filter(None, waiting), strict=True)),
    )


def _columns_of(clusters: ClusterGroup, pod: PodShape) -> _Columns:
    """Return the capacities of the whole of which the clusters are a part; only changed clusters are read again."""
    whole, shapes = clusters.whole, clusters.lasting.setdefault(_columns_of, {})
    known: _Columns | None = shapes.get(pod)
    if known is not None and known.versions is whole.versions:
        return known
    changed = range(len(whole)) if known is None else whole.changed_since(known.versions)
    if known is None or len(changed) == len(whole):
        each = [cluster.memo.get(pod) or _capacity_for(cluster, pod) for cluster in whole]
    else:
        each = known.each.copy()
        for at in changed:
            each[at] = _capacity_for(whole[at], pod)
    if known is None and len(shapes) >= _CARRIED_MAX:
        shapes.clear()
    columns = zip(*each, strict=True) if each else ((), (), (), ())
    known = shapes[pod] = _Columns(whole.versions, each, *columns)
    return known


def carry_over(old: Cluster, new: Cluster) -> None:
    """Compute the capacity of a changed cluster for the pod shapes that recent versions of it were used for.

    The cost is paid with the report, for one cluster, instead of in the next decision.
    """
    unused = dict.fromkeys([pod for pod in old.memo if isinstance(pod, PodShape)], 0)
    for pod, (versions, _) in old.memo.get(carry_over, _NOTHING).items():
        if versions < _UNUSED_VERSIONS_MAX:
            unused.setdefault(pod, versions + 1)
    shapes = list(unused.items())[:_CARRIED_MAX]
    new.memoize(carry_over, {pod: (versions, _compute(new, pod)) for pod, versions in shapes})


def _capacity_for(cluster: Cluster, pod: PodShape) -> _Capacity:
    memo = cluster.memo
    known: _Capacity | None = memo.get(pod)
    if known is None:
        carried = memo.get(carry_over, _NOTHING).get(pod)
        if carried is None:
            return cluster.memoize(pod, _compute(cluster, pod))
        memo[pod] = known = carried[1]
    return known


def _compute(cluster: Cluster, pod: PodShape) -> _Capacity:
    room = _count_fitting(cluster, pod)
    size = max(_fit_into(cluster.allocatable, pod.request), room, 1)
    return _Capacity(room, size, room > 0 or _could_run(cluster, pod), _waiting(cluster.waiting, pod.request))


def _could_run(cluster: Cluster, pod: PodShape) -> bool:
    if cluster.node_classes is None:
        return True
    return any(
        _suits(node_class, pod.needs, cluster.omitted_node_labels, is_sure=False)
        and all(node_class.largest.get(name, 0) >= amount for name, amount in pod.request)
        for node_class in cluster.node_classes
    )


def _count_fitting(cluster: Cluster, pod: PodShape) -> int:
    if cluster.node_classes is None:
        return _fit_into(cluster.available, pod.request)
    return to_int64(
        sum(
            _fit_on_nodes(node_class, pod.request)
            for node_class in cluster.node_classes
            if _suits(node_class, pod.needs, cluster.omitted_node_labels, is_sure=True)
        )
    )


def _fit_on_nodes(node_class: NodeClass, request: _Request) -> int:
    """Return how many replicas fit, resource by resource over all node groups."""
    fits: Sequence[int] = node_class.free.get(PODS, ())
    for name, amount in request:
        if amount:
            free = node_class.free.get(name, ())
            fits = [n if (n := rest // amount) < most else most for rest, most in zip(free, fits, strict=False)]
    return sum(map(mul, node_class.nodes, fits))


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


def _suits(node_class: NodeClass, needs: NodeNeeds, omitted: frozenset[str], *, is_sure: bool) -> bool:
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
