"""Warnings about single kinds, in kube-apiserver's words: deprecated fields, labels and annotations. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from federation.apimachinery import nameformats, quantity
from federation.apimachinery.objectmeta import STANDARD_FINALIZERS
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.addresswarnings import address_warnings, network_warnings
from federation.apiserver.semantics.validation.podwarnings import (
    NODE_LABELS,
    claim_warnings,
    node_term_warnings,
)

Fields = Mapping[str, Any]
_NOTHING: Final[Fields] = {}
_STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_VOLUME_ANNOTATIONS: Final = {
    _STORAGE_CLASS: 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_VOLUME_SOURCES: Final = {
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_TOPOLOGY_HINTS: Final = "service.kubernetes.io/topology-aware-hints"
_ENFORCE_SECRETS: Final = "kubernetes.io/enforce-mountable-secrets"
_INGRESS_CLASS: Final = "kubernetes.io/ingress.class"
_SLICE_CONTROLLERS: Final = frozenset({"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})
_LIMITED: Final = ("cpu", "memory", "storage", "ephemeral-storage")
_COMPLETIONS_MAX, _PARALLELISM_MAX = 100_000, 10_000


def service_warnings(service: Object) -> Iterator[str]:
    """Yield the warnings about a Service."""
    spec, annotations = service.get("spec") or _NOTHING, _annotations(service)
    if _TOPOLOGY_HINTS in annotations:
        use = "service.kubernetes.io/topology-mode"
        yield f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {use} instead"
    external, is_external = spec.get("externalIPs") or (), spec.get("type") == "ExternalName"
    is_headless = spec.get("clusterIP") == "None" and spec.get("type", "ClusterIP") == "ClusterIP"
    if is_headless:
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if external:
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity", "None") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    elif not is_external:
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            yield from address_warnings(f"spec.clusterIPs[{index}]", address)
    for index, address in enumerate(external):
        yield from address_warnings(f"spec.externalIPs[{index}]", address)
    if external and not is_headless and not is_external:
        yield "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
    yield from address_warnings("spec.loadBalancerIP", spec.get("loadBalancerIP") or "")
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        yield from network_warnings(f"spec.loadBalancerSourceRanges[{index}]", network)
    if is_external and external:
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if spec.get("externalName") and not is_external:
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def endpoint_slice_warnings(endpoints: Object, *, is_new: bool) -> Iterator[str]:
    """Yield the warnings about an EndpointSlice."""
    if is_new and endpoints.get("addressType") == "FQDN":
        yield "spec.addressType: FQDN endpoints are deprecated"
    labels = endpoints["metadata"].get("labels") or _NOTHING
    if labels.get("endpointslice.kubernetes.io/managed-by") in _SLICE_CONTROLLERS:
        return  # they write the usual form
    for index, endpoint in enumerate(endpoints.get("endpoints") or ()):
        for position, address in enumerate(endpoint.get("addresses") or ()):
            yield from address_warnings(f"endpoints[{index}].addresses[{position}]", address)


def ingress_warnings(ingress: Object) -> Iterator[str]:
    """Yield the warnings about a new Ingress."""
    if _INGRESS_CLASS in _annotations(ingress) and (ingress.get("spec") or _NOTHING).get("ingressClassName") is None:
        yield f"annotation \"{_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"


def network_policy_warnings(policy: Object) -> Iterator[str]:
    """Yield the warnings about a NetworkPolicy."""
    spec = policy.get("spec") or _NOTHING
    for rules, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(rules) or ()):
            for position, peer in enumerate(rule.get(peers) or ()):
                if not (block := peer.get("ipBlock")):
                    continue
                at = f"spec.{rules}[{index}].{peers}[{position}].ipBlock"
                yield from network_warnings(f"{at}.cidr", block.get("cidr") or "")
                for place, network in enumerate(block.get("except") or ()):
                    yield from network_warnings(f"{at}.except[{place}]", network)


def volume_warnings(volume: Object) -> Iterator[str]:
    """Yield the warnings about a PersistentVolume."""
    spec, annotations = volume.get("spec") or _NOTHING, _annotations(volume)
    for key, text in _VOLUME_ANNOTATIONS.items():
        if key in annotations:
            yield f"metadata.annotations[{key}]: {text}"
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        use = "Instead, the recommended approach is to use dynamic provisioning."
        yield f"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. {use}"
    required = (spec.get("nodeAffinity") or _NOTHING).get("required") or _NOTHING
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        yield from node_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for kind, text in _VOLUME_SOURCES.items():
        if spec.get(kind) is not None:
            yield f"spec.{kind}: {text}"


def volume_claim_warnings(claim: Object) -> Iterator[str]:
    """Yield the warnings about a PersistentVolumeClaim."""
    if _STORAGE_CLASS in _annotations(claim):
        yield f"metadata.annotations[{_STORAGE_CLASS}]: {_VOLUME_ANNOTATIONS[_STORAGE_CLASS]}"
    yield from claim_warnings(claim.get("spec") or _NOTHING, "spec")


def storage_class_warnings(storage_class: Object) -> Iterator[str]:
    """Yield the warnings about a StorageClass."""
    for index, topology in enumerate(storage_class.get("allowedTopologies") or ()):
        for position, expression in enumerate(topology.get("matchLabelExpressions") or ()):
            if (key := expression.get("key")) in NODE_LABELS:
                yield f"allowedTopologies[{index}].matchLabelExpressions[{position}].key: {NODE_LABELS[key]}"


def storage_capacity_warnings(capacity: Object) -> Iterator[str]:
    """Yield the warnings about a CSIStorageCapacity."""
    selector = capacity.get("nodeTopology") or _NOTHING
    yield from node_term_warnings(selector, "nodeTopology")
    for label in selector.get("matchLabels") or ():
        if label in NODE_LABELS:
            yield f"nodeTopology.matchLabels.{label}: {NODE_LABELS[label]}"


def driver_warnings(driver: Object, old: Object | None) -> Iterator[str]:
    """Yield the warnings about a CSIDriver whose token requests are new."""
    spec = driver.get("spec") or _NOTHING
    before = ((old or _NOTHING).get("spec") or _NOTHING).get("tokenRequests")
    requests = spec.get("tokenRequests")
    if requests and requests != before and spec.get("serviceAccountTokenInSecrets") is None:
        yield (
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent"
            " possible logging of tokens in volume attributes"
        )


def runtime_class_warnings(runtime_class: Object) -> Iterator[str]:
    """Yield the warnings about a RuntimeClass."""
    for label in (runtime_class.get("scheduling") or _NOTHING).get("nodeSelector") or ():
        if label in NODE_LABELS:
            yield f"scheduling.nodeSelector: {NODE_LABELS[label]}"


def node_warnings(node: Object) -> Iterator[str]:
    """Yield the warnings about a Node."""
    spec = node.get("spec") or _NOTHING
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    for index, network in enumerate(spec.get("podCIDRs") or ()):
        yield from network_warnings(f"spec.podCIDRs[{index}]", network)


def quota_warnings(quota: Object) -> Iterator[str]:
    """Yield the warnings about a new ResourceQuota whose limits are below its requests."""
    hard = (quota.get("spec") or _NOTHING).get("hard") or _NOTHING
    for name in _LIMITED:
        request = f"requests.{name}"
        if request not in hard and name in {"cpu", "memory"}:
            request = name
        limit = f"limits.{name}"
        if request in hard and limit in hard and quantity.parse(str(hard[request])) > quantity.parse(str(hard[limit])):
            yield f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})"


def service_account_warnings(account: Object, old: Object | None) -> Iterator[str]:
    """Yield the warnings about a ServiceAccount whose deprecated annotation is new."""
    if _ENFORCE_SECRETS in _annotations(account) and (old is None or _ENFORCE_SECRETS not in _annotations(old)):
        use = "prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_ENFORCE_SECRETS}]: deprecated in v1.32+; {use}"


def job_warnings(spec: Fields, field: str) -> Iterator[str]:
    """Yield the warnings about a Job's spec, besides those about its pods."""
    if spec.get("completionMode") != "Indexed":
        return
    if (spec.get("completions") or 0) > _COMPLETIONS_MAX and (spec.get("parallelism") or 0) > _PARALLELISM_MAX:
        yield (
            f"{field}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than"
            " 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )


def pod_name_warnings(name: str, *, is_pod: bool) -> Iterator[str]:
    """Yield the warning about a name that hostnames cannot have."""
    if problems := nameformats.dns1123_label(name):
        use = "the Pod's hostname" if is_pod else "Pod names and hostnames"
        yield (
            f"metadata.name: this is used in {use}, which can result in surprising behavior; a DNS label is"
            f" recommended: [{' '.join(problems)}]"
        )


def finalizer_warnings(obj: Object, old: Object | None) -> Iterator[str]:
    """Yield the warnings about new finalizers of a custom resource that have no domain."""
    finalizers = obj["metadata"].get("finalizers")
    if not finalizers:
        return
    before = old["metadata"].get("finalizers") or () if old is not None else ()
    for name in sorted(set(finalizers) - set(before)):
        for problem in nameformats.qualified_name(name):
            yield f'metadata.finalizers: "{name}": {problem}'
        if "/" not in name and name not in STANDARD_FINALIZERS:
            path = " including a path (/)" if "." in name else ""
            yield (
                f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name{path} to avoid accidental'
                " conflicts with other finalizer writers"
            )


def _annotations(obj: Object) -> Fields:
    return obj["metadata"].get("annotations") or _NOTHING
