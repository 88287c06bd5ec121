"""The template of a federated object: the parts of a source that go to members (docs/reference/federation.md). Pure.

Annotations and labels for the federation move to the federated object, feedback stays on the source, and the rest is
the template. It shares structure with the source and is read-only.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery.mergepatch import without_nulls
from federation.apimachinery.resources import Object
from federation.apimachinery.wellknown import LIMIT_RANGER
from federation.planning.federatedobject import allocations
from federation.planning.federatedobject.admitted import without_admitted

FEDERATED_ANNOTATIONS = frozenset(
    (
        names.RETAIN_REPLICAS,
        names.SCHEDULING_MODE,
        names.STICKY_CLUSTER,
        names.NO_AUTO_PROPAGATION,
        names.ORPHAN,
        names.CONFLICT_RESOLUTION,
        names.CLUSTERS_TO_ADOPT,
        names.TOLERATIONS,
        names.PLACEMENTS,
        names.CLUSTER_SELECTOR,
        names.AFFINITY,
        names.MAX_CLUSTERS,
        names.NO_SCHEDULING,
        names.FOLLOWS_OBJECT,
        names.FOLLOWERS,
        names.DISABLE_FOLLOWING,
        names.MIGRATION_CONFIGURATION,
        names.DRY_RUN,
        names.UNDO,
        names.PURGE,
        names.MOVE_VOLUMES,
        names.REBALANCE,
        names.RUN_AGAIN,
        names.CHANGE,
        names.GANG,
        names.DEADLINE,
        names.QUEUE_STOP,
        names.DRIFT,
        names.WRITTEN_ALLOCATIONS,
        names.AUTHORS,
    )
)
"""Annotations for the federation; they move to the federated object."""
IGNORED_ANNOTATIONS = frozenset(
    (
        names.LATEST_REPLICASET_DIGESTS,
        names.APPLIED_MIGRATION_CONFIGURATION,
        names.SCHEDULING,
        names.ORDINAL_STARTS,
        # In a member it marks a Service derived for discovery; a user's mark would disown the member object.
        names.DERIVED_SERVICE,
        # Sync's own records on member objects.
        names.ADOPTED,
        names.TEMPLATE_HASH,
        names.TEMPLATE_REVISION,
        names.SOURCE_GENERATION,
        LIMIT_RANGER,
    )
)
"""Feedback and marks of the federation and of the host; a source's are neither moved nor part of the template."""
FEDERATED_LABELS = frozenset(
    (
        names.PROPAGATION_POLICY_LABEL,
        names.CLUSTER_PROPAGATION_POLICY_LABEL,
        names.OVERRIDE_POLICY_LABEL,
        names.CLUSTER_OVERRIDE_POLICY_LABEL,
    )
)
_METADATA_DROPPED = frozenset(
    (
        "selfLink",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    )
)


@dataclass(frozen=True, slots=True)
class Partition:
    """Annotations or labels of a source: the federated object's, the template's, and the list of observed keys."""

    federated: dict[str, str]
    template: dict[str, str]
    observed: str


def partition(entries: Mapping[str, str] | None, moved: Collection[str], ignored: Collection[str] = ()) -> Partition:
    """Divide the entries; `observed` lists the moved keys, a bar, and all others, each sorted."""
    federated: dict[str, str] = {}
    template: dict[str, str] = {}
    others: list[str] = []
    for key, value in (entries or {}).items():
        if key in moved:
            federated[key] = value
            continue
        others.append(key)
        if key not in ignored:
            template[key] = value
    observed = f"{','.join(sorted(federated))}|{','.join(sorted(others))}" if entries else ""
    return Partition(federated, template, observed)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a source."""

    template: Object
    annotations: Partition
    labels: Partition


def divide(source: Mapping[str, Any]) -> Parts:
    """Return template, annotations and labels of a source; the template shares structure with it."""
    metadata = source["metadata"]
    is_allocating = allocations.is_allocating(source)
    written = allocations.written_allocations(source) if is_allocating else frozenset()
    annotations = partition(_marked(metadata.get("annotations"), written), FEDERATED_ANNOTATIONS, IGNORED_ANNOTATIONS)
    labels = partition(metadata.get("labels"), FEDERATED_LABELS)
    template: Object = {
        key: without_nulls(value)
        for key, value in source.items()
        if key not in ("metadata", "status") and value is not None
    }
    if isinstance(spec := template.get("spec"), dict):
        if is_allocating:
            template["spec"] = allocations.without_unwritten(spec, written)
        else:
            template["spec"] = without_admitted(source, spec)
    template["metadata"] = {
        **{key: value for key, value in metadata.items() if key not in _METADATA_DROPPED and value is not None},
        "annotations": annotations.template,
        "labels": labels.template,
    }
    return Parts(template, annotations, labels)


def _marked(annotations: Mapping[str, str] | None, written: frozenset[str]) -> Mapping[str, str] | None:
    """Return the annotations with the mark of written allocations, which users cannot set."""
    if not written and names.WRITTEN_ALLOCATIONS not in (annotations or ()):
        return annotations
    kept = {key: value for key, value in (annotations or {}).items() if key != names.WRITTEN_ALLOCATIONS}
    return {**kept, names.WRITTEN_ALLOCATIONS: ",".join(sorted(written))} if written else kept
