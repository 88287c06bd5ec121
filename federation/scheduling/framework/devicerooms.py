"""Clusters as a unit with claims for devices sees them: what its selectors select is a resource. Pure.

Members report how many devices of each kind every node has (`planning/clusters/deviceinventory.py`). For each need of
the unit the kinds that its selectors select are added up, node by node, so that filters, capacities and the check of
gangs count devices as they count GPUs of device plugins.

Needs may select the same devices. Whatever order a member's scheduler takes, a device that one need gets is lost for
the others, so every need is charged to all resources that it may take a device of: the result is a lower bound.

Decision: docs/decisions/0162-devices-are-counted-as-resources.md
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import mul

from federation.planning.clusters.deviceclaims import Alternative, DeviceNeed, DeviceRequest, charged, device_text
from federation.planning.clusters.deviceinventory import CLASS_SUFFIX, Selects
from federation.planning.clusters.devicekinds import Kind
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import FilterResult
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.types import (
    Cluster,
    Code,
    NodeClass,
    PodShape,
    Resources,
    SchedulingUnit,
    Status,
    pod_shape,
)

STEP = "Devices"
"""The name of this step in explanations and rejections."""
_REJECTION = Status(Code.UNSCHEDULABLE, ("cluster(s) had no node with the devices that a pod claims",), STEP)


def has_devices(unit: SchedulingUnit) -> bool:
    """Return whether pods of the unit claim devices."""
    return any(CLASS_SUFFIX in name for shape in _shapes(unit) for name, _ in shape.request)


def with_devices(unit: SchedulingUnit, clusters: ClusterGroup, selects: Selects) -> tuple[SchedulingUnit, ClusterGroup]:
    """Return unit and clusters with the unit's needs as resources; the same ones for a unit without needs."""
    needs = tuple(dict.fromkeys(need for shape in _shapes(unit) for need, _ in shape.needs.devices))
    if not needs:
        return unit, clusters
    derived = [_with_needs(cluster, needs, selects) for cluster in clusters]
    charges = _Charges(needs, clusters, selects)
    pods, parts = (
        tuple(replace(each, shape=charges.shape(each.shape)) for each in sets)
        for sets in (unit.pods.sets, unit.pods.replica_parts)
    )
    whole = charges.shape(unit.shape)
    return (
        replace(
            unit,
            pods=replace(unit.pods, sets=pods, replica_parts=parts),
            request=dict(whole.request),
            node_needs=whole.needs,
        ),
        ClusterGroup.of(derived, clusters.lasting),
    )


def _shapes(unit: SchedulingUnit) -> list[PodShape]:
    return [unit.shape, *(each.shape for each in unit.pods.sets)]


# -- clusters


def _with_needs(cluster: Cluster, needs: tuple[DeviceNeed, ...], selects: Selects) -> Cluster:
    """Return the cluster with the amounts of the needs; the same object for the same needs."""
    if not cluster.devices:
        return cluster
    key = (_with_needs, needs)
    known: Cluster | None = cluster.memo.get(key)
    if known is not None:
        return known
    groups = {need: [_groups(each, cluster, selects) for each in need.alternatives] for need in needs}

    def amounts(of: Resources, whole: Resources) -> dict[str, int]:
        return {**of, **{need.resource: _amount(need, groups[need], of, whole) for need in needs}}

    if cluster.node_classes is None:
        allocatable, available = (amounts(of, cluster.allocatable) for of in (cluster.allocatable, cluster.available))
        classes = None
    else:
        # A node has a whole number of choices, which sums over nodes would hide.
        classes = tuple(_with_amounts(each, amounts, needs) for each in cluster.node_classes)
        allocatable, available = dict(cluster.allocatable), dict(cluster.available)
        for need in needs:
            name = need.resource
            allocatable[name] = sum(max(each.size, sum(each.nodes)) * each.largest[name] for each in classes)
            available[name] = sum(sum(map(mul, each.nodes, each.free[name])) for each in classes)
    return cluster.memoize(
        key, replace(cluster, allocatable=allocatable, available=available, node_classes=classes, memo={})
    )


def _with_amounts(
    each: NodeClass, amounts: Callable[[Resources, Resources], dict[str, int]], needs: Iterable[DeviceNeed]
) -> NodeClass:
    nodes = [{name: column[at] for name, column in each.free.items()} for at in range(len(each.nodes))]
    free = [amounts(node, each.largest) for node in nodes]
    columns = {need.resource: tuple([node[need.resource] for node in free]) for need in needs}
    return replace(each, largest=amounts(each.largest, each.largest), free={**each.free, **columns})


def kinds_selected(each: Alternative, cluster: Cluster, selects: Selects) -> list[Kind]:
    """Return the kinds of a cluster's devices that an alternative selects."""
    return [
        kind
        for kind in cluster.devices.values()
        if each.device_class in kind.classes and all(selects(text, kind) for text in each.selectors)
    ]


def _groups(each: Alternative, cluster: Cluster, selects: Selects) -> list[list[str]]:
    """Return the selected kinds, those together that are partitions of the same devices."""
    groups: list[list[Kind]] = []
    for kind in kinds_selected(each, cluster, selects):
        shared = [group for group in groups if any(kind.resource in other.displaced for other in group)]
        groups = [group for group in groups if group not in shared] + [[kind, *(k for group in shared for k in group)]]
    return [[kind.resource for kind in group] for group in groups]


def _amount(need: DeviceNeed, groups: Sequence[list[list[str]]], of: Resources, whole: Resources) -> int:
    """Return how often a node has what a need asks for."""
    found = [_devices(each, of) for each in groups]
    if need.is_choice:
        return max(count // each.count for count, each in zip(found, need.alternatives, strict=True) if each.count)
    if need.is_all:
        return int(found[0] > 0 and all(of.get(name, 0) >= whole.get(name, 0) for group in groups[0] for name in group))
    return found[0]


def _devices(groups: Iterable[list[str]], of: Resources) -> int:
    """Return the number of devices. Of partitions that exclude each other, the scarcest kind counts."""
    return sum(min([amount for name in group if (amount := of.get(name, 0)) > 0], default=0) for group in groups)


# -- requests


class _Charges:
    """The charges of a unit's pods: on all resources that their needs may take devices of."""

    def __init__(self, needs: tuple[DeviceNeed, ...], clusters: Sequence[Cluster], selects: Selects) -> None:
        self._displaced: dict[tuple[str, str], int] = {}
        self._most: dict[str, int] = {}
        self._kinds: dict[str, set[str]] = {need.resource: set() for need in needs}
        for cluster in clusters:
            for kind in cluster.devices.values():
                for other, count in kind.displaced.items():
                    key = kind.resource, other
                    self._displaced[key] = max(self._displaced.get(key, 0), count)
            for need in needs:
                for each in need.alternatives:
                    found = [kind.resource for kind in kinds_selected(each, cluster, selects)]
                    self._kinds[need.resource].update(found)
                    if need.is_all:
                        sizes = [
                            sum(node.largest.get(name, 0) for name in found) for node in cluster.node_classes or ()
                        ]
                        self._most[need.resource] = max([self._most.get(need.resource, 1), *sizes])

    def shape(self, shape: PodShape) -> PodShape:
        """Return the shape with its needs as resources."""
        if not shape.needs.devices:
            return shape
        request = dict(shape.request)
        for need, count in shape.needs.devices:
            if need.is_choice or need.is_all:
                # Quotas charge its classes more than it may take; now its own resource says what it takes.
                for name, amount in charged(DeviceRequest(need.alternatives)).items():
                    request[name] = request.get(name, 0) - amount * count
            request[need.resource] = request.get(need.resource, 0) + count
            self._charge(request, need.resource, count * self._each(need))
        left = tuple(sorted((name, amount) for name, amount in request.items() if amount > 0))
        return pod_shape(left, replace(shape.needs, devices=()))

    def _charge(self, request: dict[str, int], name: str, devices: int) -> None:
        """Charge devices of one resource to all others that may lose devices by it."""
        for other in self._kinds:
            if other != name and (each := self._displaced_by(name, other)):
                request[other] = request.get(other, 0) + devices * each

    def _each(self, need: DeviceNeed) -> int:
        """Return how many devices one of a need takes at most."""
        if need.is_all:
            return self._most.get(need.resource, 1)
        return max(each.count for each in need.alternatives) if need.is_choice else 1

    def _displaced_by(self, name: str, other: str) -> int:
        """Return how many devices of another need are lost when one of this need is allocated."""
        found = [
            max(self._displaced.get((mine, theirs), 0), int(mine == theirs))
            for mine in self._kinds[name]
            for theirs in self._kinds[other]
        ]
        return max(found, default=0)


# -- the step after the filters


def within_devices(unit: SchedulingUnit, filtered: FilterResult, state: CycleState) -> tuple[FilterResult, str]:
    """Return the filter result without clusters of which no node could have what a pod claims, and why none is left."""
    shape = unit.shape
    wanted = {name: amount for name, amount in shape.request if device_text(name, amount)}
    best = dict.fromkeys(wanted, 0)
    lacking: dict[str, Status] = {}
    for cluster in filtered.feasible:
        if cluster.name in unit.current or cluster.node_classes is None:
            continue
        most = {name: max((each.largest.get(name, 0) for each in cluster.node_classes), default=0) for name in wanted}
        best = {name: max(amount, most[name]) for name, amount in best.items()}
        missing = [name for name, amount in wanted.items() if most[name] < amount]
        if missing:
            lacking[cluster.name] = _REJECTION
            name = max(missing)
            state.remark(STEP, cluster.name, f"needs {device_text(name, wanted[name])}, the best node has {most[name]}")
    if not lacking:
        return filtered, ""
    result = filtered.without(lacking)
    return result, "" if result.feasible else _describe(wanted, best, len(lacking), next(iter(lacking)))


def _describe(wanted: Resources, best: Resources, count: int, cluster: str) -> str:
    short = [name for name, amount in wanted.items() if best[name] < amount]
    which = f"the best of {count} clusters" if count > 1 else f"cluster {cluster}"
    if not short:
        texts = " and ".join([device_text(name, wanted[name]) for name in wanted])
        return f"needs {texts} on one node, which no cluster has"
    name = max(short)
    return f"needs {device_text(name, wanted[name])} on one node; {which} has {best[name]}"
