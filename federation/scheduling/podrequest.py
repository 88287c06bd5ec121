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
from federation.planning.clusters.deviceclaims import CLAIMS, NO_CLAIMS, Claims, charged, claim_refs, needs_of
from federation.planning.clusters.nodeclasses import ceil_amounts
from federation.planning.components import ComponentError, ComponentPods, pod_specs_of, pods_of
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
    "ReplicationController": _POD_TEMPLATE,
    "Job": _POD_TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "Pod": ("spec",),
}


def request_of(
    template: Mapping[str, Any], type_: FederatedType | None = None, claims: Claims = NO_CLAIMS
) -> dict[str, int]:
    """Return the request of one replica: of one pod, or of what an object with components has for each of its replicas.

    An object without a number of replicas is one replica. The request is {} without pods, or when they request nothing.
    `claims` are those of its pods for devices.
    """
    pod = pod_spec_of(template)
    if pod is not None:
        return _pod_request(pod, claims)
    if type_ is None:
        return {}
    return _per_replica(total_request(demand_of(template, type_, claims)), template, type_)


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


def demand_of(template: Mapping[str, Any], type_: FederatedType, claims: Claims = NO_CLAIMS) -> tuple[PodSet, ...]:
    """Return the pods of an object by component; () for a kind without components, or if they cannot be counted."""
    try:
        return counted_demand_of(template, type_, claims)
    except ComponentError:
        return ()


def counted_demand_of(
    template: Mapping[str, Any], type_: FederatedType, claims: Claims = NO_CLAIMS
) -> tuple[PodSet, ...]:
    """Return the pods of an object by component; ComponentError if they cannot be counted."""
    pods = tuple(to_pod_set(each, claims) for each in pods_of(template, type_.components))
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


def to_pod_set(component: ComponentPods, claims: Claims) -> PodSet:
    """Return the pods of a component in the form of decisions; ComponentError."""
    try:
        needs = _node_needs(component.pod, claims)
    except (SelectorError, AttributeError, TypeError, KeyError) as error:
        raise ComponentError(f"{component.name}: the affinity or tolerations of its pods are malformed") from error
    shape = pod_shape(tuple(sorted(_pod_request(component.pod, claims).items())), needs)
    return PodSet(component.name, component.count, component.least, shape)


def node_needs_of(template: Mapping[str, Any], claims: Claims = NO_CLAIMS) -> NodeNeeds:
    """Return the node needs of the object's pods, without needs that a member's admission may add."""
    return _node_needs(pod_spec_of(template) or {}, claims)


def shape_of(template: Mapping[str, Any], claims: Claims = NO_CLAIMS) -> PodShape | None:
    """Return the shape of the object's pods; None when it has no pods."""
    pod = pod_spec_of(template)
    if pod is None:
        return None
    return pod_shape(tuple(sorted(_pod_request(pod, claims).items())), _node_needs(pod, claims))


def _node_needs(pod: Mapping[str, Any], claims: Claims) -> NodeNeeds:
    selector, tolerations = pod.get("nodeSelector"), pod.get("tolerations")
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    devices = needs_of(claims.of(pod)) if pod.get("resourceClaims") else ()
    if not (selector or tolerations or affinity or devices):
        return ANY_NODE
    return NodeNeeds(
        tuple(sorted(selector.items())) if selector else (),
        compile_cluster_terms(affinity.get("nodeSelectorTerms")) if affinity else None,
        # Without the seconds, pods that differ only in these share one shape and its cached capacities.
        tuple(toleration._replace(seconds=None) for toleration in to_tolerations(tolerations or ())),
        devices,
    )


def pod_spec_of(template: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the spec of the object's pods; None when it has no pods."""
    path = _POD_SPEC_OF.get(str(template.get("kind")))
    if path is None:
        return None
    pod = dotpaths.get(template, path)
    return pod if isinstance(pod, Mapping) else None


def _pod_request(pod: Mapping[str, Any], claims: Claims) -> dict[str, int]:
    amounts = ceil_amounts(spec_requests(pod).items())
    for request in claims.of(pod) if pod.get("resourceClaims") else ():
        for name, count in charged(request).items():
            amounts[name] = amounts.get(name, 0) + count
    return {name: to_int64(amount) for name, amount in amounts.items() if amount}


def claims_of(federated: Mapping[str, Any]) -> Claims:
    """Return what the claims of an object's pods ask for, as it is recorded."""
    return CLAIMS.of(federated) or NO_CLAIMS


def claims_named(template: Mapping[str, Any], type_: FederatedType) -> list[str]:
    """Return what the pods of an object claim, sorted (`claim_refs`)."""
    pod = pod_spec_of(template)
    specs = [pod] if pod is not None else pod_specs_of(template, type_.components)
    return sorted({ref for spec in specs for ref in claim_refs(spec)})


def claims_problem(federated: Mapping[str, Any], type_: FederatedType) -> str:
    """Return why the devices that an object's pods claim are not known, "" if they are or it claims none."""
    named = claims_named(federated["spec"]["template"], type_)
    if not named:
        return ""
    claims = claims_of(federated)
    if claims.problem:
        return claims.problem
    return "its claims for devices are being read" if any(ref not in claims.requests for ref in named) else ""
