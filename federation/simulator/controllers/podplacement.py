"""Select a node for a pod: the pure part of the simulated kube-scheduler, over a cache of nodes and assigned pods.

The cache keeps integer sums (millicores, bytes, counts), so that scheduling a pod costs one pass over the nodes.
Filters: unschedulable, taints, node selector, required node affinity, resources, pod count, and topology spread,
affinity and anti-affinity of pods (`podspread.py`). `podscores.py` scores the nodes that are left; among equal scores
the smallest node name wins.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.api.selectors import ClusterTerms, compile_cluster_terms, tolerates
from federation.apimachinery.quantity import to_int_ceil, to_milli
from federation.simulator.controllers import podspread
from federation.simulator.controllers.podscores import (
    SPREAD_WEIGHT,
    Amounts,
    Spread,
    resource_score,
    scored_request,
    spread_scores,
)
from federation.simulator.controllers.podspread import AssignedPods, NewPod, SpreadNode

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


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
    scored: Amounts = field(default_factory=dict)
    """What its pods use for scores, with defaults for what they do not say."""
    pods: int = 0

    def add(self, request: Amounts, scored: Amounts) -> None:
        self.pods += 1
        for sums, amounts in ((self.used, request), (self.scored, scored)):
            for key, amount in amounts.items():
                sums[key] = sums.get(key, 0) + amount

    def subtract(self, request: Amounts, scored: Amounts) -> None:
        self.pods -= 1
        for sums, amounts in ((self.used, request), (self.scored, scored)):
            for key, amount in amounts.items():
                sums[key] -= amount


class SchedulerCache:
    """Nodes and the resources that assigned pods request on them. Owned by one pod scheduler."""

    def __init__(self) -> None:
        self._nodes: dict[str, _NodeInfo] = {}
        self._assigned: dict[str, tuple[str, Amounts, Amounts]] = {}
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
            scored=known.scored,
            pods=known.pods,
        )

    def _sum_assigned(self, name: str) -> _NodeInfo:
        """Return the pods assigned to an unknown node: a node that was deleted and recreated still has its pods."""
        info = _NodeInfo({}, (), unschedulable=False, allocatable={})
        for node_name, request, scored in self._assigned.values():
            if node_name == name:
                info.add(request, scored)
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
        scored = scored_request(spec or {}, request)
        self._assigned[uid] = (node_name, request, scored)
        self._pods.add(uid, node_name, metadata or {}, spec)
        if (node := self._nodes.get(node_name)) is not None:
            node.add(request, scored)

    def remove_pod(self, uid: str) -> bool:
        """Stop counting a pod; return whether it was counted."""
        assigned = self._assigned.pop(uid, None)
        if assigned is None:
            return False
        node_name, request, scored = assigned
        self._pods.remove(uid, node_name)
        if (node := self._nodes.get(node_name)) is not None:
            node.subtract(request, scored)
        return True

    def select_node(
        self,
        spec: Mapping[str, Any],
        request: Amounts,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        without_devices: Collection[str] = (),
        owner: str = "",
    ) -> tuple[str, str]:
        """Return (node name, "") or ("", the reason in kube-scheduler's words).

        Without its `labels` a pod is one that its own spread constraints count. Nodes `without_devices` do not have
        what it claims. `owner` is the uid of the controller whose pods are spread without constraints.
        """
        reasons: Counter[str] = Counter()
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        terms = compile_cluster_terms(required.get("nodeSelectorTerms")) if required else None
        blocked: dict[str, str] = {}
        pod = NewPod(spec, namespace, labels)
        nodes: dict[str, SpreadNode] = {}
        if podspread.has_rules(spec, self._pods):
            nodes = {
                name: SpreadNode(node.labels, _is_selected(name, node, spec, terms), _untolerated(node, spec) is None)
                for name, node in self._nodes.items()
            }
            blocked = podspread.blocked_nodes(pod, nodes, self._pods)
        feasible = []
        for name, node in self._nodes.items():
            rejections = _filter_node(name, node, spec, terms, request) or ([blocked[name]] if name in blocked else [])
            if not rejections and name in without_devices:
                rejections = ["cannot allocate all claims"]
            if rejections:
                reasons.update(rejections)
            else:
                feasible.append(name)
        if len(feasible) > 1:
            spreads = self._spreads(pod, nodes, feasible, owner)
            return self._best(feasible, request, scored_request(spec, request), spreads), ""
        if feasible:
            return feasible[0], ""
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return "", f"0/{len(self._nodes)} nodes are available: {listed or 'no nodes'}."

    def _spreads(
        self, pod: NewPod, nodes: Mapping[str, SpreadNode], feasible: Sequence[str], owner: str
    ) -> Sequence[Spread]:
        """Return the soft constraints of a pod, or else those for its owner."""
        if pod.spec.get("topologySpreadConstraints"):
            return podspread.soft_spreads(pod, feasible, nodes, self._pods)
        if owner:
            labels = {name: node.labels for name, node in self._nodes.items()}
            return podspread.default_spreads(owner, feasible, labels, self._pods)
        return ()

    def _best(self, feasible: Sequence[str], request: Amounts, scored: Amounts, spreads: Sequence[Spread]) -> str:
        """Return the first by name of the nodes with the highest score."""
        spread = spread_scores(spreads) if spreads else [0] * len(feasible)
        best, best_score = "", -1
        for name, apart in zip(feasible, spread, strict=True):
            node = self._nodes[name]
            score = resource_score(node.allocatable, node.used, node.scored, request, scored) + SPREAD_WEIGHT * apart
            if score > best_score or (score == best_score and name < best):
                best, best_score = name, score
        return best


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
