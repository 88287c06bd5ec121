"""Keep followers with the orphaned member objects of their leaders (`--cascade=orphan`, or annotation `orphan`).

Orphaned workloads stay in the members and their pods still need their dependencies. So a follower keeps the clusters of
such a leader and records the leader in an annotation, because nothing else of it remains. A record ends when the
workload exists again and is in the cluster itself, or when the follower is deleted. Pure; `followerplan.py` writes the
record, `controllers/follower` observes the deletion.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.planning.followers.references import Identity

KeptClusters = Mapping[Identity, frozenset[str]]
"""Kept clusters by orphaning leader."""
NOTHING_KEPT: KeptClusters = {}

_ORPHAN = frozenset(("all", "adopted"))
IN_PLACE = "OK"
"""`status.clusters[].status` of a cluster with the current member object."""


class _Kept(msgspec.Struct):
    group: str
    kind: str
    name: str
    clusters: frozenset[str]


_KEPT = AnnotationRecord(names.KEPT_FOR, list[_Kept], order="deterministic")


def is_orphaning(federated: Mapping[str, Any]) -> bool:
    """Return True if the object is being deleted and its member objects, or the adopted ones, stay."""
    metadata = federated["metadata"]
    annotations = metadata.get("annotations") or {}
    orphan = annotations.get(names.INTERNAL_ORPHAN) or annotations.get(names.ORPHAN)
    is_replaced = names.WRITTEN_AGAIN in annotations
    return bool(metadata.get("deletionTimestamp")) and (is_replaced or orphan in _ORPHAN)


def kept_for(federated: Mapping[str, Any]) -> dict[Identity, frozenset[str]]:
    """Return the kept clusters that a follower has recorded."""
    namespace = federated["metadata"].get("namespace", "")
    return {
        Identity(entry.group, entry.kind, namespace, entry.name): entry.clusters for entry in _KEPT.of(federated) or ()
    }


def to_annotation(kept: KeptClusters) -> str | None:
    """Return the annotation's value, None when nothing is kept."""
    entries = [
        _Kept(leader.group, leader.kind, leader.name, clusters) for leader, clusters in sorted(kept.items()) if clusters
    ]
    return _KEPT.text(entries) if entries else None


def merge_kept(*records: KeptClusters) -> dict[Identity, frozenset[str]]:
    """Return the union of the records."""
    combined: dict[Identity, frozenset[str]] = {}
    for record in records:
        for leader, clusters in record.items():
            combined[leader] = combined.get(leader, frozenset()) | clusters
    return combined


def still_kept(
    kept: KeptClusters, find: Callable[[Identity], Mapping[str, Any] | None]
) -> dict[Identity, frozenset[str]]:
    """Return the clusters without a member object of the leader itself; `find` returns its federated object."""
    return {
        leader: clusters if (found := find(leader)) is None else clusters - _clusters_in_place(found)
        for leader, clusters in kept.items()
    }


def _clusters_in_place(leader: Mapping[str, Any]) -> frozenset[str]:
    if leader["metadata"].get("deletionTimestamp"):
        return frozenset()
    entries = (leader.get("status") or {}).get("clusters") or ()
    return frozenset(entry["cluster"] for entry in entries if entry.get("status") == IN_PLACE)
