"""The number of further pods of one shape that fit on the nodes of a cluster; `capacity.py` is the public module.

A lower bound: free amounts are rounded down, and a node whose labels are unknown counts as unsuitable. Of a cluster
that reports no nodes, sums are compared. Results are memoized with the cluster, per pod shape.
"""

from collections.abc import Mapping, Sequence
from operator import mul
from typing import NamedTuple

from federation.api.selectors import ClusterTerm
from federation.apimachinery.quantity import INT64_MAX, to_int64
from federation.scheduling.framework.types import ANY_NODE, PODS, Cluster, NodeClass, NodeNeeds, PodShape, Resources

Request = tuple[tuple[str, int], ...]


class Capacity(NamedTuple):
    """Capacity of one cluster for one pod shape."""

    room: int
    size: int
    could_run: bool
    waiting: int


def pod_capacity(cluster: Cluster, pod: PodShape) -> Capacity:
    """Return the capacity for single pods of a shape."""
    known: Capacity | None = cluster.memo.get(pod)
    return cluster.memoize(pod, _compute(cluster, pod)) if known is None else known


def _compute(cluster: Cluster, pod: PodShape) -> Capacity:
    room = _count_fitting(cluster, pod)
    size = max(fit_into(cluster.allocatable, pod.request), room, 1)
    return Capacity(room, size, room > 0 or _could_run(cluster, pod), waiting_for(cluster.waiting, pod.request))


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
        return fit_into(cluster.available, pod.request)
    room, needs, request = 0, pod.needs, pod.request
    for node_class in cluster.node_classes:
        if (needs is ANY_NODE and not node_class.taints) or suits(
            node_class, needs, cluster.omitted_node_labels, is_sure=True
        ):
            room += _count_in(node_class, request)
    return room if room <= INT64_MAX else to_int64(room)


def _count_in(node_class: NodeClass, request: Request) -> int:
    """Return how many replicas fit on the nodes of a class, all of which suit."""
    free = node_class.free
    most: Sequence[int] = free.get(PODS, ())
    wanted = [(amount, free.get(name, ())) for name, amount in request if amount]
    if len(wanted) == 2:  # cpu and memory, as nearly always: one step per group of nodes
        (first, firsts), (second, seconds) = wanted
        groups = zip(node_class.nodes, most, firsts, seconds, strict=False)
        return sum(
            [
                nodes * (a if a < pods else pods)  # noqa: FURB136  # calls would take half of the time
                if (a := one // first) < (b := two // second)
                else nodes * (b if b < pods else pods)  # noqa: FURB136
                for nodes, pods, one, two in groups
            ]
        )
    for amount, amounts in wanted:
        most = [n if (n := rest // amount) < limit else limit for rest, limit in zip(amounts, most, strict=False)]
    return sum(map(mul, node_class.nodes, most))


def waiting_for(waiting: Resources, request: Request) -> int:
    """Return how many replicas the requests of waiting pods amount to."""
    if not waiting:
        return 0
    if not request:
        return waiting.get(PODS, 0)
    return max((-(-waiting.get(name, 0) // amount) for name, amount in request if amount), default=0)


def fit_into(amounts: Resources, request: Request) -> int:
    """Return how often the request fits into the amounts; 0 for an empty request."""
    most = None
    for name, amount in request:
        if amount:
            fits = amounts.get(name, 0) // amount
            if most is None or fits < most:
                most = fits
    return most if most is not None and most > 0 else 0


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
