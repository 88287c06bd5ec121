"""The pod templates that a workload had on the host, as `kubectl rollout history` and `undo` read them. Pure.

Kubernetes' controllers keep them in ReplicaSets of a Deployment, and in ControllerRevisions of a StatefulSet or
DaemonSet. Where the host runs no such controllers, the federate controller writes them when a pod template changes.
They have no pods, and the workload owns them, so they are neither federated nor left behind. As in Kubernetes, a
template that returns gets a new number, and the oldest ones are deleted beyond `revisionHistoryLimit`.

Reference: docs/reference/rollout.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from federation.apimachinery import wellknown
from federation.apimachinery.ownerreferences import controller_of, controller_reference
from federation.apimachinery.resources import (
    CONTROLLER_REVISIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Object,
    Resource,
)
from federation.planning.federatedobject import names
from federation.planning.federatedobject.federatedtemplate import FEDERATED_LABELS

_KEPT_IN: Mapping[Resource, Resource] = {
    DEPLOYMENTS: REPLICA_SETS,
    STATEFUL_SETS: CONTROLLER_REVISIONS,
    DAEMON_SETS: CONTROLLER_REVISIONS,
}
_LIMIT = 10
_POD_TEMPLATE_HASH = "pod-template-hash"
_ANNOTATIONS_SKIPPED = frozenset(
    (
        wellknown.LAST_APPLIED_CONFIGURATION,
        wellknown.DEPLOYMENT_REVISION,
        "deployment.kubernetes.io/revision-history",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deprecated.deployment.rollback.to",
    )
)
"""Annotations that `kubectl rollout undo` does not take from a ReplicaSet. It replaces all others of the Deployment by
those of the ReplicaSet, so a ReplicaSet has to carry them."""


@dataclass(frozen=True, slots=True)
class HistoryPlan:
    """Objects to create, merge patches by name, and names to delete; all of the kind `resource`."""

    resource: Resource
    creates: Sequence[Object] = ()
    patches: Mapping[str, Object] = field(default_factory=dict)
    deletes: Sequence[str] = ()


def history_resource(resource: Resource) -> Resource | None:
    """Return the kind that keeps the history of a workload kind, None for kinds without a history."""
    return _KEPT_IN.get(resource)


def plan_history(
    resource: Resource,
    source: Mapping[str, Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    stored: Sequence[Mapping[str, Any]],
) -> HistoryPlan:
    """Return the changes of the history of a workload whose pod template has changed.

    `source` is the workload, `before` its pod template until now and `after` the new one. `stored` are objects of the
    kind in its namespace; those of other owners are ignored. A workload whose history another controller keeps is left
    to that one.
    """
    kept_in = _KEPT_IN[resource]
    uid = source["metadata"].get("uid")
    owned = [obj for obj in stored if (controller_of(obj) or {}).get("uid") == uid]
    if any(names.TEMPLATE_HISTORY_LABEL not in (obj["metadata"].get("labels") or {}) for obj in owned):
        return HistoryPlan(kept_in)
    numbers = {str(obj["metadata"]["name"]): number_of(obj) for obj in owned}
    creates: list[Object] = []
    patches: dict[str, Object] = {}
    for template in (before, after):
        name, latest = _name(source, template), max(numbers.values(), default=0)
        if name in numbers and (template is before or numbers[name] == latest):
            continue
        if name in numbers:
            patches[name] = _numbered(kept_in, latest + 1)
        else:
            creates.append(_entry(resource, kept_in, source, template, latest + 1))
        numbers[name] = latest + 1
    limit = source["spec"].get("revisionHistoryLimit")
    old = sorted(numbers, key=lambda name: numbers[name])[:-1]
    surplus = old[: max(0, len(old) - (_LIMIT if limit is None else int(limit)))]
    return HistoryPlan(
        kept_in,
        [obj for obj in creates if obj["metadata"]["name"] not in surplus],
        {name: patch for name, patch in patches.items() if name not in surplus},
        [name for name in surplus if any(obj["metadata"]["name"] == name for obj in owned)],
    )


def number_of(obj: Mapping[str, Any]) -> int:
    """Return the revision number of a ReplicaSet or ControllerRevision, 0 if it has none."""
    if "revision" in obj:
        return int(obj["revision"] or 0)
    text = (obj["metadata"].get("annotations") or {}).get(wellknown.DEPLOYMENT_REVISION) or ""
    return int(text) if text.isdecimal() else 0


def template_of(obj: Mapping[str, Any]) -> Object:
    """Return the pod template in a ReplicaSet or ControllerRevision, as the workload had it."""
    spec = (obj.get("data") or obj).get("spec") or {}
    template = {key: value for key, value in (spec.get("template") or {}).items() if key != "$patch"}
    metadata = dict(template.get("metadata") or {})
    if _POD_TEMPLATE_HASH in (metadata.get("labels") or {}):
        metadata["labels"] = {key: value for key, value in metadata["labels"].items() if key != _POD_TEMPLATE_HASH}
        template["metadata"] = metadata
    return template


def _numbered(kept_in: Resource, number: int) -> Object:
    if kept_in == CONTROLLER_REVISIONS:
        return {"revision": number}
    return {"metadata": {"annotations": {wellknown.DEPLOYMENT_REVISION: str(number)}}}


def _hash(template: Mapping[str, Any]) -> str:
    return blake2b(orjson.dumps(template, option=orjson.OPT_SORT_KEYS), digest_size=5).hexdigest()


def _name(source: Mapping[str, Any], template: Mapping[str, Any]) -> str:
    return f"{source['metadata']['name'][:242]}-{_hash(template)}"


def _entry(
    resource: Resource, kept_in: Resource, source: Mapping[str, Any], template: Mapping[str, Any], number: int
) -> Object:
    metadata = source["metadata"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _ANNOTATIONS_SKIPPED
    }
    labels = {
        key: value
        for key, value in ((template.get("metadata") or {}).get("labels") or {}).items()
        if key not in FEDERATED_LABELS
    } | {names.TEMPLATE_HISTORY_LABEL: "true"}
    entry: Object = {
        "apiVersion": kept_in.api_version,
        "kind": kept_in.kind,
        "metadata": {
            "name": _name(source, template),
            "namespace": metadata["namespace"],
            "ownerReferences": [controller_reference(source, resource.api_version, resource.kind)],
        },
    }
    if kept_in == CONTROLLER_REVISIONS:
        entry["metadata"] |= {
            "labels": {**labels, "controller.kubernetes.io/hash": _hash(template)},
            "annotations": annotations,
        }
        return {
            **entry,
            "revision": number,
            "data": {"spec": {"template": {**template, "$patch": "replace"}}},
        }
    hashed = {_POD_TEMPLATE_HASH: _hash(template)}
    selector = source["spec"].get("selector") or {}
    pod_metadata = template.get("metadata") or {}
    entry["metadata"] |= {
        "labels": labels | hashed,
        "annotations": {**annotations, wellknown.DEPLOYMENT_REVISION: str(number)},
    }
    entry["spec"] = {
        "replicas": 0,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **hashed}},
        "template": {
            **template,
            "metadata": {**pod_metadata, "labels": {**(pod_metadata.get("labels") or {}), **hashed}},
        },
    }
    return entry
