"""The parts of objects that decisions depend on, as records keep them.

Everything else changes often or is nobody's business: heartbeats, managed fields, and the content of Secrets and
ConfigMaps. Projections share their parts with the object, which is read-only.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_RESOURCE_QUOTAS,
    FEDERATED_TYPE_CONFIGS,
    PROJECTS,
    PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
)
from federation.api.secretvalues import without_secret_values
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.jsonpatch import to_pointer
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.planning.federatedobject.names import OBSERVED_ANNOTATIONS, OBSERVED_LABELS
from federation.planning.waves.policychanges import FIELD as CHANGE_FIELD
from federation.scheduling.clustertriggers import cluster_part
from federation.scheduling.names import SCHEDULING_ANNOTATIONS

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OUTPUTS = frozenset(
    (
        OBSERVED_ANNOTATIONS,
        OBSERVED_LABELS,
        names.TEMPLATE_GENERATOR_MERGE_PATCH,
        names.SCHEDULING,
        names.SCHEDULING_SUMMARY,
        names.APPLIED_POLICY,
    )
)
"""Annotations that other steps and users read, and no decision."""
_SHARED = "triggersClusters"
"""Where the clusters' part of the triggers is missing, and the number of its text."""
_NOT_RECORDED = frozenset(("data", "stringData", "binaryData"))
_IS_CUSTOM = re.compile(r"(?!.*\.k8s\.io/)[^/]*\.")
"""Groups of custom kinds have a dot, as have few of Kubernetes."""
_PRIVATE_KINDS = frozenset(("Secret", "ConfigMap"))


def project_federated(federated: Mapping[str, Any], type_: FederatedType, number_of: Callable[[str], int]) -> Object:
    """Return the parts of a federated object that its next placement depends on, besides the placement before it.

    `number_of` returns the number of a text that most objects share.
    """
    metadata = federated["metadata"]
    kept: Object = {"name": metadata["name"]}
    for field in ("namespace", "labels", "generation", "creationTimestamp"):
        if value := metadata.get(field):
            kept[field] = value
    projected: Object = {"metadata": kept, "template": _project_template(federated["spec"]["template"])}
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _OUTPUTS}
    # As values, of which a difference has the few that changed.
    text = annotations.get(names.SCHEDULING_TRIGGERS) or ""
    begin, end = cluster_part(text)
    own = text[:begin] + text[end:]
    triggers = parse_object(own) if own else None
    if triggers and _to_text(triggers) == own:
        projected["triggers"] = triggers
        if end:
            projected[_SHARED] = [begin, number_of(text[begin:end])]
        del annotations[names.SCHEDULING_TRIGGERS]
    if annotations:
        kept["annotations"] = annotations
    pointer = to_pointer(type_.paths.replicas_spec) if type_.paths.replicas_spec else ""
    # Ordinals, completions and partitions; the numbers of replicas are the placement.
    if more := dict(_more_patches(federated, pointer)):
        projected["patches"] = more
    return projected


def _more_patches(federated: Mapping[str, Any], pointer: str) -> Iterator[tuple[str, Any]]:
    for entry in federated["spec"].get("overrides") or ():
        if entry.get("controller") == names.GLOBAL_SCHEDULER:
            for item in entry.get("clusters") or ():
                patches = item.get("patches")
                if patches and (len(patches) > 1 or patches[0].get("path") != pointer):
                    yield item["cluster"], patches


def to_federated(
    projected: Mapping[str, Any], current: Mapping[str, int | None], type_: FederatedType, texts: Sequence[str]
) -> Object:
    """Return the federated object of a projection, with the placement that it had; `texts` are the shared ones.

    ConfigurationError if a text is missing.
    """
    metadata, spec = dict(projected["metadata"]), {"template": projected["template"]}
    if triggers := projected.get("triggers"):
        text = _to_text(triggers)
        if shared := projected.get(_SHARED):
            try:
                at, number = shared
                text = text[:at] + texts[number] + text[at:]
            except (IndexError, TypeError, ValueError):
                raise ConfigurationError("the records are damaged: a shared text is missing") from None
        metadata["annotations"] = {**metadata.get("annotations", {}), names.SCHEDULING_TRIGGERS: text}
    if current:
        placement = [{"cluster": name} for name in current]
        spec["placements"] = [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}]
    pointer = to_pointer(type_.paths.replicas_spec) if type_.paths.replicas_spec else ""
    patches = {name: [{"path": pointer, "value": count}] for name, count in current.items() if count is not None}
    if patches := {**patches, **projected.get("patches", {})}:
        clusters = [{"cluster": name, "patches": each} for name, each in patches.items()]
        spec["overrides"] = [{"controller": names.GLOBAL_SCHEDULER, "clusters": clusters}]
    return {"metadata": metadata, "spec": spec}


def with_triggers(projected: Object, triggers: str) -> Object:
    """Return a projection with other triggers."""
    metadata = projected["metadata"]
    annotations = {**metadata.get("annotations", {}), names.SCHEDULING_TRIGGERS: triggers}
    kept = {key: value for key, value in projected.items() if key not in ("triggers", _SHARED)}
    return {**kept, "metadata": {**metadata, "annotations": annotations}}


def _to_text(triggers: Mapping[str, Any]) -> str:
    return orjson.dumps(triggers, option=orjson.OPT_SORT_KEYS).decode()


def _project_template(template: Mapping[str, Any]) -> Object:
    hidden = _NOT_RECORDED if template.get("kind") in _PRIVATE_KINDS else frozenset()
    kept = {key: value for key, value in template.items() if key != "status" and key not in hidden}
    if _IS_CUSTOM.match(str(template.get("apiVersion") or "")):
        kept = without_secret_values(kept)  # others have no place for them
    metadata = template.get("metadata") or {}
    kept["metadata"] = {field: metadata[field] for field in ("name", "labels") if metadata.get(field)}
    annotations = metadata.get("annotations") or {}
    if own := {key: value for key, value in annotations.items() if key != _LAST_APPLIED}:
        kept["metadata"]["annotations"] = own
    return kept


def _project_cluster(cluster: Mapping[str, Any]) -> Object:
    metadata, status = _project_metadata(cluster), cluster.get("status") or {}
    if deleted := cluster["metadata"].get("deletionTimestamp"):
        metadata["deletionTimestamp"] = deleted
    conditions = [
        {"type": each["type"], "status": each.get("status")}
        for each in status.get("conditions") or ()
        if each.get("type") in (names.CLUSTER_JOINED, names.CLUSTER_READY)
    ]
    kept: Object = {"conditions": conditions}
    for field in ("apiResourceTypes", "resources"):
        if value := status.get(field):
            kept[field] = value
    projected: Object = {"metadata": metadata, "status": kept}
    if taints := (cluster.get("spec") or {}).get("taints"):
        projected["spec"] = {"taints": taints}
    return projected


def _project_namespace(namespace: Mapping[str, Any]) -> Object | None:
    label = (namespace["metadata"].get("labels") or {}).get(SCHEDULING_ANNOTATIONS)
    if label is None:
        return None
    return {"metadata": {"name": namespace["metadata"]["name"], "labels": {SCHEDULING_ANNOTATIONS: label}}}


def _project_configuration(source: Mapping[str, Any]) -> Object:
    kept = {key: value for key, value in source.items() if key not in ("metadata", "status")}
    return {**kept, "metadata": _project_metadata(source)}


def _project_policy(source: Mapping[str, Any]) -> Object:
    """Return the policy with the record of its change, by which some objects have its earlier version."""
    projected = _project_configuration(source)
    record = (source.get("status") or {}).get(CHANGE_FIELD)
    return {**projected, "status": {CHANGE_FIELD: record}} if record else projected


def _project_webhook(source: Mapping[str, Any]) -> Object:
    spec = {key: value for key, value in (source.get("spec") or {}).items() if key != "tlsConfig"}  # it has a key
    return {"spec": spec, "metadata": _project_metadata(source)}


def _project_metadata(source: Mapping[str, Any]) -> Object:
    metadata = source["metadata"]
    kept = {"name": metadata["name"]}
    for field in ("namespace", "labels", "generation"):
        if value := metadata.get(field):
            kept[field] = value
    if own := {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _LAST_APPLIED}:
        kept["annotations"] = own
    return kept


def _project_project(source: Mapping[str, Any]) -> Object:
    spec = {key: value for key, value in (source.get("spec") or {}).items() if key in ("clusters", "namespaces")}
    made = {"creationTimestamp": source["metadata"].get("creationTimestamp")}  # the older one has a namespace
    return {"spec": spec, "metadata": {**_project_metadata(source), **made}}


_PROJECTIONS: Mapping[Resource, Callable[[Mapping[str, Any]], Object | None]] = {
    FEDERATED_TYPE_CONFIGS: _project_configuration,
    FEDERATED_CLUSTERS: _project_cluster,
    NAMESPACES: _project_namespace,
    SCHEDULING_PROFILES: _project_configuration,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS: _project_webhook,
    FEDERATED_RESOURCE_QUOTAS: _project_configuration,
    PROJECTS: _project_project,
    PROPAGATION_POLICIES: _project_policy,
    CLUSTER_PROPAGATION_POLICIES: _project_policy,
}
RECORDED: tuple[Resource, ...] = tuple(_PROJECTIONS)
"""The kinds that decisions depend on, besides the object itself and what steps of features read (`Chain.kinds`)."""


def name_of(resource: Resource) -> str:
    """Return the name of a recorded kind in records."""
    return f"{resource.group}/{resource.plural}"


def project(resource: Resource, source: Mapping[str, Any]) -> Object | None:
    """Return the parts of an object that decisions depend on, None if they depend on nothing of it."""
    return _PROJECTIONS.get(resource, _project_configuration)(source)
