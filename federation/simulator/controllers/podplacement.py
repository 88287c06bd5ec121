"""Select a node for a pod: the pure part of the simulated kube-scheduler, over a cache of nodes and assigned pods.

The cache keeps integer sums (millicores, bytes, counts), so that scheduling a pod costs one pass over the nodes.
Filters: unschedulable, taints, node selector, required node affinity, resources, pod count, and topology spread,
affinity and anti-affinity of pods (`podspread.py`). The score is the mean free share of CPU, memory and pods, after the
soft spread constraints; among equal scores the smallest node name wins.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api.selectors import ClusterTerms, compile_cluster_terms, tolerates
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.simulator.controllers import podspread
from federation.simulator.controllers.podspread import AssignedPods, NewPod, SpreadNode

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
Amounts = dict[str, int]
"""Resource name → amount; cpu in millicores, everything else in whole units."""


def to_amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """Return a ResourceList as integers."""
    if not resources:
        return {}
    return {key: to_milli(str(value)) if key == "cpu" else to_int_ceil(str(value)) for key, value in resources.items()}


def compute_pod_request(spec: Mapping[str, Any]) -> Amounts:
    """Return a pod's resource requests: the sum over containers, at least each init container, plus overhead."""
    total: Amounts = {}
    for container in spec.get("containers", ()):
        for key, amount in to_amounts((container.get("resources") or {}).get("requests")).items():
            total[key] = total.get(key, 0) + amount
    for container in spec.get("initContainers", ()):
        for key, amount in to_amounts((container.get("resources") or {}).get("requests")).items():
            total[key] = max(total.get(key, 0), amount)
    for key, amount in to_amounts(spec.get("overhead")).items():
        total[key] = total.get(key, 0) + amount
    return total


@dataclass(slots=True)
class _NodeInfo:
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    unschedulable: bool
    allocatable: Amounts
    used: Amounts = field(default_factory=dict)
    pods: int = 0

    def add(self, request: Amounts) -> None:
        self.pods += 1
        for key, amount in request.items():
            self.used[key] = self.used.get(key, 0) + amount


class SchedulerCache:
    """Nodes and the resources that assigned pods request on them. Owned by one pod scheduler."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeInfo] = {}
        self._assigned: dict[str, tuple[str, Amounts]] = {}
        self._pods = AssignedPods()

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self._nodes)

    @property
    def names(self) -> Collection[str]:
        """The names of the nodes."""
        return self._nodes.keys()

    def set_node(self, node: Mapping[str, Any]) -> None:
        """Add or replace a node; pods assigned to it remain counted."""
        name = node["metadata"]["name"]
        spec = node.get("spec") or {}
        known = self._nodes.get(name) or self._sum_assigned(name)
        self._nodes[name] = _NodeInfo(
            labels=node["metadata"].get("labels") or {},
            taints=tuple(spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            allocatable=to_amounts((node.get("status") or {}).get("allocatable")),
            used=known.used,
            pods=known.pods,
        )

    def _sum_assigned(self, name: str) -> _NodeInfo:
        """Return the pods assigned to an unknown node: a node that was deleted and recreated still has its pods."""
        info = _NodeInfo({}, (), unschedulable=False, allocatable={})
        for node_name, request in self._assigned.values():
            if node_name == name:
                info.add(request)
        return info

    def remove_node(self, name: str) -> None:
        """Remove a node."""
        self._nodes.pop(name, None)

    def add_pod(
        self,
        uid: str,
        node_name: str,
        request: Amounts,
        metadata: Mapping[str, Any] | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        """Count a pod on a node, once per uid; `metadata` has its namespace and labels, `spec` its anti-affinity."""
        if uid in self._assigned:
            return
        self._assigned[uid] = (node_name, request)
        self._pods.add(uid, node_name, metadata or {}, spec)
        if (node := self._nodes.get(node_name)) is not None:
            node.add(request)

    def remove_pod(self, uid: str) -> bool:
        """Stop counting a pod; return whether it was counted."""
        assigned = self._assigned.pop(uid, None)
        if assigned is None:
            return False
        node_name, request = assigned
        self._pods.remove(uid, node_name)
        if (node := self._nodes.get(node_name)) is not None:
            node.pods -= 1
            for key, amount in request.items():
                node.used[key] -= amount
        return True

    def select_node(
        self,
        spec: Mapping[str, Any],
        request: Amounts,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        without_devices: Collection[str] = (),
    ) -> tuple[str, str]:
        """Return (node name, "") or ("", the reason in kube-scheduler's words).

        Without its `labels` a pod is one that its own spread constraints count. Nodes `without_devices` do not have
        what it claims.
        """
        reasons: Counter[str] = Counter()
        best, best_score = "", (0, -1.0)
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        terms = compile_cluster_terms(required.get("nodeSelectorTerms")) if required else None
        blocked: dict[str, str] = {}
        soft: Counter[str] = Counter()
        if podspread.has_rules(spec, self._pods):
            pod = NewPod(spec, namespace, labels)
            nodes = {
                name: SpreadNode(node.labels, _is_selected(name, node, spec, terms), _untolerated(node, spec) is None)
                for name, node in self._nodes.items()
            }
            blocked = podspread.blocked_nodes(pod, nodes, self._pods)
            soft = podspread.soft_counts(pod, nodes, self._pods)
        for name, node in self._nodes.items():
            rejections = _filter_node(name, node, spec, terms, request) or ([blocked[name]] if name in blocked else [])
            if not rejections and name in without_devices:
                rejections = ["cannot allocate all claims"]
            if rejections:
                reasons.update(rejections)
                continue
            score = (-soft[name], _least_allocated_score(node, request))
            if not best or score > best_score or (score == best_score and name < best):
                best, best_score = name, score
        if best:
            return best, ""
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return "", f"0/{len(self._nodes)} nodes are available: {listed or 'no nodes'}."


def _is_selected(name: str, node: _NodeInfo, spec: Mapping[str, Any], terms: ClusterTerms | None) -> bool:
    """Return whether the node matches node selector and required node affinity."""
    selector = spec.get("nodeSelector") or {}
    is_selected = all(node.labels.get(k) == v for k, v in selector.items())
    return is_selected and (terms is None or terms.matches(name, node.labels))


def _untolerated(node: _NodeInfo, spec: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first taint that keeps the pod away."""
    tolerations = spec.get("tolerations") or ()
    for taint in node.taints:
        is_hard = taint.get("effect") in ("NoSchedule", "NoExecute")
        if is_hard and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def _filter_node(
    name: str, node: _NodeInfo, spec: Mapping[str, Any], terms: ClusterTerms | None, request: Amounts
) -> list[str]:
    """Return the reasons why the node cannot run the pod, [] when it can."""
    if node.unschedulable and not any(tolerates(each, _CORDON) for each in spec.get("tolerations") or ()):
        return ["node(s) were unschedulable"]
    if (taint := _untolerated(node, spec)) is not None:
        return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    if not _is_selected(name, node, spec, terms):
        return ["node(s) didn't match Pod's node affinity/selector"]
    rejections = [
        f"Insufficient {key}"
        for key, amount in request.items()
        if amount and node.used.get(key, 0) + amount > node.allocatable.get(key, 0)
    ]
    if node.pods + 1 > node.allocatable.get("pods", 110):
        rejections.append("Too many pods")
    return rejections


def _least_allocated_score(node: _NodeInfo, request: Amounts) -> float:
    shares = []
    for key in ("cpu", "memory"):
        capacity = node.allocatable.get(key, 0)
        if capacity:
            shares.append((capacity - node.used.get(key, 0) - request.get(key, 0)) / capacity)
    pods = node.allocatable.get("pods", 110)
    shares.append((pods - node.pods) / pods if pods else 0.0)
    return sum(shares) / len(shares)
