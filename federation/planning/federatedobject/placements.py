"""Read and patch the parts of a federated object that several controllers share: placements and overrides. Pure.

Each controller owns the entry with its name; the object goes to the union of all placements. A merge patch replaces a
list as a whole, so a writer sends the complete list together with the resourceVersion that it read (`to_merge_patch`).
A patch that shrinks the union records the departed clusters in an annotation, so that their clean-up survives a crash.

Reference: docs/reference/kinds.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.jsonpatch import to_pointer

Part = dict[str, Any]
"""A part of a merge patch of a federated object."""

Patches = Sequence[Mapping[str, Any]]
"""JSON patch operations: {op?, path, value?}."""

Name = tuple[str, str]
"""Namespace ("" for cluster-scoped kinds) and name of a federated object."""
PLACED_IN = "placed-in"
"""The index of federated objects by `effective_placement`."""


def placement_of(federated: Mapping[str, Any], controller: str) -> list[str]:
    """Return the clusters of the controller's entry, in stored order."""
    for entry in (federated.get("spec") or {}).get("placements") or ():
        if entry.get("controller") == controller:
            return [item["cluster"] for item in entry.get("placement") or ()]
    return []


def effective_placement(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the union of all controllers' placements."""
    return _union((federated.get("spec") or {}).get("placements") or ())


DEPARTED = AnnotationRecord(names.DEPARTED_CLUSTERS, frozenset[str])


def departed_clusters(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that left the placement and may still have the object."""
    return DEPARTED.of(federated) or frozenset()


ARRIVING = AnnotationRecord(names.ARRIVING_CLUSTERS, frozenset[str])


def arriving_clusters(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters whose copies of a workload are awaited by copies in clusters that it leaves."""
    return ARRIVING.of(federated) or frozenset()


def arriving_after(federated: Mapping[str, Any], clusters: Iterable[str]) -> frozenset[str]:
    """Return the same for the scheduler's next placement. A cluster that leaves without a successor awaits nothing."""
    before, after = frozenset(placement_of(federated, names.GLOBAL_SCHEDULER)), frozenset(clusters)
    if not before - after and not departed_clusters(federated):
        return frozenset()
    return (arriving_clusters(federated) | (after - before)) & after


def overrides_of(federated: Mapping[str, Any], controller: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return the patches per cluster of the controller's entry."""
    return {item["cluster"]: list(item.get("patches") or ()) for item in _overridden(federated, controller)}


def with_placement(
    federated: Mapping[str, Any], controller: str, clusters: Iterable[str], *, records_departed: bool = True
) -> Part:
    """Return the patch that makes `clusters` the controller's placement; {} when it is unchanged.

    Clusters that leave the union are added to the departed ones, those that return are removed from them. Without
    `records_departed` the object stays in clusters that leave.
    """
    wanted = sorted(set(clusters))
    if wanted == placement_of(federated, controller):
        return {}
    entries = (federated.get("spec") or {}).get("placements") or []
    entry = {"controller": controller, "placement": [{"cluster": name} for name in wanted]} if wanted else None
    changed = _with_entry(entries, controller, entry)
    part: Part = {"spec": {"placements": changed}}
    if not records_departed:
        return part
    after = _union(changed)
    known = departed_clusters(federated)
    departed = (known | _union(entries)) - after
    if departed != known:
        part["metadata"] = {"annotations": DEPARTED.entry(departed)}
    return part


def with_overrides(federated: Mapping[str, Any], controller: str, patches: Mapping[str, Patches]) -> Part:
    """Return the patch that makes `patches` (per cluster) the controller's overrides; {} when they are unchanged.

    Null values do not count as a change: a patch without a value and one with null are equivalent, and an API server
    may store either for the other.
    """
    wanted = {cluster: list(patches[cluster]) for cluster in sorted(patches) if patches[cluster]}
    current = overrides_of(federated, controller)
    # Cluster by cluster, because most changes differ in the first one: a comparison of all costs a tenth of a decision.
    if wanted.keys() == current.keys() and all(
        is_json_equal(_without_null_values(wanted[cluster]), _without_null_values(current[cluster]))
        for cluster in wanted
    ):
        return {}
    entries = (federated.get("spec") or {}).get("overrides") or []
    clusters = [{"cluster": cluster, "patches": operations} for cluster, operations in wanted.items()]
    entry = {"controller": controller, "clusters": clusters} if clusters else None
    return {"spec": {"overrides": _with_entry(entries, controller, entry)}}


def _without_null_values(patches: Patches) -> list[dict[str, Any]]:
    return [{key: value for key, value in patch.items() if value is not None} for patch in patches]


def with_annotations(federated: Mapping[str, Any], wanted: Mapping[str, str | None]) -> Part:
    """Return the patch that sets these annotations (None removes one); {} when they are unchanged."""
    present = (federated.get("metadata") or {}).get("annotations") or {}
    changed = {key: value for key, value in wanted.items() if present.get(key) != value}
    return {"metadata": {"annotations": changed}} if changed else {}


def to_merge_patch(federated: Mapping[str, Any], *parts: Part) -> Part | None:
    """Return all parts as one merge patch for the version that they were computed from; None when empty."""
    patch: Part = {}
    for part in parts:
        _merge(patch, part)
    if not patch:
        return None
    _merge(patch, {"metadata": {"resourceVersion": federated["metadata"]["resourceVersion"]}})
    return patch


def _merge(target: Part, part: Mapping[str, Any]) -> None:
    for key, value in part.items():
        if isinstance(value, dict):
            _merge(target.setdefault(key, {}), value)
        else:
            target[key] = value


def _union(entries: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset([item["cluster"] for entry in entries for item in entry.get("placement") or ()])


def _with_entry(entries: Sequence[Any], controller: str, entry: Part | None) -> list[Any]:
    """Return the list with the controller's entry replaced in place, appended, or removed when it is None."""
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


def current_clusters(federated: Mapping[str, Any], type_: FederatedType) -> dict[str, int | None]:
    """Return the scheduler's placement: cluster → replicas, None for those of the template."""
    current: dict[str, int | None] = dict.fromkeys(placement_of(federated, names.GLOBAL_SCHEDULER))
    if not current or not type_.paths.replicas_spec:
        return current
    pointer = to_pointer(type_.paths.replicas_spec)
    for item in _overridden(federated, names.GLOBAL_SCHEDULER):
        replicas = None
        for patch in item.get("patches") or ():
            value = patch.get("value")
            if isinstance(value, int) and patch.get("path") == pointer and (patch.get("op") or "replace") == "replace":
                replicas = value
                break
        if item["cluster"] in current:
            current[item["cluster"]] = replicas
    return current


def _overridden(federated: Mapping[str, Any], controller: str) -> Sequence[Mapping[str, Any]]:
    """Return the clusters with their patches of the controller's entry."""
    for entry in (federated.get("spec") or {}).get("overrides") or ():
        if entry.get("controller") == controller:
            return entry.get("clusters") or ()
    return ()
