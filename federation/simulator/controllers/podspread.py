"""Topology spread and pod (anti-)affinity in the simulated kube-scheduler, over the labels of assigned pods. Pure.

`blocked_nodes` gives the nodes that hard constraints exclude, `soft_spreads` the pods that soft constraints count in
the domains of nodes, `default_spreads` the same for pods of a ReplicaSet or StatefulSet that have none. Only
required affinity and anti-affinity are considered, those of pods that run too. A domain counts nodes that carry the
keys of all hard constraints and that the node inclusion policies include. The API server has merged `matchLabelKeys`
and `mismatchLabelKeys` into the selectors.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.selectors import Selector, compile_label_selector
from federation.simulator.controllers.podscores import Spread

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_SPREAD = "node(s) didn't match pod topology spread constraints"
_APART = "node(s) didn't satisfy anti-affinity rules"
_APART_FROM_OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules"
_NOT_TOGETHER = "node(s) didn't match pod affinity rules"
_AFFINITY, _ANTI_AFFINITY = "podAffinity", "podAntiAffinity"
_NAMESPACE_LABEL = "kubernetes.io/metadata.name"
_DEFAULT_CONSTRAINTS = (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
"""Key and skew that is tolerated."""
_SPREAD_OWNERS = ("ReplicaSet", "StatefulSet", "ReplicationController")
_NONE_OWNED: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class SpreadNode:
    """The fields of a node that spread constraints read."""

    labels: Mapping[str, str]
    is_selected: bool = True
    """Whether it matches the pod's node selector and required node affinity."""
    is_tolerated: bool = True
    """Whether the pod tolerates its taints."""


@dataclass(frozen=True, slots=True)
class NewPod:
    """The pod to place."""

    spec: Mapping[str, Any]
    namespace: str = ""
    labels: Mapping[str, str] | None = None
    """None for a pod that its own constraints count."""

    def matches(self, selector: Selector) -> bool:
        """Return whether a constraint of the pod counts the pod itself."""
        return self.labels is None or selector.matches(self.labels)


@dataclass(frozen=True, slots=True)
class Term:
    """A required term of pod (anti-)affinity. Of namespaces it reads the label with their name only."""

    key: str
    selector: Selector
    names: frozenset[str]
    namespaces: Selector | None

    def accepts(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether the term is about a pod."""
        is_near = namespace in self.names or (
            self.namespaces is not None and self.namespaces.matches({_NAMESPACE_LABEL: namespace})
        )
        return is_near and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class _Constraint:
    key: str
    max_skew: int
    is_hard: bool
    selector: Selector
    min_domains: int
    heeds_affinity: bool
    heeds_taints: bool

    def includes(self, node: SpreadNode) -> bool:
        """Return whether the node inclusion policies count the node."""
        return (node.is_selected or not self.heeds_affinity) and (node.is_tolerated or not self.heeds_taints)


class AssignedPods:
    """Namespace, labels and required anti-affinity of the assigned pods by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, tuple[str, Mapping[str, str]]]] = {}
        self.apart: dict[tuple[str, int], tuple[str, str, Term]] = {}
        """uid, node and term of pods with required anti-affinity."""
        self._owners: dict[str, str] = {}
        """By pod."""
        self._owned: dict[str, Counter[str]] = {}
        """By owner: its pods on each node."""

    def add(self, uid: str, node: str, metadata: Mapping[str, Any], spec: Mapping[str, Any] | None = None) -> None:
        """Record a pod on a node."""
        namespace = metadata.get("namespace", "")
        self._by_node.setdefault(node, {})[uid] = (namespace, metadata.get("labels") or {})
        if owner := spreading_owner(metadata):
            self._owners[uid] = owner
            self._owned.setdefault(owner, Counter())[node] += 1
        for index, term in enumerate(_terms(spec or {}, _ANTI_AFFINITY)):
            self.apart[uid, index] = (uid, node, to_term(term, namespace))

    def remove(self, uid: str, node: str) -> None:
        """Remove a pod."""
        self._by_node.get(node, {}).pop(uid, None)
        if owner := self._owners.pop(uid, ""):
            self._owned[owner][node] -= 1
            if not self._owned[owner].total():
                del self._owned[owner]
        index = 0
        while self.apart.pop((uid, index), None) is not None:
            index += 1

    def owned(self, owner: str) -> Mapping[str, int]:
        """Return the number of pods of an owner on each node."""
        return self._owned.get(owner, _NONE_OWNED)

    def count(self, node: str, namespace: str, selector: Selector) -> int:
        """Return the number of matching pods of a namespace on the node."""
        pods = self._by_node.get(node, {}).values()
        return sum(own == namespace and selector.matches(labels) for own, labels in pods)

    def count_of(self, node: str, term: Term) -> int:
        """Return the number of pods on the node that a term is about."""
        return sum(term.accepts(namespace, labels) for namespace, labels in self._by_node.get(node, {}).values())


def spreading_owner(metadata: Mapping[str, Any]) -> str:
    """Return the uid of the controller whose pods are spread without constraints of their own, "" if there is none."""
    for each in metadata.get("ownerReferences") or ():
        if each.get("controller") and each.get("kind") in _SPREAD_OWNERS:
            return str(each["uid"])
    return ""


def has_rules(spec: Mapping[str, Any], pods: AssignedPods) -> bool:
    """Return whether topology spread or required pod (anti-)affinity, also of pods that run, concern a pod."""
    rules = spec.get("topologySpreadConstraints") or _terms(spec, _AFFINITY) or _terms(spec, _ANTI_AFFINITY)
    return bool(rules or pods.apart)


def blocked_nodes(pod: NewPod, nodes: Mapping[str, SpreadNode], pods: AssignedPods) -> dict[str, str]:
    """Return the reason by node that cannot run the pod."""
    blocked: dict[str, str] = {}
    hard = [constraint for constraint in _constraints(pod.spec) if constraint.is_hard]
    keys = [constraint.key for constraint in hard]
    for constraint in hard:
        counts = _domain_counts(constraint, keys, pod.namespace, nodes, pods)
        floor = min(counts.values(), default=0) if len(counts) >= constraint.min_domains else 0
        more = pod.matches(constraint.selector)
        for name, node in nodes.items():
            value = node.labels.get(constraint.key)
            if value not in counts or counts[value] + more - floor > constraint.max_skew:
                blocked[name] = _SPREAD
    return blocked | _unfriendly_nodes(pod, nodes, pods)


def _unfriendly_nodes(pod: NewPod, nodes: Mapping[str, SpreadNode], pods: AssignedPods) -> dict[str, str]:
    """Return the reason by node that required affinity and anti-affinity between pods exclude, in their order."""
    blocked: dict[str, str] = {}
    for _, place, apart in pods.apart.values():
        if apart.accepts(pod.namespace, pod.labels or {}) and place in nodes:
            value = nodes[place].labels.get(apart.key)
            same = {name for name, node in nodes.items() if value is not None and node.labels.get(apart.key) == value}
            blocked |= dict.fromkeys(same, _APART_FROM_OTHERS)
    for term in _terms(pod.spec, _ANTI_AFFINITY):
        found = to_term(term, pod.namespace)
        used = {nodes[name].labels.get(found.key) for name in nodes if pods.count_of(name, found)}
        near = {name for name, node in nodes.items() if found.key in node.labels and node.labels[found.key] in used}
        blocked |= dict.fromkeys(near, _APART)
    together = [to_term(term, pod.namespace) for term in _terms(pod.spec, _AFFINITY)]
    # The first pod of a group finds no other and may run anywhere.
    is_first = not any(pods.count_of(name, term) for term in together for name in nodes) and all(
        term.accepts(pod.namespace, pod.labels or {}) for term in together
    )
    for group in together:
        used = {nodes[name].labels.get(group.key) for name in nodes if pods.count_of(name, group)}
        for name, node in nodes.items():
            if group.key not in node.labels or not (is_first or node.labels[group.key] in used):
                blocked[name] = _NOT_TOGETHER
    return blocked


def soft_spreads(
    pod: NewPod, feasible: Sequence[str], nodes: Mapping[str, SpreadNode], pods: AssignedPods
) -> list[Spread]:
    """Return the soft constraints of a pod over its feasible nodes."""
    soft = [constraint for constraint in _constraints(pod.spec) if not constraint.is_hard]
    keys = [constraint.key for constraint in soft]
    is_ignored = [not all(key in nodes[name].labels for key in keys) for name in feasible]
    found = []
    for constraint in soft:
        counts = _domain_counts(constraint, keys, pod.namespace, nodes, pods)
        values = [
            None if ignored else nodes[name].labels[constraint.key]
            for name, ignored in zip(feasible, is_ignored, strict=True)
        ]
        found.append(_spread(constraint.max_skew, values, counts))
    return found


def default_spreads(
    owner: str, feasible: Sequence[str], labels: Mapping[str, Mapping[str, str]], pods: AssignedPods
) -> list[Spread]:
    """Return kube-scheduler's own constraints for a pod of the owner with this uid; `labels` are those of all nodes."""
    owned = pods.owned(owner)
    found = []
    for key, max_skew in _DEFAULT_CONSTRAINTS:
        counts: Counter[str | None] = Counter()
        for name, count in owned.items():
            counts[labels.get(name, {}).get(key)] += count
        found.append(_spread(max_skew, [labels[name].get(key) for name in feasible], counts))
    return found


def _spread(max_skew: int, values: Sequence[str | None], counts: Mapping[Any, int]) -> Spread:
    """Return a constraint over nodes with these values of its key."""
    numbers = [None if value is None else counts.get(value, 0) for value in values]
    return Spread(max_skew, numbers, len(set(values)))


def _constraints(spec: Mapping[str, Any]) -> list[_Constraint]:
    return [
        _Constraint(
            str(each.get("topologyKey")),
            int(each.get("maxSkew") or 1),
            each.get("whenUnsatisfiable") != "ScheduleAnyway",
            compile_label_selector(each.get("labelSelector")),
            int(each.get("minDomains") or 1),
            heeds_affinity=each.get("nodeAffinityPolicy") != "Ignore",
            heeds_taints=each.get("nodeTaintsPolicy") == "Honor",
        )
        for each in spec.get("topologySpreadConstraints") or ()
    ]


def _terms(spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    rules = (spec.get("affinity") or {}).get(kind) or {}
    return list(rules.get(_REQUIRED) or ())


def to_term(term: Mapping[str, Any], namespace: str) -> Term:
    """Return a term of a pod in this namespace."""
    given, names = term.get("namespaceSelector"), term.get("namespaces") or ()
    namespaces = compile_label_selector(given) if given is not None else None
    only = frozenset(names) if names or given is not None else frozenset({namespace})
    return Term(str(term.get("topologyKey")), compile_label_selector(term.get("labelSelector")), only, namespaces)


def _domain_counts(
    constraint: _Constraint,
    keys: Sequence[str],
    namespace: str,
    nodes: Mapping[str, SpreadNode],
    pods: AssignedPods,
) -> dict[str, int]:
    """Return the matching pods by domain, over the nodes that have all `keys` and that the policies include."""
    counts: dict[str, int] = {}
    for name, node in nodes.items():
        value = node.labels.get(constraint.key)
        if value is None or not all(key in node.labels for key in keys) or not constraint.includes(node):
            continue
        counts[value] = counts.get(value, 0) + pods.count(name, namespace, constraint.selector)
    return counts
