"""Karmada's policies, autoscalers and interpreters as ours. Pure.

Override policies come first, because they hold for the first delivery; then policies; then the objects themselves.
Kinds that Karmada's controllers write are left out with a note. Names, labels and annotations stay, but for those of
Karmada and of the API server: `kubectl get -o yaml` of Karmada's API can be converted, too.

docs/migration-karmada.md has the table of all fields.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    CRON_AUTOSCALERS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import wellknown
from federation.apimachinery.resources import CRDS, HORIZONTAL_POD_AUTOSCALERS, Object, Resource
from federation.planning.convert.fieldreader import FieldReader, to_title
from federation.planning.convert.karmadaautoscaling import autoscaler_labels, to_autoscaler_spec, to_cron_spec
from federation.planning.convert.karmadainterpreters import to_type_config
from federation.planning.convert.karmadaoverrides import to_override_spec
from federation.planning.convert.karmadapropagation import to_policy_spec
from federation.planning.convert.model import Conversion, Note
from federation.planning.federatedobject.previoushosts import KARMADA_DOMAIN, in_domain

_SYSTEM_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_SPECS: dict[str, tuple[Resource, Callable[[FieldReader, str], Object]]] = {
    "PropagationPolicy": (PROPAGATION_POLICIES, to_policy_spec),
    "ClusterPropagationPolicy": (CLUSTER_PROPAGATION_POLICIES, to_policy_spec),
    "OverridePolicy": (OVERRIDE_POLICIES, to_override_spec),
    "ClusterOverridePolicy": (CLUSTER_OVERRIDE_POLICIES, to_override_spec),
    "FederatedHPA": (HORIZONTAL_POD_AUTOSCALERS, lambda spec, _: to_autoscaler_spec(spec)),
    "CronFederatedHPA": (CRON_AUTOSCALERS, lambda spec, _: to_cron_spec(spec)),
}
_WITHOUT = {
    "Cluster": "join the cluster: fedctl join NAME --kubeconfig FILE",
    "Work": "members are written directly; apply the object itself",
    "ResourceBinding": "the placement is in the FederatedObject, which the control plane writes",
    "ClusterResourceBinding": "the placement is in the ClusterFederatedObject, which the control plane writes",
    "ClusterTaintPolicy": "taint the cluster: fedctl taint NAME KEY=VALUE:EFFECT",
    "MultiClusterService": "apply a ServiceExport and a ServiceImport of the Service's name",
    "MultiClusterIngress": "apply an Ingress with a policy that places it",
    "WorkloadRebalancer": "replicas follow the policy; see what would move with: fedctl plan",
}
"""Kinds that are left out, and what to do instead."""


def convert(manifests: Sequence[dict[str, Any]]) -> Conversion:
    """Return the manifests with Karmada's kinds converted; ConfigurationError for a field of the wrong type."""
    notes: list[Note] = []
    definitions = [each for each in manifests if each.get("kind") == CRDS.kind]
    overrides: list[Object] = []
    policies: list[Object] = []
    others: list[Object] = []
    for manifest in manifests:
        if not _is_karmadas(manifest):
            others.append(_without_bookkeeping(manifest))
            continue
        converted = _convert_one(manifest, definitions, notes)
        if converted is None:
            continue
        kind = converted["kind"]
        (overrides if "Override" in kind else policies if "Policy" in kind else others).append(converted)
    return Conversion([*overrides, *policies, *others], notes)


def _is_karmadas(manifest: Mapping[str, Any]) -> bool:
    return in_domain(str(manifest.get("apiVersion") or ""), KARMADA_DOMAIN)


def _convert_one(manifest: Object, definitions: Sequence[Object], notes: list[Note]) -> Object | None:
    title, kind = to_title(manifest), str(manifest.get("kind") or "")
    reader = FieldReader(manifest, title, notes)
    for key in ("apiVersion", "kind", "status"):
        reader.any(key)
    if kind == "ResourceInterpreterCustomization":
        reader.any("metadata")
        converted = to_type_config(reader.child("spec"), definitions)
        reader.finish()
        return converted
    if kind not in _SPECS:
        notes.append(Note(title, "kind", f"left out: {_WITHOUT.get(kind, 'it has no counterpart')}"))
        return None
    resource, to_spec = _SPECS[kind]
    metadata = _metadata(reader.child("metadata"))
    if kind == "FederatedHPA":
        metadata["labels"] = {**metadata.get("labels", {}), **autoscaler_labels()}
    spec = to_spec(reader.child("spec"), metadata.get("namespace", ""))
    reader.finish()
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _metadata(metadata: FieldReader) -> Object:
    for key in _SYSTEM_FIELDS:
        metadata.any(key)
    kept: Object = {"name": metadata.text("name"), "namespace": metadata.text("namespace")}
    if not kept["name"]:
        raise metadata.refuse("name", "is required; add it to the manifest")
    for key in ("labels", "annotations"):
        kept[key] = _without_own(metadata.text_map(key))
    if others := [name for name in metadata.texts("finalizers") if not _is_own(name)]:
        metadata.note("finalizers", f"{', '.join(others)}: left out, its controller may not run here")
    return {key: value for key, value in kept.items() if value}


def _without_bookkeeping(manifest: Object) -> Object:
    """Return the manifest of another kind; without what Karmada and its API server added, if Karmada had it."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return manifest
    marks = [key for field in ("labels", "annotations") for key in metadata.get(field) or ()]
    if not any(map(_is_own, (*marks, *(metadata.get("finalizers") or ())))):
        return manifest
    kept = {key: value for key, value in metadata.items() if key not in _SYSTEM_FIELDS}
    for field in ("labels", "annotations"):
        kept[field] = _without_own(kept.get(field) or {})
    kept["finalizers"] = [name for name in kept.get("finalizers") or () if not _is_own(name)]
    cleaned = {key: value for key, value in manifest.items() if key != "status"}
    return {**cleaned, "metadata": {key: value for key, value in kept.items() if value}}


def _without_own(entries: Mapping[str, str]) -> dict[str, str]:
    own = wellknown.LAST_APPLIED_CONFIGURATION
    return {key: value for key, value in entries.items() if key != own and not _is_own(key)}


def _is_own(key: str) -> bool:
    return in_domain(key, KARMADA_DOMAIN)
