"""The resource request and node needs of one replica, from its manifest (docs/reference/scheduling.md).

`clusterresources.py` sums the requests of its pod. Kinds without a pod request nothing. Amounts are integers as
in `framework/types.py`.
"""

from collections.abc import Mapping
from typing import Any

from federation.api.selectors import compile_cluster_terms
from federation.apimachinery import dotpaths
from federation.apimachinery.quantity import to_int64
from federation.planning.clusters.clusterresources import spec_requests
from federation.planning.clusters.nodeclasses import ceil_amounts
from federation.scheduling.framework.types import ANY_NODE, NodeNeeds, PodShape, pod_shape
from federation.scheduling.policyspec import to_tolerations

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_POD_TEMPLATE = ("spec", "template", "spec")
_POD_SPEC_OF: Mapping[str, tuple[str, ...]] = {
    "CloneSet": _POD_TEMPLATE,
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
    pod = pod_spec_of(template)
    return {} if pod is None else _pod_request(pod)


def node_needs_of(template: Mapping[str, Any]) -> NodeNeeds:
    """Return the node needs of the object's pods, without those that a member's admission may add."""
    return _node_needs(pod_spec_of(template) or {})


def shape_of(template: Mapping[str, Any]) -> PodShape | None:
    """Return the shape of the object's pods; None when it has no pods."""
    pod = pod_spec_of(template)
    return None if pod is None else pod_shape(tuple(sorted(_pod_request(pod).items())), _node_needs(pod))


def _node_needs(pod: Mapping[str, Any]) -> NodeNeeds:
    selector, tolerations = pod.get("nodeSelector"), pod.get("tolerations")
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    if not (selector or tolerations or affinity):
        return ANY_NODE
    return NodeNeeds(
        tuple(sorted(selector.items())) if selector else (),
        compile_cluster_terms(affinity.get("nodeSelectorTerms")) if affinity else None,
        # Without the seconds, pods that differ only in these share one shape and its cached capacities.
        tuple(toleration._replace(seconds=None) for toleration in to_tolerations(tolerations or ())),
    )


def pod_spec_of(template: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the spec of the object's pods; None when it has no pods."""
    path = _POD_SPEC_OF.get(str(template.get("kind")))
    if path is None:
        return None
    pod = dotpaths.get(template, path)
    return pod if isinstance(pod, Mapping) else None


def _pod_request(pod: Mapping[str, Any]) -> dict[str, int]:
    return {name: to_int64(amount) for name, amount in ceil_amounts(spec_requests(pod).items()).items() if amount}
