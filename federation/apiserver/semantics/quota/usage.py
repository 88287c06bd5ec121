"""The usage of a ResourceQuota by an object of any kind, without its bytes, and sums and differences of usages.

Every kind has `count/<plural>.<group>`; some core kinds also have a short name, and pods, services and claims more
(pkg/quota/v1/evaluator/core). `quota.py` compares a usage with a quota.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.quantity import NANOS, ZERO, Quantity, parse
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.quota.podusage import ONE, Usage, pod_usage

STORAGE_CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
CHANGING = frozenset({"pods", "services", "persistentvolumeclaims"})
"""Kinds whose usage an update may change; that of all others is their number."""
_SHORT = frozenset(
    {
        "configmaps",
        "persistentvolumeclaims",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "services",
    }
)


def object_usage(group_resource: str, obj: Object) -> Usage:
    """Return the usage of an object of a kind, for example of `deployments.apps`."""
    if group_resource == "pods":
        return pod_usage(obj)
    usage = {f"count/{group_resource}": ONE}
    if group_resource in _SHORT:
        usage[group_resource] = ONE
    if group_resource == "services":
        usage |= _service_usage(obj.get("spec") or {})
    elif group_resource == "persistentvolumeclaims":
        usage |= _claim_usage(obj)
    return usage


def tracks(name: str, group_resource: str) -> bool:
    """Return True if objects of a kind can use the resource of this name."""
    if name == f"count/{group_resource}":
        return True
    match group_resource:
        case "pods":
            return _is_pod_resource(name)
        case "services":
            return name in {"services", "services.nodeports", "services.loadbalancers"}
        case "persistentvolumeclaims":
            return name in {"persistentvolumeclaims", "requests.storage"} or STORAGE_CLASS_SUFFIX in name
    return name == group_resource and name in _SHORT


def subtract(left: Usage, right: Usage) -> Usage:
    """Return the difference of two usages; amounts may be negative."""
    return {name: left.get(name, ZERO) - right.get(name, ZERO) for name in left.keys() | right.keys()}


def total(usages: Iterable[Usage], names: Iterable[str]) -> Usage:
    """Return the sum of usages under the given names, 0 for a name without any."""
    sums = dict.fromkeys(names, ZERO)
    for usage in usages:
        for name in sums.keys() & usage.keys():
            sums[name] += usage[name]
    return sums


def _whole(amount: Quantity) -> Quantity:
    return amount if amount.nanos % NANOS == 0 else Quantity(amount.value * NANOS)


def _is_pod_resource(name: str) -> bool:
    if name in {"pods", "cpu", "memory", "ephemeral-storage"} or name.startswith("hugepages-"):
        return True
    part, _, resource = name.partition(".")
    if part == "limits":
        return resource in {"cpu", "memory", "ephemeral-storage"}
    if part != "requests":
        return False
    return resource in {"cpu", "memory", "ephemeral-storage"} or resource.startswith("hugepages-") or "/" in resource


def _service_usage(spec: Mapping[str, Any]) -> Usage:
    ports = spec.get("ports") or ()
    match spec.get("type"):
        case "NodePort":
            return {"services.nodeports": Quantity(len(ports) * NANOS)}
        case "LoadBalancer":
            if spec.get("allocateLoadBalancerNodePorts", True) is False:
                ports = [port for port in ports if port.get("nodePort")]
            return {"services.loadbalancers": ONE, "services.nodeports": Quantity(len(ports) * NANOS)}
    return {}


def _claim_usage(claim: Object) -> Usage:
    spec = claim.get("spec") or {}
    requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName")
    usage: Usage = {}
    if requested is not None:
        # A volume that has grown more than requested counts as it is; fractions of a byte count as one.
        amounts = [parse(amount) for amount in (requested, allocated) if amount is not None]
        usage["requests.storage"] = _whole(max(amounts))
    if storage_class:
        prefix = f"{storage_class}{STORAGE_CLASS_SUFFIX}"
        usage |= {f"{prefix}{name}": amount for name, amount in usage.items()}
        usage[f"{prefix}persistentvolumeclaims"] = ONE
    return usage
