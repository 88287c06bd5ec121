"""The version of a pod and of a workload: the key of `status.versionedSubsetStatuses`. Pure.

Subsets are counted per version of the workload's template, so that new pods fill the first subsets during a rollout.
Only pods of some kinds of controllers have versions; all others share `VERSION_IGNORED`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.equality import is_json_equal
from federation.features.workloadspread.rules.references import controller_owner
from federation.planning.automigration.replicasets import TEMPLATE_HASH_LABEL

VERSION_IGNORED = "versionIgnored"
VERSIONED_KINDS = frozenset({"deployment", "replicaset"})
"""Kinds of controllers, in lower case, whose pods have versions."""
_REVISION_LABEL = "controller-revision-hash"


def pod_version(pod: Mapping[str, Any], versioned_kinds: frozenset[str] = VERSIONED_KINDS) -> str:
    """Return the version of a pod from its labels."""
    owner = controller_owner(pod)
    if owner is None or str(owner.get("kind") or "").lower() not in versioned_kinds:
        return VERSION_IGNORED
    labels = (pod.get("metadata") or {}).get("labels") or {}
    revision = str(labels.get(_REVISION_LABEL) or "")
    return labels.get(TEMPLATE_HASH_LABEL) or revision.rpartition("-")[2] or VERSION_IGNORED


def workload_version(
    workload: Mapping[str, Any],
    replica_sets: Iterable[Mapping[str, Any]] = (),
    versioned_kinds: frozenset[str] = VERSIONED_KINDS,
) -> str | None:
    """Return the version of the workload's current template; None when it is not known yet.

    `replica_sets` are those that a Deployment controls. The version of a Deployment is known when one of them has its
    template, that of a CloneSet when its controller has observed the last change.
    """
    kind = str(workload.get("kind") or "").lower()
    group = str(workload.get("apiVersion") or "").partition("/")[0]
    if kind not in versioned_kinds:
        return VERSION_IGNORED
    match kind, group:
        case "replicaset", "apps":
            return _template_hash(workload) or VERSION_IGNORED
        case "deployment", "apps":
            return _deployment_version(workload, replica_sets)
        case "cloneset", "apps.kruise.io":
            return _clone_set_version(workload)
        case _:
            return VERSION_IGNORED


def _template_hash(obj: Mapping[str, Any]) -> str:
    return str(((obj.get("metadata") or {}).get("labels") or {}).get(TEMPLATE_HASH_LABEL) or "")


def _deployment_version(deployment: Mapping[str, Any], replica_sets: Iterable[Mapping[str, Any]]) -> str | None:
    wanted = _without_hash((deployment.get("spec") or {}).get("template"))
    for replica_set in replica_sets:
        if (replica_set.get("metadata") or {}).get("deletionTimestamp"):
            continue
        if is_json_equal(_without_hash((replica_set.get("spec") or {}).get("template")), wanted):
            return _template_hash(replica_set) or VERSION_IGNORED
    return None


def _without_hash(template: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return a pod template without its hash label; empty parts are removed."""
    metadata = (template or {}).get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH_LABEL}
    kept = {key: value for key, value in {**metadata, "labels": labels}.items() if value}
    return {**(template or {}), "metadata": kept}


def _clone_set_version(clone_set: Mapping[str, Any]) -> str | None:
    status = clone_set.get("status") or {}
    generation = (clone_set.get("metadata") or {}).get("generation") or 0
    if generation > (status.get("observedGeneration") or 0):
        return None
    return str(status.get("updateRevision") or "").rpartition("-")[2] or VERSION_IGNORED
