"""Find the ReplicaSet with the newest pods of a Deployment: the one that it controls with the same pod template. Pure.

Only those pods show whether the current workload can be scheduled. Templates are compared by a hash without the label
that the Deployment controller adds, so that a cache keeps sixteen bytes per template (`slim_replica_set`).

Reference: docs/reference/auto-migration.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.rendering.memberobject import content_hash

TEMPLATE_HASH_LABEL = "pod-template-hash"
TEMPLATE_HASH = "templateHash"
"""The field of a slim ReplicaSet with the hash of its template."""


def template_hash(template: Mapping[str, Any]) -> str:
    """Return a hash of a pod template that does not depend on its pod-template-hash label."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH_LABEL}
    return content_hash(_without_empty({**template, "metadata": {**metadata, "labels": labels}}) or {})


def _without_empty(value: Any) -> Any:
    """Return the value without fields that are null or empty, None when nothing is left."""
    if isinstance(value, Mapping):
        fields = ((key, _without_empty(inner)) for key, inner in value.items())
        return {key: inner for key, inner in fields if inner is not None} or None
    if isinstance(value, list):
        # Empty items stay, because they determine the positions of the others.
        return [_without_empty(inner) for inner in value] or None
    return None if value == "" else value


def newest_replica_set(deployment: Mapping[str, Any], replica_sets: Iterable[Object]) -> Object | None:
    """Return the slim ReplicaSet with the Deployment's template, the oldest if there are several; None without one.

    `replica_sets` are those that the Deployment controls.
    """
    wanted = template_hash((deployment.get("spec") or {}).get("template") or {})
    found = [replica_set for replica_set in replica_sets if replica_set[TEMPLATE_HASH] == wanted]
    return min(found, key=lambda s: (s["metadata"]["creationTimestamp"], s["metadata"]["name"]), default=None)


def slim_replica_set(replica_set: Object) -> Object:
    """Return a ReplicaSet reduced to identity, owner, age, number of pods and a hash of its pod template."""
    metadata = replica_set["metadata"]
    kept = {
        key: metadata.get(key) or "" for key in ("name", "namespace", "resourceVersion", "uid", "creationTimestamp")
    }
    kept["ownerReferences"] = metadata.get("ownerReferences") or []
    return {
        "metadata": kept,
        TEMPLATE_HASH: template_hash((replica_set.get("spec") or {}).get("template") or {}),
        "status": {"replicas": (replica_set.get("status") or {}).get("replicas") or 0},
    }
