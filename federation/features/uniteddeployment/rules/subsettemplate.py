"""Render the workload of one subset from the template of its UnitedDeployment. Pure.

The result is a configuration for server-side apply: it has every field that the UnitedDeployment owns. The name is
derived from the uid of the UnitedDeployment and the subset, so that a repeated creation cannot make a second workload.

A subset adds its nodes and tolerations first and its patch last, so that the patch can change everything.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api import names
from federation.api.resources import UNITED_DEPLOYMENTS
from federation.apimachinery import nameformats
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import Object
from federation.features.uniteddeployment.names import SUBSET_PATCH, SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules.clustertargets import policy_labels, target_annotations
from federation.features.uniteddeployment.rules.subsetworkload import SubsetWorkload
from federation.features.uniteddeployment.rules.workloadkinds import ROLLING_UPDATE, WorkloadKind, applies_partition
from federation.planning.corerules import PatchPod

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFIX_LENGTH_MAX = 58
"""Kubernetes cuts generated names there, before five random characters."""


@dataclass(frozen=True, slots=True)
class Target:
    """The wanted workload of a subset: its revision, replicas and partition."""

    revision: str
    replicas: int
    partition: int = 0
    unavailable_max: int | None = None
    """The limit of unavailable pods during an update; None leaves it to the template."""


def name_prefix(united: str, subset: str) -> str:
    """Return the prefix of the names of a subset's workloads; without the subset if that is no valid name."""
    prefix = f"{united}-{subset}-"
    return f"{united}-" if nameformats.dns1123_subdomain(f"{prefix}a") else prefix


def workload_name(united: Mapping[str, Any], subset: str, kind: WorkloadKind) -> str:
    """Return the name of the workload of a subset; it is the same at every call."""
    metadata = united["metadata"]
    identity = f"{metadata.get('uid', '')}/{subset}/{kind.template}"
    digest = hashlib.blake2b(identity.encode(), digest_size=3).hexdigest()[:5]
    return name_prefix(metadata["name"], subset)[:_PREFIX_LENGTH_MAX] + digest


def patch_text(subset: Mapping[str, Any]) -> str:
    """Return the patch of a subset as it is recorded on the workload, "" without one."""
    patch = subset.get("patch")
    return orjson.dumps(patch).decode() if patch is not None else ""


def is_outdated(workload: SubsetWorkload, subset: Mapping[str, Any], target: Target) -> bool:
    """Return True if the workload must be written again."""
    return (
        workload.revision != target.revision
        or workload.replicas != target.replicas
        or (workload.is_partitioned and workload.partition != target.partition)
        or (target.unavailable_max is not None and workload.reported_updated < workload.status_replicas)
        or workload.patch != patch_text(subset)
    )


def render_workload(
    united: Mapping[str, Any],
    subset: Mapping[str, Any],
    kind: WorkloadKind,
    target: Target,
    patch_pod: PatchPod,
    *,
    name: str = "",
) -> Object:
    """Return the workload of the subset; BadRequest or Invalid when its patch is malformed.

    `name` is that of an existing workload.
    """
    metadata, spec = united["metadata"], united.get("spec") or {}
    template = (spec.get("template") or {}).get(kind.template) or {}
    outer, selector = template.get("metadata") or {}, spec.get("selector") or {}
    own = {names.SUBSET_NAME_LABEL: subset["name"]}
    workload: Object = {
        "apiVersion": kind.resource.api_version,
        "kind": kind.resource.kind,
        "metadata": {
            "name": name or workload_name(united, subset["name"], kind),
            "namespace": metadata.get("namespace", ""),
            "labels": {
                **(outer.get("labels") or {}),
                **(selector.get("matchLabels") or {}),
                **policy_labels(united, kind),
                SUBSET_REVISION_LABEL: target.revision,
                **own,
            },
            "annotations": {
                **(outer.get("annotations") or {}),
                **target_annotations(subset),
                SUBSET_PATCH: patch_text(subset),
            },
            "ownerReferences": [
                controller_reference(united, UNITED_DEPLOYMENTS.api_version, UNITED_DEPLOYMENTS.kind),
            ],
        },
        "spec": {
            **(template.get("spec") or {}),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **own}},
            "replicas": target.replicas,
        },
    }
    workload["spec"]["template"] = render_pods(
        workload["spec"].get("template") or {}, subset, target.revision, patch_pod
    )
    return _with_update_limits(workload, kind, target)


def render_pods(template: Mapping[str, Any], subset: Mapping[str, Any], revision: str, patch_pod: PatchPod) -> Object:
    """Return the pod template of a subset: labels, nodes, tolerations, then its patch."""
    metadata = template.get("metadata") or {}
    labels = {
        **(metadata.get("labels") or {}),
        names.SUBSET_NAME_LABEL: subset["name"],
        SUBSET_REVISION_LABEL: revision,
    }
    rendered: Object = {
        **template,
        "metadata": {**metadata, "labels": labels},
        "spec": with_nodes(template.get("spec") or {}, subset),
    }
    patch = subset.get("patch")
    return patch_pod(rendered, patch) if patch else rendered


def with_nodes(spec: Mapping[str, Any], subset: Mapping[str, Any]) -> Object:
    """Return a pod's spec with the node expressions and tolerations of a subset; matchFields have no effect.

    Required terms are alternatives, and so are those of the subset: every pair of them becomes one term.
    """
    changed = dict(spec)
    alternatives = [expressions for term in _terms_of(subset) if (expressions := term.get("matchExpressions"))]
    if alternatives:
        affinity = spec.get("affinity") or {}
        nodes = affinity.get("nodeAffinity") or {}
        required = nodes.get(_REQUIRED) or {}
        own: Sequence[Mapping[str, Any]] = required.get("nodeSelectorTerms") or ({},)
        terms = [
            {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *expressions]}
            for term in own
            for expressions in alternatives
        ]
        required = {**required, "nodeSelectorTerms": terms}
        changed["affinity"] = {**affinity, "nodeAffinity": {**nodes, _REQUIRED: required}}
    if tolerations := subset.get("tolerations"):
        changed["tolerations"] = [*(spec.get("tolerations") or ()), *tolerations]
    return changed


def _terms_of(subset: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    alternatives: Sequence[Mapping[str, Any]] = (subset.get("nodeSelector") or {}).get("nodeSelectorTerms") or ()
    return alternatives or (subset.get("nodeSelectorTerm") or {},)


def _with_update_limits(workload: Object, kind: WorkloadKind, target: Target) -> Object:
    if applies_partition(kind, workload):
        workload = _with_value(workload, kind.partition_path, target.partition)
        if kind.is_stateful:
            workload = _with_value(workload, ("spec", "updateStrategy", "type"), ROLLING_UPDATE)
    strategy = (workload["spec"].get("strategy") or {}).get("type") or ROLLING_UPDATE
    if target.unavailable_max is not None and kind.max_unavailable_path and strategy == ROLLING_UPDATE:
        workload = _with_value(workload, kind.max_unavailable_path, target.unavailable_max)
    return workload


def _with_value(obj: Mapping[str, Any], path: tuple[str, ...], value: Any) -> Object:
    """Return a copy of the object with a value at the path; objects on the way are copied or made."""
    key, rest = path[0], path[1:]
    if not rest:
        return {**obj, key: value}
    inner = obj.get(key)
    return {**obj, key: _with_value(inner if isinstance(inner, Mapping) else {}, rest, value)}
