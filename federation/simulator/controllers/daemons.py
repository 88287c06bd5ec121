"""The decisions of the simulated DaemonSet controller: on which nodes to create and delete pods, and the status. Pure.

The rules are those of Kubernetes: a node that matches selector, affinity and taints has one pod; a rolling update
replaces old pods while at most `maxUnavailable` nodes are without an available pod, or, with `maxSurge`, adds the new
pod first and deletes the old one when the new one is available.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api.selectors import compile_cluster_terms, tolerates
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.revisions import REVISION_LABEL
from federation.simulator.controllers.rollout import resolve_percentage

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Taints that every daemon pod tolerates: it belongs to its node, whatever state that is in."""
_NETWORK_UNAVAILABLE = ("node.kubernetes.io/network-unavailable", "NoSchedule")

Node = Mapping[str, Any]
Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DaemonPlan:
    """Nodes that need a pod, and the names of pods to delete."""

    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()


def to_daemon_spec(template_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod spec with the tolerations of every daemon pod."""
    wanted = [*_TOLERATED, *((_NETWORK_UNAVAILABLE,) if template_spec.get("hostNetwork") else ())]
    own = list(template_spec.get("tolerations") or ())
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    return {**template_spec, "tolerations": [*own, *(each for each in added if each not in own)]}


def to_node_affinity(affinity: Mapping[str, Any] | None, node: str) -> dict[str, Any]:
    """Return the affinity that binds a pod to the node; other parts of it stay."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    rest = dict(affinity or {})
    own = dict(rest.get("nodeAffinity") or {})
    own["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    return {**rest, "nodeAffinity": own}


def target_node(pod: Pod) -> str:
    """Return the node of a pod, or the one that its affinity names while it has none."""
    if name := pod["spec"].get("nodeName"):
        return str(name)
    required = ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return str(field["values"][0])
    return ""


class Placement:
    """Where the pods of one template should run and may stay."""

    def __init__(self, template_spec: Mapping[str, Any]) -> None:
        spec = to_daemon_spec(template_spec)
        self._node_name = spec.get("nodeName") or ""
        self._selector = spec.get("nodeSelector") or {}
        required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
            "requiredDuringSchedulingIgnoredDuringExecution"
        )
        self._terms = compile_cluster_terms(required.get("nodeSelectorTerms")) if required else None
        self._tolerations = spec["tolerations"]

    def should_run(self, node: Node) -> bool:
        """Return True if the node should have a pod."""
        return self._fits(node) and not self._has_taint(node, ("NoSchedule", "NoExecute"))

    def may_stay(self, node: Node) -> bool:
        """Return True if a pod that runs on the node stays there."""
        return self._fits(node) and not self._has_taint(node, ("NoExecute",))

    def _fits(self, node: Node) -> bool:
        name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
        return (
            self._node_name in ("", name)
            and all(labels.get(key) == value for key, value in self._selector.items())
            and (self._terms is None or self._terms.matches(name, labels))
        )

    def _has_taint(self, node: Node, effects: Sequence[str]) -> bool:
        return any(
            taint.get("effect") in effects and not any(tolerates(each, taint) for each in self._tolerations)
            for taint in (node.get("spec") or {}).get("taints") or ()
        )


def group_by_node(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Return the pods by node, assigned ones first, then older ones; terminating pods that have ended are left out."""
    groups: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if not (podsof.is_finished(pod) and podsof.is_terminating(pod)):
            groups[target_node(pod)].append(pod)
    for group in groups.values():
        group.sort(key=lambda pod: (not pod["spec"].get("nodeName"), *_age(pod)))
    return groups


def _age(pod: Pod) -> tuple[str, str]:
    return pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]


def is_updated(pod: Pod, revision_hash: str) -> bool:
    """Return True if the pod was made from the newest template."""
    return (pod["metadata"].get("labels") or {}).get(REVISION_LABEL) == revision_hash


def plan_nodes(
    nodes: Sequence[Node], by_node: Mapping[str, Sequence[Pod]], placement: Placement, *, allows_surge: bool
) -> DaemonPlan:
    """Return the pods that nodes miss, and those that have ended or are on nodes where they must not be."""
    create, delete = [], []
    for node in nodes:
        name = node["metadata"]["name"]
        pods = by_node.get(name, ())
        if not pods:
            if placement.should_run(node):
                create.append(name)
        elif placement.may_stay(node):
            staying = [pod for pod in pods if not podsof.is_terminating(pod)]
            delete += [pod for pod in staying if podsof.is_finished(pod)]
            running = [pod for pod in staying if not podsof.is_finished(pod)]
            if not allows_surge:
                delete += running[1:]
            elif not running and placement.should_run(node):
                create.append(name)
        else:
            delete += [pod for pod in pods if not podsof.is_terminating(pod)]
    known = {node["metadata"]["name"] for node in nodes}
    delete += [
        pod
        for name, pods in by_node.items()
        if name not in known
        for pod in pods
        if not pod["spec"].get("nodeName") and not podsof.is_terminating(pod)
    ]
    return DaemonPlan(tuple(create), tuple(pod["metadata"]["name"] for pod in delete))


@dataclass(frozen=True, slots=True)
class UpdateLimits:
    """How many nodes a rolling update may leave without an available pod, or give a second pod."""

    surge: int
    unavailable: int

    @classmethod
    def of(cls, daemon_set: Mapping[str, Any], desired: int) -> "UpdateLimits":
        """Return the limits for this number of nodes; one node may be unavailable when neither is set."""
        strategy = daemon_set["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return cls(0, 0)
        rolling = strategy.get("rollingUpdate") or {}
        surge = resolve_percentage(rolling.get("maxSurge", 0), desired, round_up=True)
        unavailable = resolve_percentage(rolling.get("maxUnavailable", 1), desired, round_up=True)
        return cls(surge, unavailable if surge or unavailable else 1)


def plan_update(
    nodes: Sequence[Node],
    by_node: Mapping[str, Sequence[Pod]],
    placement: Placement,
    limits: UpdateLimits,
    revision_hash: str,
    min_ready_s: int,
    now: datetime,
) -> DaemonPlan:
    """Return the next step of a rolling update."""
    pairs = []
    for node in nodes:
        if not placement.should_run(node):
            continue
        staying = [p for p in by_node.get(node["metadata"]["name"], ()) if not podsof.is_terminating(p)]
        new = next((pod for pod in staying if is_updated(pod, revision_hash)), None)
        old = next((pod for pod in staying if not is_updated(pod, revision_hash)), None)
        pairs.append((node["metadata"]["name"], new, old))

    def available(pod: Pod | None) -> bool:
        return pod is not None and podsof.is_available(pod, min_ready_s, now)

    if limits.surge == 0:
        unavailable = sum(not available(new or old) for _, new, old in pairs)
        broken = [old["metadata"]["name"] for _, new, old in pairs if old and not new and not available(old)]
        sound = [old["metadata"]["name"] for _, new, old in pairs if old and not new and available(old)]
        return DaemonPlan(delete=(*broken, *sound[: max(0, limits.unavailable - unavailable)]))
    surging = sum(1 for _, new, old in pairs if new and old and not available(new))
    broken = [name for name, new, old in pairs if old and not new and not available(old)]
    sound = [name for name, new, old in pairs if old and not new and available(old)]
    replaced = [
        old["metadata"]["name"] for _, new, old in pairs if old and new and (available(new) or not available(old))
    ]
    return DaemonPlan((*broken, *sound[: max(0, limits.surge - surging)]), tuple(replaced))


def compute_status(
    daemon_set: Mapping[str, Any],
    nodes: Sequence[Node],
    by_node: Mapping[str, Sequence[Pod]],
    placement: Placement,
    revision_hash: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the status; per node its first pod counts."""
    min_ready_s = int(daemon_set["spec"].get("minReadySeconds", 0))
    desired = [node["metadata"]["name"] for node in nodes if placement.should_run(node)]
    firsts = [by_node[name][0] for name in desired if by_node.get(name)]
    scheduled_on = sum(1 for node in nodes if by_node.get(node["metadata"]["name"]))
    available = sum(podsof.is_available(pod, min_ready_s, now) for pod in firsts)
    optional = {
        "updatedNumberScheduled": sum(is_updated(pod, revision_hash) for pod in firsts),
        "numberAvailable": available,
        "numberUnavailable": len(desired) - available,
    }
    return {
        "currentNumberScheduled": len(firsts),
        "numberMisscheduled": scheduled_on - len(firsts),
        "desiredNumberScheduled": len(desired),
        "numberReady": sum(map(podsof.is_ready, firsts)),
        "observedGeneration": daemon_set["metadata"].get("generation", 1),
        **{key: count for key, count in optional.items() if count},
    }
