"""From the object that a user applied to its federated object (spec §3). Pure.

It decides which objects are federated at all, what of an object becomes the template and what stays on the federated
object, and what has to be written when the source changes. Nothing is copied that does not change: templates share
structure with their source and are read-only. `controllers/federate` acts on it; `pipeline.py` is what follows.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CORE_GROUP, Object
from federation.planning import mergepatch, naming, pipeline

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
    )
)
"""Moved from the source to the federated object: they speak to the federation."""
IGNORED_ANNOTATIONS = frozenset(
    (names.LATEST_REPLICASET_DIGESTS, names.APPLIED_MIGRATION_CONFIGURATION, names.SCHEDULING)
)
"""Written by the federation on the source as feedback: neither copied nor part of the template."""
FEDERATED_LABELS = frozenset(
    (
        names.PROPAGATION_POLICY_LABEL,
        names.CLUSTER_PROPAGATION_POLICY_LABEL,
        names.OVERRIDE_POLICY_LABEL,
        names.CLUSTER_OVERRIDE_POLICY_LABEL,
    )
)
_PROPAGATION_LABELS = (names.PROPAGATION_POLICY_LABEL, names.CLUSTER_PROPAGATION_POLICY_LABEL)

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
_METADATA_IRRELEVANT = frozenset(("resourceVersion", "managedFields", "finalizers", "ownerReferences", "generation"))


def exclusion(source: Mapping[str, Any]) -> str:
    """Return why the object is not federated, "" when it is (docs/decisions/0002 explains each reason)."""
    metadata = source["metadata"]
    if (metadata.get("annotations") or {}).get(names.NO_FEDERATED_RESOURCE):
        return f"it has the annotation {names.NO_FEDERATED_RESOURCE}"
    kind, name = source.get("kind", ""), metadata.get("name", "")
    namespace = name if kind == "Namespace" else metadata.get("namespace", "")
    if namespace == names.SYSTEM_NAMESPACE or namespace.startswith("kube-"):
        return "its namespace belongs to the system"
    labels = metadata.get("labels") or {}
    if names.BOOTSTRAPPING_LABEL in labels or _is_made_by_kubernetes(source, kind, namespace, name):
        return "every Kubernetes cluster makes its own"
    if controller_of(source) is not None and not any(label in labels for label in _PROPAGATION_LABELS):
        return "another object's controller makes it"
    return ""


def _is_made_by_kubernetes(source: Mapping[str, Any], kind: str, namespace: str, name: str) -> bool:
    match kind:
        case "ConfigMap":
            return name == names.ROOT_CA_CONFIGMAP
        case "ServiceAccount":
            return name == names.DEFAULT_SERVICE_ACCOUNT
        case "Secret":
            return source.get("type") == names.SERVICE_ACCOUNT_TOKEN_TYPE
        case "Service" | "EndpointSlice":
            return (namespace, name) == ("default", "kubernetes")
        case "CustomResourceDefinition":
            return (source.get("spec") or {}).get("group") == CORE_GROUP
        case _:
            return False


def controller_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the owner reference of the controller, None when there is none."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            owner: Mapping[str, Any] = reference
            return owner
    return None


def is_relevant_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Say whether a change of a source may change its federated object. Status, feedback and bookkeeping may not.

    It runs for every event of every source, most of which are status updates, so it compares and builds nothing.
    """
    before, after = old["metadata"], new["metadata"]
    if before.get("uid") != after.get("uid"):
        return True
    if before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return True
    if after.get("deletionTimestamp") or names.FEDERATE_FINALIZER not in (after.get("finalizers") or ()):
        return True
    if before.get("labels") != after.get("labels"):
        return True
    if _without_feedback(before.get("annotations")) != _without_feedback(after.get("annotations")):
        return True
    generation = after.get("generation")
    if generation is not None:
        return bool(generation != before.get("generation"))
    return any(
        old.get(key) != new.get(key) for key in old.keys() | new.keys() if key not in ("metadata", "status")
    ) or any(
        before.get(key) != after.get(key)
        for key in before.keys() | after.keys()
        if key not in _METADATA_IRRELEVANT and key != "annotations"
    )


def is_foreign_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Say whether a federated object changed in what the source decides: template, labels, owner, its annotations.

    The other controllers' placements, overrides and annotations are the bulk of its updates and are not.
    """
    before, after = old["metadata"], new["metadata"]
    return bool(
        (old.get("spec") or {}).get("template") != (new.get("spec") or {}).get("template")
        or before.get("labels") != after.get("labels")
        or before.get("ownerReferences") != after.get("ownerReferences")
        or before.get("deletionTimestamp") != after.get("deletionTimestamp")
        or _owned_annotations(before) != _owned_annotations(after)
    )


def _owned_annotations(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if key in FEDERATED_ANNOTATIONS or key in (names.OBSERVED_ANNOTATIONS, names.OBSERVED_LABELS)
    }


def _without_feedback(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    held = annotations or {}
    if held.keys().isdisjoint(IGNORED_ANNOTATIONS):
        return held
    return {key: value for key, value in held.items() if key not in IGNORED_ANNOTATIONS}


@dataclass(frozen=True, slots=True)
class Partition:
    """A map of annotations or labels divided: what moves to the federated object, what stays, and what was seen."""

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
    """What a source comes apart into."""

    template: Object
    annotations: Partition
    labels: Partition


def divide(source: Mapping[str, Any]) -> Parts:
    """Return template, annotations and labels of a source; the template shares structure with it."""
    metadata = source["metadata"]
    annotations = partition(metadata.get("annotations"), FEDERATED_ANNOTATIONS, IGNORED_ANNOTATIONS)
    labels = partition(metadata.get("labels"), FEDERATED_LABELS)
    template: Object = {
        key: mergepatch.without_nulls(value)
        for key, value in source.items()
        if key not in ("metadata", "status") and value is not None
    }
    template["metadata"] = {
        **{key: value for key, value in metadata.items() if key not in _METADATA_DROPPED and value is not None},
        "annotations": annotations.template,
        "labels": labels.template,
    }
    return Parts(template, annotations, labels)


def to_owner_reference(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the owner reference that makes the source the controller of its federated object."""
    return {
        "apiVersion": source["apiVersion"],
        "kind": source["kind"],
        "name": source["metadata"]["name"],
        "uid": source["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _federated_labels(source: Mapping[str, Any], parts: Parts) -> dict[str, str]:
    return {**parts.labels.federated, source["apiVersion"]: source["kind"]}


def build(source: Mapping[str, Any], type_: FederatedType, *, idle: Collection[str] = ()) -> Object:
    """Return the federated object of a source that has none yet, complete for one write.

    It carries sync's finalizer from the start: an object that may reach members must not vanish before they are clean.
    `idle` names pipeline controllers that have nothing to do for it.
    """
    parts = divide(source)
    resource = type_.federated_resource
    metadata: Object = {
        "name": naming.federated_object_name(source["metadata"]["name"], type_.name),
        "labels": _federated_labels(source, parts),
        "annotations": {
            **parts.annotations.federated,
            **_bookkeeping(source, parts),
            **_pending(type_, idle),
        },
        "finalizers": [names.SYNC_FINALIZER],
        "ownerReferences": [to_owner_reference(source)],
    }
    if namespace := source["metadata"].get("namespace"):
        metadata["namespace"] = namespace
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": {"template": parts.template},
    }


def _bookkeeping(source: Mapping[str, Any], parts: Parts) -> dict[str, str]:
    return {
        names.OBSERVED_ANNOTATIONS: parts.annotations.observed,
        names.OBSERVED_LABELS: parts.labels.observed,
        names.TEMPLATE_GENERATOR_MERGE_PATCH: orjson.dumps(mergepatch.create(source, parts.template)).decode(),
    }


def _pending(type_: FederatedType, idle: Collection[str]) -> dict[str, str]:
    """Return the annotations that start the pipeline; a controller is idle only if the pipeline has it at all."""
    skipped = sorted(name for stage in type_.controllers for name in stage if name in idle)
    stages = pipeline.without(type_.controllers, skipped)
    annotations = {names.PENDING_CONTROLLERS: pipeline.to_annotation(stages)}
    return {**annotations, names.IDLE_CONTROLLERS: ",".join(skipped)} if skipped else annotations


def plan_update(
    source: Mapping[str, Any], federated: Mapping[str, Any], type_: FederatedType, *, idle: Collection[str] = ()
) -> Object | None:
    """Return the merge patch that brings the federated object up to its source, None when nothing has to change.

    The patch holds the resourceVersion that it was made for, because parts of the template may have to be removed. It
    starts the pipeline again. Annotations and labels of other controllers stay.
    """
    parts = divide(source)
    metadata = federated["metadata"]
    held: Mapping[str, str] = metadata.get("annotations") or {}
    annotations = _changed_annotations(parts, held)
    labels = mergepatch.create(metadata.get("labels") or {}, _federated_labels(source, parts))
    template = mergepatch.create((federated.get("spec") or {}).get("template") or {}, parts.template)
    owners = _owner_references(source, federated)
    if not (annotations or labels or template or owners is not None):
        return None
    annotations |= _bookkeeping(source, parts)
    annotations |= {names.IDLE_CONTROLLERS: None} if names.IDLE_CONTROLLERS in held else {}
    annotations |= _pending(type_, idle)
    patch: Object = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}}
    if labels:
        patch["metadata"]["labels"] = labels
    if owners is not None:
        patch["metadata"]["ownerReferences"] = owners
    if template:
        patch["spec"] = {"template": template}
    return patch


def _changed_annotations(parts: Parts, held: Mapping[str, str]) -> dict[str, str | None]:
    """Return what differs in the annotations that the source decides; null for keys that left the source.

    Feedback keys among the observed ones make no difference: they would restart the pipeline because of its own result.
    The generator patch is left out as well: it changes with the mere presence of a status.
    """
    wanted = parts.annotations.federated
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if held.get(key) != value}
    before = _observed(held.get(names.OBSERVED_ANNOTATIONS, ""))
    changed |= {key: None for key in before[0] if key not in wanted and key in held}
    if before != _observed(parts.annotations.observed):
        changed[names.OBSERVED_ANNOTATIONS] = parts.annotations.observed
    if held.get(names.OBSERVED_LABELS, "") != parts.labels.observed:
        changed[names.OBSERVED_LABELS] = parts.labels.observed
    return changed


def _observed(text: str) -> tuple[list[str], list[str]]:
    """Return the moved and the other keys of an observed-keys annotation, without feedback keys."""
    moved, _, others = text.partition("|")
    return (
        [key for key in moved.split(",") if key],
        [key for key in others.split(",") if key and key not in IGNORED_ANNOTATIONS],
    )


def _owner_references(source: Mapping[str, Any], federated: Mapping[str, Any]) -> list[Any] | None:
    """Return the owner references with the source as controller, None when they say so already."""
    wanted = to_owner_reference(source)
    references = federated["metadata"].get("ownerReferences") or []
    if any(
        reference.get("controller")
        and reference.get("uid") == wanted["uid"]
        and reference.get("kind") == wanted["kind"]
        for reference in references
    ):
        return None
    return [*(reference for reference in references if not reference.get("controller")), wanted]


def source_key(federated: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return apiVersion, kind, namespace and name of the source of a federated object."""
    template = (federated.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata") or {}
    return (
        template.get("apiVersion", ""),
        template.get("kind", ""),
        federated["metadata"].get("namespace", ""),
        metadata.get("name", ""),
    )
