"""What stays with copies that were let go: `kubectl delete --cascade=orphan` of a workload, or annotation `orphan`.

Such copies stay in the members without belonging to anybody, and their pods still need what they refer to. So a
follower keeps the clusters of a leader that is deleted in this way. It notes for whom in an annotation, because nothing
else is left of the leader. A note ends where the workload is there again and holds the cluster itself, and with the
follower's own deletion. Pure; `following.py` writes the note, `controllers/follower` sees leaders go.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.planning.followers.references import Identity

Kept = Mapping[Identity, frozenset[str]]
"""Clusters that are kept, by the leader that was let go there."""
NOBODY_KEPT: Kept = {}

_ORPHAN = frozenset(("all", "adopted"))
IN_PLACE = "OK"
"""`status.clusters[].status` of a cluster that holds what it should."""


def is_released(fed_object: Mapping[str, Any]) -> bool:
    """Say whether the object is on its way out and its copies stay, at least those that were there before it."""
    metadata = fed_object["metadata"]
    annotations = metadata.get("annotations") or {}
    orphan = annotations.get(names.INTERNAL_ORPHAN) or annotations.get(names.ORPHAN)
    return bool(metadata.get("deletionTimestamp")) and orphan in _ORPHAN


def kept_for(fed_object: Mapping[str, Any]) -> dict[Identity, frozenset[str]]:
    """Return what a follower has noted; nothing when the note cannot be read."""
    metadata = fed_object["metadata"]
    text = (metadata.get("annotations") or {}).get(names.KEPT_FOR)
    if not text:
        return {}
    try:
        return dict(_read(entry, metadata.get("namespace", "")) for entry in orjson.loads(text))
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError):
        return {}


def _read(entry: Mapping[str, Any], namespace: str) -> tuple[Identity, frozenset[str]]:
    leader = Identity(str(entry.get("group", "")), str(entry["kind"]), namespace, str(entry["name"]))
    if not isinstance(entry["clusters"], list):
        raise TypeError("clusters is a list of names")
    return leader, frozenset(map(str, entry["clusters"]))


def to_note(kept: Kept) -> str | None:
    """Return the annotation's text, None when nothing is kept."""
    entries = [
        {"group": leader.group, "kind": leader.kind, "name": leader.name, "clusters": sorted(clusters)}
        for leader, clusters in sorted(kept.items())
        if clusters
    ]
    return orjson.dumps(entries).decode() if entries else None


def combine(*notes: Kept) -> dict[Identity, frozenset[str]]:
    """Return everything that any of the notes keeps."""
    combined: dict[Identity, frozenset[str]] = {}
    for note in notes:
        for leader, clusters in note.items():
            combined[leader] = combined.get(leader, frozenset()) | clusters
    return combined


def still_kept(kept: Kept, find: Callable[[Identity], Mapping[str, Any] | None]) -> dict[Identity, frozenset[str]]:
    """Return what is kept where no leader holds the cluster itself again; `find` returns its federated object."""
    return {
        leader: clusters if (there := find(leader)) is None else clusters - _held_by(there)
        for leader, clusters in kept.items()
    }


def _held_by(leader: Mapping[str, Any]) -> frozenset[str]:
    if leader["metadata"].get("deletionTimestamp"):
        return frozenset()
    entries = (leader.get("status") or {}).get("clusters") or ()
    return frozenset(entry["cluster"] for entry in entries if entry.get("status") == IN_PLACE)
