"""What one replica of an object requests from a cluster, read from its manifest (spec §5.4).

A pod's request is the sum over its containers, at least the largest init container, plus overhead; a limit stands in
for a missing request. Kinds without a pod have none. Amounts are integers as in `framework/types.py`.
"""

from collections.abc import Mapping
from typing import Any

from federation.scheduling.snapshot import to_resources

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
    path = _POD_SPEC_OF.get(str(template.get("kind")))
    if path is None:
        return {}
    pod: Any = template
    for key in path:
        pod = pod.get(key) if isinstance(pod, Mapping) else None
    return _pod_request(pod) if isinstance(pod, Mapping) else {}


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
