"""Build the federated object of a source, and plan its update (docs/reference/federation.md). Pure.

`federatedtemplate.py` divides the source, `pendingcontrollers.py` is the pipeline that processes the result, and
`controllers/federate` writes it. Federated objects share structure with their source and are read-only.
"""

from collections.abc import Collection, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.mergepatch import create_merge_patch
from federation.apimachinery.ownerreferences import controller_reference, owner_references
from federation.apimachinery.resources import Object
from federation.planning.federatedobject import naming, pendingcontrollers
from federation.planning.federatedobject.federatedtemplate import IGNORED_ANNOTATIONS, Parts, divide
from federation.planning.federatedobject.names import OBSERVED_ANNOTATIONS, OBSERVED_LABELS
from federation.planning.federatedobject.placements import DEPARTED, departed_clusters, effective_placement

_OF_ONE_DELETION = frozenset((names.HAND_WRITTEN, names.INTERNAL_ORPHAN, names.WRITTEN_AGAIN))
"""Annotations that the replacement of a deleted federated object does not inherit."""


def _federated_labels(source: Mapping[str, Any], parts: Parts) -> dict[str, str]:
    return {**parts.labels.federated, source["apiVersion"]: source["kind"]}


def build(source: Mapping[str, Any], type_: FederatedType, *, idle: Collection[str] = ()) -> Object:
    """Return the federated object of a source that has none, complete for one write.

    It has sync's finalizer from the start: the object must not disappear before its member objects are deleted. `idle`
    names pipeline controllers that have nothing to do for it.
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
            **_remembered(source),
        },
        "finalizers": [names.SYNC_FINALIZER],
        "ownerReferences": [controller_reference(source, source["apiVersion"], source["kind"])],
    }
    if namespace := source["metadata"].get("namespace"):
        metadata["namespace"] = namespace
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": {"template": parts.template},
    }


def rebuild(
    source: Mapping[str, Any], deleted: Mapping[str, Any], type_: FederatedType, *, idle: Collection[str] = ()
) -> Object:
    """Return the replacement of a federated object that was deleted although its source lives.

    It keeps the placement, the overrides and the scheduling triggers, so nothing moves. The clusters that only the
    deleted object's status named become departed clusters: they may hold member objects that are to be removed.
    """
    built = build(source, type_, idle=idle)
    held: Mapping[str, str] = deleted["metadata"].get("annotations") or {}
    dropped = _OF_ONE_DELETION.union(_observed(held.get(OBSERVED_ANNOTATIONS, ""))[0])
    annotations = {key: value for key, value in held.items() if key not in dropped} | built["metadata"]["annotations"]
    reported = {entry["cluster"] for entry in (deleted.get("status") or {}).get("clusters") or ()}
    departed = (departed_clusters(deleted) | reported) - effective_placement(deleted)
    if departed:
        annotations[DEPARTED.name] = DEPARTED.text(departed)
    metadata = {
        **built["metadata"],
        "labels": {**(deleted["metadata"].get("labels") or {}), **built["metadata"]["labels"]},
        "annotations": annotations,
    }
    return {**built, "metadata": metadata, "spec": {**(deleted.get("spec") or {}), **built["spec"]}}


def _bookkeeping(source: Mapping[str, Any], parts: Parts) -> dict[str, str]:
    return {
        OBSERVED_ANNOTATIONS: parts.annotations.observed,
        OBSERVED_LABELS: parts.labels.observed,
        names.TEMPLATE_GENERATOR_MERGE_PATCH: orjson.dumps(create_merge_patch(source, parts.template)).decode(),
    }


def _remembered(source: Mapping[str, Any]) -> dict[str, str]:
    """Return what the source remembers for a federated object that is made again: the ordinals of its pods."""
    text = (source["metadata"].get("annotations") or {}).get(names.ORDINAL_STARTS)
    return {} if text is None else {names.ORDINAL_STARTS: text}


def _pending(type_: FederatedType, idle: Collection[str]) -> dict[str, str]:
    """Return the annotations that start the pipeline without the idle controllers."""
    skipped = sorted(name for stage in type_.controllers for name in stage if name in idle)
    stages = pendingcontrollers.without(type_.controllers, skipped)
    annotations = {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(stages)}
    return {**annotations, names.IDLE_CONTROLLERS: ",".join(skipped)} if skipped else annotations


def plan_update(
    source: Mapping[str, Any], federated: Mapping[str, Any], type_: FederatedType, *, idle: Collection[str] = ()
) -> Object | None:
    """Return the merge patch that updates the federated object from its source, None when nothing changes.

    The patch has the resourceVersion of `federated`, because it may remove parts of the template. It restarts the
    pipeline. Annotations and labels of other controllers stay.
    """
    parts = divide(source)
    metadata = federated["metadata"]
    present: Mapping[str, str] = metadata.get("annotations") or {}
    annotations = _changed_annotations(parts, present)
    labels = create_merge_patch(metadata.get("labels") or {}, _federated_labels(source, parts))
    template = create_merge_patch((federated.get("spec") or {}).get("template") or {}, parts.template)
    owners = _owner_references(source, federated)
    if not (annotations or labels or template or owners is not None):
        return None
    annotations |= _bookkeeping(source, parts)
    annotations |= {names.IDLE_CONTROLLERS: None} if names.IDLE_CONTROLLERS in present else {}
    annotations |= _pending(type_, idle)
    patch: Object = {"metadata": {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}}
    if labels:
        patch["metadata"]["labels"] = labels
    if owners is not None:
        patch["metadata"]["ownerReferences"] = owners
    if template:
        patch["spec"] = {"template": template}
    return patch


def _changed_annotations(parts: Parts, present: Mapping[str, str]) -> dict[str, str | None]:
    """Return the changed annotations that come from the source; null for keys that the source no longer has.

    Feedback keys among the observed ones are ignored: they would restart the pipeline because of its own result. So is
    the generator patch, which changes with the mere presence of a status.
    """
    wanted = parts.annotations.federated
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if present.get(key) != value}
    before = _observed(present.get(OBSERVED_ANNOTATIONS, ""))
    changed |= {key: None for key in before[0] if key not in wanted and key in present}
    if before != _observed(parts.annotations.observed):
        changed[OBSERVED_ANNOTATIONS] = parts.annotations.observed
    if present.get(OBSERVED_LABELS, "") != parts.labels.observed:
        changed[OBSERVED_LABELS] = parts.labels.observed
    return changed


def _observed(text: str) -> tuple[list[str], list[str]]:
    """Return the moved and the other keys of an observed-keys annotation, without feedback keys."""
    moved, _, others = text.partition("|")
    return (
        [key for key in moved.split(",") if key],
        [key for key in others.split(",") if key and key not in IGNORED_ANNOTATIONS],
    )


def _owner_references(source: Mapping[str, Any], federated: Mapping[str, Any]) -> list[Any] | None:
    """Return the owner references with the source as controller, None when they are correct."""
    wanted = controller_reference(source, source["apiVersion"], source["kind"])
    references = owner_references(federated["metadata"])
    if any(
        reference.get("controller")
        and reference.get("uid") == wanted["uid"]
        and reference.get("kind") == wanted["kind"]
        and reference.get("apiVersion") == wanted["apiVersion"]
        for reference in references
    ):
        return None
    return [*(reference for reference in references if not reference.get("controller")), wanted]


def source_key(federated: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return apiVersion, kind, namespace and name of the source of a federated object; "" without valid metadata."""
    template = (federated.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata")
    return (
        template.get("apiVersion", ""),
        template.get("kind", ""),
        federated["metadata"].get("namespace", ""),
        metadata.get("name", "") if isinstance(metadata, Mapping) else "",
    )
