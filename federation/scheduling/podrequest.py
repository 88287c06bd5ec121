"""The resource request and node needs of one replica, from its manifest (docs/reference/scheduling.md).

`clusterresources.py` sums the requests of its pod. Kinds without a pod request nothing, unless their type says which
components they have: then the object as a whole is one replica (`demand_of`). Amounts are integers as in
`framework/types.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.api.selectors import compile_cluster_terms
from federation.apimachinery import dotpaths
from federation.apimachinery.quantity import to_int64
from federation.apimachinery.selectors import SelectorError
from federation.planning.clusters.clusterresources import spec_requests
from federation.planning.clusters.nodeclasses import ceil_amounts
from federation.planning.components import ComponentError, ComponentPods, pods_of
from federation.scheduling.framework.types import (
    ANY_NODE,
    CPU,
    MEMORY,
    PODS,
    NodeNeeds,
    PodSet,
    PodShape,
    pod_shape,
)
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


def request_of(template: Mapping[str, Any], type_: FederatedType | None = None) -> dict[str, int]:
    """Return the request of one replica: of one pod, or of what an object with components has for each of its replicas.

    An object without a number of replicas is one replica. The request is {} without pods, or when they request nothing.
    """
    pod = pod_spec_of(template)
    if pod is not None:
        return _pod_request(pod)
    return {} if type_ is None else _per_replica(total_request(demand_of(template, type_)), template, type_)


def pods_per_replica(template: Mapping[str, Any], type_: FederatedType) -> int:
    """Return how many pods run at the same time for each replica."""
    if pod_spec_of(template) is not None or not type_.components.rules:
        return 1
    return _per_replica({PODS: pod_count(demand_of(template, type_))}, template, type_)[PODS]


def _per_replica(total: Mapping[str, int], template: Mapping[str, Any], type_: FederatedType) -> dict[str, int]:
    replicas = type_.replicas(template) or 1
    return {name: -(-amount // replicas) for name, amount in total.items()}


def has_pods(template: Mapping[str, Any], type_: FederatedType) -> bool:
    """Return whether the object is known to start pods."""
    return bool(type_.components.rules) or pod_spec_of(template) is not None


def demand_of(template: Mapping[str, Any], type_: FederatedType) -> tuple[PodSet, ...]:
    """Return the pods of an object by component; () for a kind without components, or if they cannot be counted."""
    try:
        return counted_demand_of(template, type_)
    except ComponentError:
        return ()


def counted_demand_of(template: Mapping[str, Any], type_: FederatedType) -> tuple[PodSet, ...]:
    """Return the pods of an object by component; ComponentError if they cannot be counted."""
    pods = tuple(map(_pod_set, pods_of(template, type_.components)))
    # Steps run one after the other: the largest counts for all of them.
    return (max(pods, key=_largest),) if type_.components.is_sequence and pods else pods


def total_request(pods: Iterable[PodSet]) -> dict[str, int]:
    """Return what all the pods request together."""
    total: dict[str, int] = {}
    for component in pods:
        for name, amount in component.shape.request:
            total[name] = to_int64(total.get(name, 0) + amount * component.count)
    return total


def pod_count(pods: Iterable[PodSet]) -> int:
    """Return how many pods there are."""
    return sum(component.count for component in pods)


def _largest(pods: PodSet) -> tuple[int, int]:
    amounts = total_request((pods,))
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)


def _pod_set(component: ComponentPods) -> PodSet:
    try:
        needs = _node_needs(component.pod)
    except (SelectorError, AttributeError, TypeError, KeyError) as error:
        raise ComponentError(f"{component.name}: the affinity or tolerations of its pods are malformed") from error
    shape = pod_shape(tuple(sorted(_pod_request(component.pod).items())), needs)
    return PodSet(component.name, component.count, component.least, shape)


def node_needs_of(template: Mapping[str, Any]) -> NodeNeeds:
    """Return the node needs of the object's pods, without needs that a member's admission may add."""
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
