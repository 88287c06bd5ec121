"""How many more replicas of one pod fit into a cluster, node by node.

Part of the public plugin API. A cluster with 20 free cores on 20 nodes takes no pod of two cores; `capacity_of` knows
that from `Cluster.node_classes`. The answer is never more than fits: free amounts are rounded down, and a node whose
labels or taints are not known well enough counts as unsuitable. A cluster that reports no nodes is judged by its sums.
Answers are kept with the cluster, per shape of pod. `rooms_of` also takes off what recent decisions have promised.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from operator import attrgetter, mul
from typing import NamedTuple

from federation.api.quantity import to_int64
from federation.api.selectors import ClusterTerm
from federation.planning.placement.room import Rooms
from federation.scheduling.framework.promised import displaced
from federation.scheduling.framework.types import (
    PODS,
    Cluster,
    NodeClass,
    NodeNeeds,
    PodShape,
    Resources,
    SchedulingUnit,
)

_NAME, _WAITING = attrgetter("name"), attrgetter("waiting")
_NOTHING: Mapping[PodShape, "_Answer"] = {}
_Request = tuple[tuple[str, int], ...]


class _Answer(NamedTuple):
    """About one cluster and one shape of pod."""

    room: int
    size: int
    could_run: bool


def capacity_of(cluster: Cluster, pod: PodShape) -> int:
    """Return how many more replicas surely fit into the cluster."""
    return _answer(cluster, pod).room


def could_run(cluster: Cluster, pod: PodShape) -> bool:
    """Say whether a replica would fit on some node of the cluster if that were empty; True when nodes are not known."""
    return _answer(cluster, pod).could_run


def rooms_of(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> Rooms | None:
    """Return the room for the unit's replicas, openings included; None when no cluster reports its nodes."""
    pod = unit.shape
    known = _rooms(tuple(clusters), pod)
    if known is not None and unit.auto_migration is not None and unit.auto_migration.openings:
        known = known.with_openings(unit.auto_migration.openings)
    if known is None or not unit.reserved:
        return known
    lost = displaced(unit.reserved, pod.request).get
    sure = {name: room - taken if (taken := lost(name, 0)) < room else 0 for name, room in known.free.items()}
    return replace(known, sure=sure)


@lru_cache(maxsize=64)
def _rooms(clusters: tuple[Cluster, ...], pod: PodShape) -> Rooms | None:
    """Return the rooms without promises; the last ones are remembered, because many units in a row ask for the same."""
    if all(cluster.node_classes is None for cluster in clusters):
        return None
    rooms, sizes, _ = zip(*[cluster.memo.get(pod) or _answer(cluster, pod) for cluster in clusters], strict=True)
    names = tuple(map(_NAME, clusters))
    free = dict(zip(names, rooms, strict=True))
    wanting = compress(clusters, map(_WAITING, clusters))
    waiting = {c.name: count for c in wanting if (count := _waiting(c.waiting, pod.request))}
    return Rooms(free, free, dict(zip(names, sizes, strict=True)), waiting)


def carry_over(old: Cluster, new: Cluster) -> None:
    """Answer for a cluster that has reported what was asked about it since its report before.

    So this is paid once per report, by that cluster alone, and not by the decision that comes next.
    """
    new.keep(carry_over, {pod: _compute(new, pod) for pod in old.memo if isinstance(pod, PodShape)})


def _answer(cluster: Cluster, pod: PodShape) -> _Answer:
    memo = cluster.memo
    known: _Answer | None = memo.get(pod)
    if known is None:
        carried = memo.get(carry_over, _NOTHING)
        known = cluster.keep(pod, carried.get(pod) or _compute(cluster, pod))
    return known


def _compute(cluster: Cluster, pod: PodShape) -> _Answer:
    room = _capacity(cluster, pod)
    size = max(_fit_into(cluster.allocatable, pod.request), room, 1)
    return _Answer(room, size, room > 0 or _could_run(cluster, pod))


def _could_run(cluster: Cluster, pod: PodShape) -> bool:
    if cluster.node_classes is None:
        return True
    return any(
        _suits(node_class, pod.needs, cluster.omitted_node_labels, is_sure=False)
        and all(node_class.largest.get(name, 0) >= amount for name, amount in pod.request)
        for node_class in cluster.node_classes
    )


def _capacity(cluster: Cluster, pod: PodShape) -> int:
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
    """Return how many replicas fit, taking one resource of all groups of nodes after the other."""
    fits: Sequence[int] = node_class.free.get(PODS, ())
    for name, amount in request:
        if amount:
            free = node_class.free.get(name, ())
            fits = [n if (n := rest // amount) < most else most for rest, most in zip(free, fits, strict=False)]
    return sum(map(mul, node_class.nodes, fits))


def _waiting(waiting: Resources, request: _Request) -> int:
    """Return how many replicas would have room in what waiting pods request."""
    if not request:
        return waiting.get(PODS, 0)
    return max((-(-waiting.get(name, 0) // amount) for name, amount in request if amount), default=0)


def _fit_into(amounts: Resources, request: _Request) -> int:
    """Return how often the request fits into the amounts; 0 for a request of nothing."""
    fits = [amounts.get(name, 0) // amount for name, amount in request if amount]
    return max(0, min(fits)) if fits else 0


def _suits(node_class: NodeClass, needs: NodeNeeds, omitted: frozenset[str], *, is_sure: bool) -> bool:
    """Say whether the pods can go to the class's nodes; what is not known of the nodes counts as no when `is_sure`."""
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
