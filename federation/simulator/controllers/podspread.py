"""Topology spread and pod anti-affinity in the simulated kube-scheduler, over the labels of assigned pods. Pure.

`blocked_nodes` gives the nodes that hard constraints exclude, `soft_counts` the pods that soft constraints count in a
node's domains. Only required pod anti-affinity of the new pod itself is considered, with label selectors in its own
namespace, and no `minDomains`. A domain counts nodes that match the pod's node affinity and carry the keys of all
constraints, whether or not they are schedulable: Kubernetes' defaults of the node inclusion policies.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.selectors import Selector, compile_label_selector

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_APART = "node(s) didn't satisfy anti-affinity rules"
NodeLabels = Mapping[str, Mapping[str, str]]
"""Labels by node name."""


@dataclass(frozen=True, slots=True)
class _Constraint:
    key: str
    max_skew: int
    is_hard: bool
    selector: Selector


class AssignedPods:
    """Namespace and labels of the assigned pods by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, tuple[str, Mapping[str, str]]]] = {}

    def add(self, uid: str, node: str, metadata: Mapping[str, Any]) -> None:
        """Record a pod on a node."""
        self._by_node.setdefault(node, {})[uid] = (metadata.get("namespace", ""), metadata.get("labels") or {})

    def remove(self, uid: str, node: str) -> None:
        """Remove a pod."""
        self._by_node.get(node, {}).pop(uid, None)

    def count(self, node: str, namespace: str, selector: Selector) -> int:
        """Return the number of matching pods on the node."""
        pods = self._by_node.get(node, {}).values()
        return sum(own == namespace and selector.matches(labels) for own, labels in pods)


def has_rules(spec: Mapping[str, Any]) -> bool:
    """Return whether a pod has topology spread constraints or required anti-affinity."""
    return bool(spec.get("topologySpreadConstraints") or _anti_affinity(spec))


def blocked_nodes(spec: Mapping[str, Any], namespace: str, nodes: NodeLabels, pods: AssignedPods) -> dict[str, str]:
    """Return the reason by node that cannot run the pod; `nodes` match its node affinity."""
    blocked: dict[str, str] = {}
    hard = [constraint for constraint in _constraints(spec) if constraint.is_hard]
    eligible = [name for name, labels in nodes.items() if all(constraint.key in labels for constraint in hard)]
    for constraint in hard:
        counts = _domain_counts(constraint, namespace, eligible, nodes, pods)
        floor = min(counts.values(), default=0)
        for name, labels in nodes.items():
            value = labels.get(constraint.key)
            if value not in counts or counts[value] + 1 - floor > constraint.max_skew:
                blocked[name] = _SPREAD
    for term in _anti_affinity(spec):
        selector, key = compile_label_selector(term.get("labelSelector")), str(term.get("topologyKey"))
        used = {labels.get(key) for name, labels in nodes.items() if pods.count(name, namespace, selector)}
        blocked |= {name: _APART for name, labels in nodes.items() if key in labels and labels[key] in used}
    return blocked


def soft_counts(spec: Mapping[str, Any], namespace: str, nodes: NodeLabels, pods: AssignedPods) -> Counter[str]:
    """Return by node the sum of the pods in its domains, over the soft constraints; fewer are better."""
    found: Counter[str] = Counter()
    for constraint in _constraints(spec):
        if constraint.is_hard:
            continue
        counts = _domain_counts(constraint, namespace, list(nodes), nodes, pods)
        for name, labels in nodes.items():
            found[name] += counts.get(labels.get(constraint.key, ""), 0)
    return found


def _constraints(spec: Mapping[str, Any]) -> list[_Constraint]:
    return [
        _Constraint(
            str(each.get("topologyKey")),
            int(each.get("maxSkew") or 1),
            each.get("whenUnsatisfiable") != "ScheduleAnyway",
            compile_label_selector(each.get("labelSelector")),
        )
        for each in spec.get("topologySpreadConstraints") or ()
    ]


def _anti_affinity(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rules = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    return list(rules.get(_REQUIRED) or ())


def _domain_counts(
    constraint: _Constraint, namespace: str, names: list[str], nodes: NodeLabels, pods: AssignedPods
) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        if (value := nodes[name].get(constraint.key)) is not None:
            counts[value] = counts.get(value, 0) + pods.count(name, namespace, constraint.selector)
    return counts
