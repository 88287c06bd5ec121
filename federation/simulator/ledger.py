"""What is free on each node, and which node a pod goes to: the simulated kube-scheduler's pure half.

The ledger is fed with nodes and assigned pods and keeps integer sums (millicores, bytes, counts), so that placing a pod
costs one pass over the nodes. Filters: unschedulable, taints, node selector, required node affinity, resources and pod
count. Score: the node with the largest free share of CPU and memory, the smallest name among equals.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api.quantity import to_int_ceil, to_milli

Amounts = dict[str, int]
"""Resource name → amount; cpu in millicores, everything else in whole units."""


def to_amounts(resources: Mapping[str, Any] | None) -> Amounts:
    """Return a ResourceList as integers."""
    if not resources:
        return {}
    return {key: to_milli(str(value)) if key == "cpu" else to_int_ceil(str(value)) for key, value in resources.items()}


def compute_pod_request(spec: Mapping[str, Any]) -> Amounts:
    """Return what a pod asks of a node: the sum over containers, at least each init container, plus overhead."""
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
class _Node:
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    unschedulable: bool
    allocatable: Amounts
    used: Amounts = field(default_factory=dict)
    pods: int = 0


class Ledger:
    """Free resources by node. Not thread-safe; owned by one pod scheduler."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._assigned: dict[str, tuple[str, Amounts]] = {}

    def set_node(self, node: Mapping[str, Any]) -> None:
        """Add or replace a node; what is assigned to it stays."""
        name = node["metadata"]["name"]
        spec = node.get("spec") or {}
        known = self._nodes.get(name) or self._held(name)
        self._nodes[name] = _Node(
            labels=node["metadata"].get("labels") or {},
            taints=tuple(spec.get("taints") or ()),
            unschedulable=bool(spec.get("unschedulable")),
            allocatable=to_amounts((node.get("status") or {}).get("allocatable")),
            used=known.used,
            pods=known.pods,
        )

    def _held(self, name: str) -> _Node:
        """Return what is assigned to a node that was not there: one that came back still has its pods."""
        held = _Node({}, (), unschedulable=False, allocatable={})
        for node_name, request in self._assigned.values():
            if node_name == name:
                held.pods += 1
                for key, amount in request.items():
                    held.used[key] = held.used.get(key, 0) + amount
        return held

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self._nodes.pop(name, None)

    def assign(self, uid: str, node_name: str, request: Amounts) -> None:
        """Count a pod on a node; doing it twice counts once."""
        if uid in self._assigned:
            return
        self._assigned[uid] = (node_name, request)
        if (node := self._nodes.get(node_name)) is not None:
            node.pods += 1
            for key, amount in request.items():
                node.used[key] = node.used.get(key, 0) + amount

    def release(self, uid: str) -> bool:
        """Give a pod's share back; returns whether it had one."""
        assigned = self._assigned.pop(uid, None)
        if assigned is None:
            return False
        node_name, request = assigned
        if (node := self._nodes.get(node_name)) is not None:
            node.pods -= 1
            for key, amount in request.items():
                node.used[key] -= amount
        return True

    def choose_node(self, spec: Mapping[str, Any], request: Amounts) -> tuple[str, str]:
        """Return (node name, "") or ("", why no node fits, in kube-scheduler's words)."""
        reasons: Counter[str] = Counter()
        best, best_score = "", -1.0
        for name, node in self._nodes.items():
            refusals = _refuse(node, spec, request)
            if refusals:
                reasons.update(refusals)
                continue
            score = _free_share(node, request)
            if score > best_score or (score == best_score and name < best):
                best, best_score = name, score
        if best:
            return best, ""
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        return "", f"0/{len(self._nodes)} nodes are available: {listed or 'no nodes'}."


def _refuse(node: _Node, spec: Mapping[str, Any], request: Amounts) -> list[str]:
    if node.unschedulable:
        return ["node(s) were unschedulable"]
    for taint in node.taints:
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _is_tolerated(taint, spec.get("tolerations")):
            return [f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"]
    selector = spec.get("nodeSelector")
    if (selector and any(node.labels.get(k) != v for k, v in selector.items())) or not _matches_affinity(node, spec):
        return ["node(s) didn't match Pod's node affinity/selector"]
    refusals = [
        f"Insufficient {key}"
        for key, amount in request.items()
        if amount and node.used.get(key, 0) + amount > node.allocatable.get(key, 0)
    ]
    if node.pods + 1 > node.allocatable.get("pods", 110):
        refusals.append("Too many pods")
    return refusals


def _is_tolerated(taint: Mapping[str, Any], tolerations: Any) -> bool:
    for toleration in tolerations or ():
        if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
            continue
        key = toleration.get("key", "")
        exists = toleration.get("operator") == "Exists"
        if not key and exists:
            return True
        if key == taint.get("key") and (exists or toleration.get("value", "") == taint.get("value", "")):
            return True
    return False


def _matches_affinity(node: _Node, spec: Mapping[str, Any]) -> bool:
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not required:
        return True
    terms = required.get("nodeSelectorTerms") or ()
    return any(all(_matches(node.labels, e) for e in term.get("matchExpressions", ())) for term in terms)


def _matches(labels: Mapping[str, str], expression: Mapping[str, Any]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression.get("values", ())
        case "NotIn":
            return value not in expression.get("values", ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(expression["values"][0])
        case "Lt":
            return value is not None and int(value) < int(expression["values"][0])
    return False


def _free_share(node: _Node, request: Amounts) -> float:
    shares = []
    for key in ("cpu", "memory"):
        capacity = node.allocatable.get(key, 0)
        if capacity:
            shares.append((capacity - node.used.get(key, 0) - request.get(key, 0)) / capacity)
    pods = node.allocatable.get("pods", 110)
    shares.append((pods - node.pods) / pods if pods else 0.0)
    return sum(shares) / len(shares)
