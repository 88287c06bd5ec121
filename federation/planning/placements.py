"""The parts of a federated object that say where it goes: placements, overrides, departed clusters (spec §1.2).

Several controllers share `spec.placements` and `spec.overrides`, each owns the entry with its name; the object goes to
the union. A merge patch replaces lists as a whole, so whoever writes builds the new list from what it read and sends
the resourceVersion along (`to_merge_patch`). Whoever shrinks the union notes the clusters that left in an annotation in
the same write, so that they are cleaned up whatever crashes in between. Pure; used by schedule, nsautoprop, override.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from federation.api import names

Part = dict[str, Any]
"""A piece of a merge patch of a federated object."""

Patches = Sequence[Mapping[str, Any]]
"""JSON patch operations: {op?, path, value?}."""


def placement_of(fed_object: Mapping[str, Any], controller: str) -> list[str]:
    """Return the clusters of the controller's own entry, in the order in which they are stored."""
    for entry in (fed_object.get("spec") or {}).get("placements") or ():
        if entry.get("controller") == controller:
            return [item["cluster"] for item in entry.get("placement") or ()]
    return []


def effective_placement(fed_object: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that the object goes to: the union over all controllers."""
    return _union((fed_object.get("spec") or {}).get("placements") or ())


def departed_clusters(fed_object: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that left the placement and may still hold the object; empty when the note is unreadable."""
    text = ((fed_object.get("metadata") or {}).get("annotations") or {}).get(names.DEPARTED_CLUSTERS)
    if not text:
        return frozenset()
    try:
        clusters = orjson.loads(text)
    except orjson.JSONDecodeError:
        return frozenset()
    return frozenset(name for name in clusters if isinstance(name, str)) if isinstance(clusters, list) else frozenset()


def overrides_of(fed_object: Mapping[str, Any], controller: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return the controller's own patches per cluster."""
    for entry in (fed_object.get("spec") or {}).get("overrides") or ():
        if entry.get("controller") == controller:
            return {item["cluster"]: list(item.get("patches") or ()) for item in entry.get("clusters") or ()}
    return {}


def with_placement(fed_object: Mapping[str, Any], controller: str, clusters: Iterable[str]) -> Part:
    """Return the patch that makes `clusters` the controller's placement; {} when it is so already.

    Clusters that leave the union are added to the departed ones, those that come back are taken off.
    """
    wanted = sorted(set(clusters))
    if wanted == placement_of(fed_object, controller):
        return {}
    entries = (fed_object.get("spec") or {}).get("placements") or []
    entry = {"controller": controller, "placement": [{"cluster": name} for name in wanted]} if wanted else None
    changed = _with_entry(entries, controller, entry)
    after = _union(changed)
    known = departed_clusters(fed_object)
    departed = (known | _union(entries)) - after
    part: Part = {"spec": {"placements": changed}}
    if departed != known:
        text = orjson.dumps(sorted(departed)).decode() if departed else None
        part["metadata"] = {"annotations": {names.DEPARTED_CLUSTERS: text}}
    return part


def with_overrides(fed_object: Mapping[str, Any], controller: str, patches: Mapping[str, Patches]) -> Part:
    """Return the patch that makes `patches` (per cluster) the controller's overrides; {} when they are so already."""
    wanted = {cluster: list(patches[cluster]) for cluster in sorted(patches) if patches[cluster]}
    if wanted == overrides_of(fed_object, controller):
        return {}
    entries = (fed_object.get("spec") or {}).get("overrides") or []
    clusters = [{"cluster": cluster, "patches": operations} for cluster, operations in wanted.items()]
    entry = {"controller": controller, "clusters": clusters} if clusters else None
    return {"spec": {"overrides": _with_entry(entries, controller, entry)}}


def with_annotations(fed_object: Mapping[str, Any], wanted: Mapping[str, str | None]) -> Part:
    """Return the patch that sets these annotations (None removes one); {} when they are so already."""
    present = (fed_object.get("metadata") or {}).get("annotations") or {}
    changed = {key: value for key, value in wanted.items() if present.get(key) != value}
    return {"metadata": {"annotations": changed}} if changed else {}


def to_merge_patch(fed_object: Mapping[str, Any], *parts: Part) -> Part | None:
    """Return all parts as one merge patch that applies only to the version they were made from; None when empty."""
    patch: Part = {}
    for part in parts:
        _merge(patch, part)
    if not patch:
        return None
    _merge(patch, {"metadata": {"resourceVersion": fed_object["metadata"]["resourceVersion"]}})
    return patch


def _merge(target: Part, part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _union(entries: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(item["cluster"] for entry in entries for item in entry.get("placement") or ())


def _with_entry(entries: Sequence[Any], controller: str, entry: Part | None) -> list[Any]:
    """Return the list with the controller's entry replaced in its place, appended, or left out when None."""
    changed, is_placed = [], False
    for existing in entries:
        if existing.get("controller") != controller:
            changed.append(existing)
        elif entry is not None:
            changed.append(entry)
            is_placed = True
    if entry is not None and not is_placed:
        changed.append(entry)
    return changed
