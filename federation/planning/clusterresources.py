"""What a member cluster has and what of it is free, summed from its nodes and pods (spec §15.4).

A node counts when pods can go to it; every pod that has not ended counts against it, also those on nodes that do not
count, as KubeAdmiral does it, so `available` may be negative. Full objects and those of `runtime/slim.py` give the same
sums. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from federation.api import names
from federation.api.quantity import ZERO, Quantity, parse
from federation.api.resources import Object

Amounts = dict[str, Quantity]
NodeFilter = Callable[[Mapping[str, str]], bool]
"""Says for a node's labels whether the node is left out."""

KATALYST_PLUGIN = "node.katalyst.kubewharf.io"
_KATALYST_PREFIX = "resource.katalyst.kubewharf.io/"
_ENDED = ("Succeeded", "Failed")
_TAINT_EFFECTS = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class ClusterResources:
    """The sums of one cluster."""

    schedulable_nodes: int = 0
    allocatable: Amounts = field(default_factory=dict)
    available: Amounts = field(default_factory=dict)

    def to_status(self) -> Object:
        """Return `status.resources` of a FederatedCluster."""
        return {
            "schedulableNodes": self.schedulable_nodes,
            "allocatable": {name: str(amount) for name, amount in sorted(self.allocatable.items())},
            "available": {name: str(amount) for name, amount in sorted(self.available.items())},
        }


def is_schedulable(node: Mapping[str, Any]) -> bool:
    """Say whether pods can go to the node: not cordoned, no NoSchedule or NoExecute taint, not known to be unready."""
    spec = node.get("spec") or {}
    if spec.get("unschedulable"):
        return False
    if any(taint.get("effect") in _TAINT_EFFECTS for taint in spec.get("taints") or ()):
        return False
    conditions = (node.get("status") or {}).get("conditions") or ()
    return all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")


def aggregate(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    *,
    is_left_out: NodeFilter | None = None,
) -> ClusterResources:
    """Return the sums over the nodes that count and the pods that have not ended."""
    counted = [
        node
        for node in nodes
        if is_schedulable(node) and not (is_left_out and is_left_out((node.get("metadata") or {}).get("labels") or {}))
    ]
    allocatable: Amounts = {}
    for node in counted:
        for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items():
            if name != "pods":
                allocatable[name] = allocatable.get(name, ZERO) + parse(amount)
    used: Amounts = {}
    for pod in pods:
        for name, amount in pod_requests(pod).items():
            used[name] = used.get(name, ZERO) + amount
    available = {name: amount - used.get(name, ZERO) for name, amount in allocatable.items()}
    return ClusterResources(len(counted), allocatable, available)


def pod_requests(pod: Mapping[str, Any]) -> Amounts:
    """Return what the pod holds: nothing when it ended."""
    if (pod.get("status") or {}).get("phase") in _ENDED:
        return {}
    return spec_requests(pod.get("spec") or {})


def spec_requests(spec: Mapping[str, Any]) -> Amounts:
    """Return a pod spec's request: the sum of its containers, at least each init container's, plus the overhead.

    A limit stands in for a missing request. Init containers that restart always (sidecars) run beside the containers.
    """
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _container_requests(container))
    for container in spec.get("initContainers") or ():
        wanted = _container_requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(sidecars, wanted)
            wanted = sidecars
        else:
            wanted = {name: amount + sidecars.get(name, ZERO) for name, amount in wanted.items()}
        for name, amount in wanted.items():
            peak[name] = max(peak.get(name, ZERO), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, ZERO), amount)
    _add(total, {name: parse(amount) for name, amount in (spec.get("overhead") or {}).items()})
    return total


def _container_requests(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse(amount) for name, amount in wanted.items()}


def _add(total: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def resolve_plugins(annotations: Mapping[str, str], known: Iterable[str]) -> list[str]:
    """Return the known collectors that the annotation asks for; ValueError when it is no JSON list of texts."""
    text = annotations.get(names.CLUSTER_RESOURCE_PLUGINS)
    if not text:
        return []
    wanted = orjson.loads(text)
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise ValueError(f"{names.CLUSTER_RESOURCE_PLUGINS}: {text!r} is not a JSON list of names")
    available = set(known)
    return [name for name in wanted if name in available]


def aggregate_katalyst(
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]],
    custom_node_resources: Iterable[Mapping[str, Any]],
) -> tuple[Amounts, Amounts]:
    """Return allocatable and available reclaimed resources, from katalyst's CustomNodeResources of the given nodes.

    A CustomNodeResource is `{"name", "allocatable"}` here, its allocatable None when it reports nothing.
    """
    counted = {node["metadata"]["name"] for node in nodes}
    allocatable: Amounts = {}
    for item in custom_node_resources:
        if item["name"] in counted:
            for name, amount in (item.get("allocatable") or {}).items():
                allocatable[name] = allocatable.get(name, ZERO) + parse(amount)
    available = dict(allocatable)
    for pod in pods:
        for name, amount in pod_requests(pod).items():
            if name.startswith(_KATALYST_PREFIX) and name in available:
                available[name] = available[name] - amount
    return allocatable, available
