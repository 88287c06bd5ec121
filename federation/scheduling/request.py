"""What one replica of an object requests, and of which nodes, read from its manifest (spec §5.4).

A pod's request is the sum over its containers, at least the largest init container, plus overhead; a limit stands in
for a missing request. Kinds without a pod have none. Amounts are integers as in `framework/types.py`.
"""

from collections.abc import Mapping
from typing import Any

from federation.api.selectors import compile_cluster_terms
from federation.scheduling.framework.types import ANY_NODE, NodeNeeds
from federation.scheduling.policy import to_tolerations
from federation.scheduling.snapshot import to_resources

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_POD_TEMPLATE = ("spec", "template", "spec")
_POD_SPEC_OF: Mapping[str, tuple[str, ...]] = {
    "Deployment": _POD_TEMPLATE,
    "StatefulSet": _POD_TEMPLATE,
    "DaemonSet": _POD_TEMPLATE,
    "ReplicaSet": _POD_TEMPLATE,
    "Job": _POD_TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "Pod": ("spec",),
}


def request_of(template: Mapping[str, Any]) -> dict[str, int]:
    """Return the request of one pod of the object, {} when it has no pods or its pods request nothing."""
    pod = _pod_spec_of(template)
    return {} if pod is None else _pod_request(pod)


def node_needs_of(template: Mapping[str, Any]) -> NodeNeeds:
    """Return which nodes the object's pods can go to; a member's admission may add more, which cannot be known here."""
    pod = _pod_spec_of(template) or {}
    selector, tolerations = pod.get("nodeSelector"), pod.get("tolerations")
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if not (selector or tolerations or affinity):
        return ANY_NODE
    return NodeNeeds(
        tuple(sorted(selector.items())) if selector else (),
        compile_cluster_terms(affinity.get("nodeSelectorTerms")) if affinity else None,
        to_tolerations(tolerations or ()),
    )


def _pod_spec_of(template: Mapping[str, Any]) -> Mapping[str, Any] | None:
    path = _POD_SPEC_OF.get(str(template.get("kind")))
    if path is None:
        return None
    pod: Any = template
    for key in path:
        pod = pod.get(key) if isinstance(pod, Mapping) else None
    return pod if isinstance(pod, Mapping) else None


def _pod_request(pod: Mapping[str, Any]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in pod.get("containers") or ():
        for name, amount in _container_request(container).items():
            total[name] = total.get(name, 0) + amount
    for container in pod.get("initContainers") or ():
        for name, amount in _container_request(container).items():
            total[name] = max(total.get(name, 0), amount)
    for name, amount in to_resources(pod.get("overhead")).items():
        total[name] = total.get(name, 0) + amount
    return {name: amount for name, amount in total.items() if amount}


def _container_request(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources")
    if not resources:
        return {}
    limits, requests = resources.get("limits"), resources.get("requests")
    return to_resources({**limits, **(requests or {})} if limits else requests)
