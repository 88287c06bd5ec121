"""The source object of something that runs in a member already, for `fedctl import` and `fedctl adopt`. Pure.

The source has what a user would have written: no system fields, no status, nothing that the member allocated. It has
the annotations with which sync adopts the member's object instead of refusing it.

Reference: docs/reference/sync.md.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery import wellknown
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.previoushosts import DOMAINS, delivered_by, in_domain

_ANNOTATIONS_DROPPED = wellknown.OF_CONTROLLERS | {wellknown.LAST_APPLIED_CONFIGURATION}
_PREFIXES_DROPPED = ("pv.kubernetes.io/",)
_JOB_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_SERVICE_ALLOCATED = ("clusterIP", "clusterIPs", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy")
_NOT_IMPORTED = frozenset(("Namespace", "Pod", "CustomResourceDefinition", "PersistentVolume"))
_OF_EVERY_NAMESPACE = frozenset((("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")))
_OF_CONTROLLERS = frozenset(("Endpoints", "Event", "Lease", "ReplicaSet", "ControllerRevision"))
_MANAGERS_OF_SLICES = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_MANAGED_SLICE = "endpointslice.kubernetes.io/managed-by"
_KEYS_MAX = 2000
"""Of objects that are searched for defaults: every key costs a pass over the object."""


def import_problem(live: Mapping[str, Any]) -> str:
    """Return why the member's object cannot be imported, with the remedy; "" when it can."""
    metadata, kind = live["metadata"], str(live.get("kind"))
    if kind in _NOT_IMPORTED:
        return f"objects of kind {kind} are not imported; import the workloads that need it"
    if kind == "EndpointSlice":
        return "addresses that are written by hand are those of one cluster; create the object where it is needed"
    if metadata.get("deletionTimestamp"):
        return "it is being deleted"
    managed = (metadata.get("labels") or {}).get(names.MANAGED_LABEL)
    if managed == "true" and delivered_by(live) is None:
        return f"a federation manages it already: it has the label {names.MANAGED_LABEL}"
    if managed not in (None, "true"):
        return f'it has the label {names.MANAGED_LABEL}="{managed}", which forbids to manage it; remove the label'
    if (owner := controller_of(live)) is not None:
        return f"it belongs to {owner.get('kind')} {owner.get('name')}; import that"
    return ""


def is_made_by_cluster(live: Mapping[str, Any]) -> bool:
    """Return whether a cluster makes the object by itself, in each namespace or from others; it is not imported."""
    metadata = live["metadata"]
    kind, name = live.get("kind"), metadata["name"]
    if kind == "EndpointSlice":
        labels = metadata.get("labels") or {}
        return labels.get(_MANAGED_SLICE) in _MANAGERS_OF_SLICES or labels.get(names.MANAGED_LABEL) == "true"
    if kind == "Secret":
        return live.get("type") in ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")
    return (kind, name) in _OF_EVERY_NAMESPACE or kind in _OF_CONTROLLERS


def namespace_source(live: Mapping[str, Any], cluster: str) -> Object:
    """Return the namespace to create on the host."""
    source = to_source(live, cluster, ("", ""))
    source["metadata"]["labels"].pop("")
    source["metadata"]["labels"].pop("kubernetes.io/metadata.name", None)
    source.pop("spec", None)
    return source


def to_source(live: Mapping[str, Any], cluster: str, policy_label: tuple[str, str]) -> Object:
    """Return the object to create on the host; `policy_label` names the policy that places it in the cluster."""
    metadata = live["metadata"]
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if not _is_federations(key)}
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key not in _ANNOTATIONS_DROPPED and not key.startswith(_PREFIXES_DROPPED) and not _is_federations(key)
    }
    label, policy = policy_label
    kept: Object = {"name": metadata["name"]}
    if namespace := metadata.get("namespace"):
        kept["namespace"] = namespace
    kept["labels"] = {**labels, label: policy}
    kept["annotations"] = {**annotations, **adoption_annotations({}, [cluster])}
    source = {key: value for key, value in live.items() if key not in ("metadata", "status")}
    source["metadata"] = kept
    return _without_allocated(source)


def adoption_annotations(present: Mapping[str, str], clusters: Iterable[str]) -> dict[str, str]:
    """Return the annotations that allow sync to adopt the objects in the clusters, besides those allowed already."""
    known = parse_object(present.get(names.CLUSTERS_TO_ADOPT, "")) or {}
    listed = known.get("clusters")
    allowed = {str(name) for name in listed} if isinstance(listed, list) else set()
    text = orjson.dumps({**known, "clusters": sorted(allowed.union(clusters))}).decode()
    return {names.CONFLICT_RESOLUTION: "adopt", names.CLUSTERS_TO_ADOPT: text}


def is_import_begun(source: Mapping[str, Any], cluster: str) -> bool:
    """Return whether the host's object is one that an import from the cluster has created."""
    present = source["metadata"].get("annotations") or {}
    return all(present.get(name) == text for name, text in adoption_annotations({}, [cluster]).items())


def without_defaults(source: Object, fill: Callable[[Object], None]) -> Object:
    """Return the source without the fields that `fill` sets to the same values; the number of replicas stays.

    `fill` fills the defaults of the kind in place. Very large objects are returned unchanged.
    """
    spec = source.get("spec")
    if not isinstance(spec, dict) or _count_keys(spec) > _KEYS_MAX:
        return source
    filled = _copy(source)
    fill(filled)
    result = _copy(source)

    def is_same() -> bool:
        attempt = _copy(result)
        fill(attempt)
        return bool(attempt == filled)

    if not is_same():
        return source
    _remove_defaults(result["spec"], is_same, kept=frozenset({"replicas"}))
    return result


def _remove_defaults(holder: Any, is_same: Callable[[], bool], *, kept: frozenset[str] = frozenset()) -> None:
    """Remove every entry below the holder without which the whole object means the same, the largest first."""
    if isinstance(holder, list):
        for item in holder:
            _remove_defaults(item, is_same)
        return
    if not isinstance(holder, dict):
        return
    for key in sorted(holder):
        if key in kept:
            continue
        value = holder.pop(key)
        if not is_same():
            holder[key] = value
            _remove_defaults(value, is_same)


def _count_keys(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


def _copy(obj: Object) -> Object:
    copied: Object = orjson.loads(orjson.dumps(obj))
    return copied


def _is_federations(key: str) -> bool:
    return any(in_domain(key, domain) for domain in DOMAINS.values())


def _without_allocated(source: Object) -> Object:
    """Return the source without what the member's API server and controllers filled in, by kind."""
    spec = source.get("spec")
    match source.get("kind"):
        case "Service" if isinstance(spec, dict):
            dropped = _SERVICE_ALLOCATED if spec.get("clusterIP") != "None" else _SERVICE_ALLOCATED[2:]
            kept = {key: value for key, value in spec.items() if key not in dropped}
            if isinstance(ports := spec.get("ports"), list):
                kept["ports"] = [_without(port, ("nodePort",)) for port in ports]
            return {**source, "spec": kept}
        case "PersistentVolumeClaim" if isinstance(spec, dict):
            return {**source, "spec": _without(spec, ("volumeName",))}
        case "ServiceAccount":
            return {key: value for key, value in source.items() if key != "secrets"}
        case "Job" if isinstance(spec, dict) and spec.get("manualSelector") is not True:
            return {**source, "spec": _without_job_labels(_without(spec, ("selector",)))}
    return source


def _without_job_labels(spec: Object) -> Object:
    template = spec.get("template")
    if not isinstance(template, dict) or not isinstance(metadata := template.get("metadata"), dict):
        return spec
    labels = _without(metadata.get("labels") or {}, _JOB_LABELS)
    return {**spec, "template": {**template, "metadata": {**metadata, "labels": labels}}}


def _without(mapping: Any, keys: Iterable[str]) -> Any:
    return {key: value for key, value in mapping.items() if key not in keys} if isinstance(mapping, dict) else mapping
