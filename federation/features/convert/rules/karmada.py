"""Karmada's policies, autoscalers, quotas and interpreters as ours. Pure.

Override policies come first, because they hold for the first delivery; then policies; then the objects themselves.
Kinds that Karmada's controllers write are left out with a note. Names, labels and annotations stay, but for those of
Karmada and of the API server: `kubectl get -o yaml` of Karmada's API can be converted, too.

docs/migration-karmada.md has the table of all fields.

Decision: docs/decisions/0063-karmadas-kinds-are-converted.md
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_TAINT_POLICIES,
    CRON_AUTOSCALERS,
    FEDERATED_RESOURCE_QUOTAS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    REMEDIES,
)
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import CRDS, HORIZONTAL_POD_AUTOSCALERS, Object, Resource
from federation.features.convert.rules.fieldreader import FieldReader, to_title
from federation.features.convert.rules.karmadaautoscaling import autoscaler_labels, to_autoscaler_spec, to_cron_spec
from federation.features.convert.rules.karmadaclusterrules import to_remedy_spec, to_taint_policy_spec
from federation.features.convert.rules.karmadainterpreters import to_type_config
from federation.features.convert.rules.karmadametadata import to_metadata, to_plain
from federation.features.convert.rules.karmadanamespaces import split_by_namespace
from federation.features.convert.rules.karmadaoverrides import to_override_spec
from federation.features.convert.rules.karmadapropagation import to_policy_spec
from federation.features.convert.rules.karmadaquotas import to_quota_spec
from federation.features.convert.rules.karmadasuspension import to_suspension
from federation.features.convert.rules.model import Conversion, Note
from federation.planning.federatedobject.previoushosts import KARMADA_DOMAIN, in_domain

_SPECS: dict[str, tuple[Resource, Callable[[FieldReader, str], Object]]] = {
    "PropagationPolicy": (PROPAGATION_POLICIES, to_policy_spec),
    "ClusterPropagationPolicy": (CLUSTER_PROPAGATION_POLICIES, to_policy_spec),
    "OverridePolicy": (OVERRIDE_POLICIES, to_override_spec),
    "ClusterOverridePolicy": (CLUSTER_OVERRIDE_POLICIES, to_override_spec),
    "FederatedHPA": (HORIZONTAL_POD_AUTOSCALERS, lambda spec, _: to_autoscaler_spec(spec)),
    "FederatedResourceQuota": (FEDERATED_RESOURCE_QUOTAS, lambda spec, _: to_quota_spec(spec)),
    "ClusterTaintPolicy": (CLUSTER_TAINT_POLICIES, lambda spec, _: to_taint_policy_spec(spec)),
    "Remedy": (REMEDIES, lambda spec, _: to_remedy_spec(spec)),
    "CronFederatedHPA": (CRON_AUTOSCALERS, lambda spec, _: to_cron_spec(spec)),
}
_PROPAGATION = (PROPAGATION_POLICIES.kind, CLUSTER_PROPAGATION_POLICIES.kind)
_WITHOUT = {
    "Cluster": "join the cluster: fedctl join NAME --kubeconfig FILE",
    "Work": "members are written directly; apply the object itself",
    "ResourceBinding": "the placement is in the FederatedObject, which the control plane writes",
    "ClusterResourceBinding": "the placement is in the ClusterFederatedObject, which the control plane writes",
    "MultiClusterService": "apply a ServiceExport and a ServiceImport of the Service's name",
    "MultiClusterIngress": "apply an Ingress with a policy that places it",
    "WorkloadRebalancer": "divide the replicas again with: fedctl rebalance KIND/NAME",
}
"""Kinds that are left out, and what to do instead."""


def convert(manifests: Sequence[dict[str, Any]]) -> Conversion:
    """Return the manifests with Karmada's kinds converted; ConfigurationError for a field of the wrong type."""
    notes: list[Note] = []
    definitions = [each for each in manifests if each.get("kind") == CRDS.kind]
    overrides: list[Object] = []
    policies: list[Object] = []
    others: list[Object] = []
    suspensions: list[Object] = []
    for manifest in manifests:
        if not _is_karmadas(manifest):
            others.append(to_plain(manifest, notes))
            continue
        for part in split_by_namespace(manifest, notes):
            for converted in _convert_one(part, definitions, notes):
                kind = converted["kind"]
                listed = suspensions if "Suspension" in kind else overrides if "Override" in kind else others
                (policies if kind in _PROPAGATION else listed).append(converted)
    _refuse_doubles([*overrides, *policies])
    return Conversion([*suspensions, *overrides, *policies, *others], notes)


def _refuse_doubles(policies: Sequence[Object]) -> None:
    """Raise ConfigurationError if a cluster-wide policy became one that a namespace has already."""
    titles = Counter(map(to_title, policies))
    for title, count in titles.items():
        if count > 1:
            text = "is the result of two policies; give one of them another name"
            raise ConfigurationError(f"{title}: metadata.name: {text}")


def _is_karmadas(manifest: Mapping[str, Any]) -> bool:
    return in_domain(str(manifest.get("apiVersion") or ""), KARMADA_DOMAIN)


def _convert_one(manifest: Object, definitions: Sequence[Object], notes: list[Note]) -> list[Object]:
    title, kind = to_title(manifest), str(manifest.get("kind") or "")
    reader = FieldReader(manifest, title, notes)
    for key in ("apiVersion", "kind", "status"):
        reader.any(key)
    if kind == "ResourceInterpreterCustomization":
        reader.any("metadata")
        configured = to_type_config(reader.child("spec"), definitions)
        reader.finish()
        return [] if configured is None else [configured]
    if kind not in _SPECS:
        notes.append(Note(title, "kind", f"left out: {_WITHOUT.get(kind, 'it has no counterpart')}"))
        return []
    resource, to_spec = _SPECS[kind]
    metadata = to_metadata(reader.child("metadata"))
    if kind == "FederatedHPA":
        metadata["labels"] = {**metadata.get("labels", {}), **autoscaler_labels()}
    source = reader.child("spec")
    spec = to_spec(source, metadata.get("namespace", ""))
    converted = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    suspension = None
    if resource.kind in _PROPAGATION:
        suspension = to_suspension(source, title, metadata, spec)
    reader.finish()
    return [converted] if suspension is None else [suspension, converted]
