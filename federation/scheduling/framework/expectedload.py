"""Clusters as they will be when members report the replicas of recent decisions: the view of Filter, Score and Select.

A hundred decisions may be made between two reports of a member. Where the choice of clusters depends on their free
resources, all of them would choose the cluster that was emptiest in the report. So every plugin of these steps sees the
clusters less the assumed replicas (`assumed.py`), by sums and by node class; no plugin needs to know that. The division
of replicas counts assumed replicas itself, exactly (`capacity.py`), so it gets the clusters as they were reported.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from federation.scheduling.framework.assumed import Request
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.groupcounts import GROUP_LIMITS
from federation.scheduling.framework.types import PODS, Cluster, NodeClass, Resources, SchedulingMode, SchedulingUnit

_MEMO = "expected load"
_Nodes = tuple[int, dict[str, int]]
"""A number of nodes, and what each of them has free."""


def with_assumed(unit: SchedulingUnit, clusters: ClusterGroup) -> ClusterGroup:
    """Return the clusters less what recent decisions use, or the group itself when the choice does not depend on it."""
    is_divided_over_all = unit.mode is SchedulingMode.DIVIDE and unit.max_clusters is None and not GROUP_LIMITS.of(unit)
    if not unit.assumed or is_divided_over_all:
        return clusters
    positions, changed = clusters.positions, list(clusters)
    for name, counts in unit.assumed.items():
        at = positions.get(name)
        if at is not None:
            changed[at] = _loaded(changed[at], counts)
    return ClusterGroup.of(changed, clusters.lasting)


def _loaded(cluster: Cluster, counts: Mapping[Request, int]) -> Cluster:
    """Return the cluster less the counts; the same object for the same counts, so that caches of scores stay valid."""
    known = cluster.memo.get(_MEMO)
    if known is not None and known[0] == counts:
        loaded: Cluster = known[1]
        return loaded
    available, classes = dict(cluster.available), cluster.node_classes
    for request, count in counts.items():
        for name, amount in request:
            if name in available:
                available[name] -= amount * count
        if classes is not None:
            classes = _filled(classes, dict(request), count)
    loaded = replace(cluster, available=available, node_classes=classes, memo={})
    cluster.memoize(_MEMO, (dict(counts), loaded))
    return loaded


def _filled(classes: tuple[NodeClass, ...], request: Resources, count: int) -> tuple[NodeClass, ...]:
    """Return the node classes after placing so many replicas, each time on the nodes that can hold most of them."""
    needs = {**{name: amount for name, amount in request.items() if amount}, PODS: 1}
    groups: list[list[_Nodes]] = [list(_groups_of(each)) for each in classes]
    while count > 0:
        fits, at, place = max(
            (
                (_fits(free, needs), at, place)
                for at, nodes in enumerate(groups)
                for place, (size, free) in enumerate(nodes)
                if size
            ),
            default=(0, 0, 0),
        )
        if not fits:
            break
        size, free = groups[at].pop(place)
        each = max(1, min(fits, count // size))
        used = min(size, count // each)
        count -= used * each
        left = {name: amount - each * needs.get(name, 0) for name, amount in free.items()}
        groups[at] += [(number, amounts) for number, amounts in ((used, left), (size - used, free)) if number]
    return tuple([_to_class(each, nodes) for each, nodes in zip(classes, groups, strict=True)])


def _groups_of(each: NodeClass) -> Iterator[_Nodes]:
    for at, size in enumerate(each.nodes):
        yield size, {name: amounts[at] for name, amounts in each.free.items()}


def _to_class(each: NodeClass, nodes: list[_Nodes]) -> NodeClass:
    free = {name: tuple([amounts[name] for _, amounts in nodes]) for name in each.free}
    return replace(each, nodes=tuple([size for size, _ in nodes]), free=free)


def _fits(free: Mapping[str, int], needs: Mapping[str, int]) -> int:
    return min([max(0, free.get(name, 0)) // amount for name, amount in needs.items()])
