"""Sort the pods of a workload into subsets, and adopt pods that have none. Pure.

A pod has no subset when it is older than the WorkloadSpread, or when no subset was free at its creation. It is adopted
by the best subset whose rules match the node on which it runs. Adoption changes only metadata; the pod is not
restarted. A pod whose subset was removed from the spec stays outside of all subsets.

Pods that are older than the WorkloadSpread may exceed a limit, as with OpenKruise. Later ones are adopted only where a
replica is free, so that a pod that admission did not decide about breaks no limit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.api.selectors import compile_cluster_terms, tolerates
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError
from federation.features.workloadspread import names
from federation.features.workloadspread.rules.injection import (
    PATCHED_METADATA,
    required_terms,
    with_match,
    with_node_rules,
)
from federation.features.workloadspread.rules.ledger import CREATING, id_of, parse_match
from federation.features.workloadspread.rules.references import object_name
from federation.features.workloadspread.rules.subsets import (
    find_subset,
    is_stateful,
    name_of,
    resolve_limit,
    subsets_of,
)
from federation.features.workloadspread.rules.versions import VERSIONED_KINDS, pod_version
from federation.planning.automigration.podanalysis import is_live
from federation.planning.corerules import PatchPod

NO_SUBSET = ""
"""The key of pods outside of all subsets."""
Groups = dict[str, dict[str, list[Object]]]
"""Version → name of the subset, or `NO_SUBSET` → pods in the given order."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """A pod, the subset that takes it, and the strategic merge patch to write."""

    pod: Object
    subset: str
    patch: Object


@dataclass(frozen=True, slots=True)
class Grouping:
    """The pods by version and subset, adopted ones included, and the adoptions to write."""

    groups: Groups
    adoptions: tuple[Adoption, ...]
    released: frozenset[str] = frozenset()
    """Ids of seen pods whose records end: they were admitted without the recorded subset, or are over."""


def group_pods(
    spread: Object,
    pods: Iterable[Object],
    nodes: Mapping[str, Object],
    total: int,
    patch_pod: PatchPod,
    versioned_kinds: frozenset[str] = VERSIONED_KINDS,
) -> Grouping:
    """Return the target's pods by version and subset. `nodes` are by name; InvalidInput when a limit is malformed."""
    groups: Groups = {}
    strangers: list[tuple[str, Object]] = []
    for pod in pods:
        version = pod_version(pod, versioned_kinds)
        by_subset = groups.setdefault(version, {})
        subset = _own_subset(spread, pod)
        if subset is None:
            strangers.append((version, pod))
        else:
            by_subset.setdefault(subset, []).append(pod)
    rooms = {version: _Room(spread, version, by_subset, total) for version, by_subset in groups.items()}
    adoptions = []
    for version, pod in strangers:
        found = _adopting_subset(spread, pod, nodes, rooms[version], patch_pod)
        groups[version].setdefault(NO_SUBSET if found is None else name_of(found), []).append(pod)
        if found is not None:
            rooms[version].take(name_of(found))
            adoptions.append(Adoption(pod, name_of(found), adoption_patch(spread, found)))
    return Grouping(groups, tuple(adoptions), frozenset(each for room in rooms.values() for each in room.released))


def adoption_patch(spread: Mapping[str, Any], subset: Mapping[str, Any]) -> Object:
    """Return the strategic merge patch that adopts a pod: the annotation, and the metadata of the subset's patch."""
    metadata = spread.get("metadata") or {}
    keeps_metadata = (metadata.get("annotations") or {}).get(names.IGNORE_PATCH_EXISTING_PODS_METADATA) == "true"
    patch = subset.get("patch")
    metadata = patch.get("metadata") if isinstance(patch, dict) and not keeps_metadata else None
    own = metadata if isinstance(metadata, dict) else {}
    annotations = own.get("annotations")
    changed = {key: value for key, value in own.items() if key in PATCHED_METADATA and key != "annotations"}
    kept = {"annotations": annotations} if isinstance(annotations, dict) else {}
    return with_match({"metadata": {**changed, **kept}}, object_name(spread), name_of(subset))


def match_score(
    subset: Object, pod: Object, node: Mapping[str, Any], patch_pod: PatchPod, *, has_room: bool
) -> int | None:
    """Return how well a subset matches a pod that runs on a node; None when its rules exclude the node.

    100 times the weights of the matching preferences, plus 10 if the pod already has what the patch sets (annotations
    are ignored), plus 1 if the subset has room.
    """
    metadata = node.get("metadata") or {}
    name, labels = object_name(node), metadata.get("labels") or {}
    spec = with_node_rules(pod.get("spec") or {}, subset)
    taints = (node.get("spec") or {}).get("taints") or ()
    if not all(any(tolerates(rule, taint) for rule in spec.get("tolerations") or ()) for taint in taints):
        return None
    # Without a term of its own the subset accepts the node, even if the pod's terms do not match it any more.
    if subset.get("requiredNodeSelector") is not None and not _matches_any(required_terms(spec), name, labels):
        return None
    preferred = subset.get("preferredNodeSelector") or ()
    weights = sum(
        term.get("weight") or 0 for term in preferred if _matches_any([term.get("preference") or {}], name, labels)
    )
    return 100 * weights + 10 * _has_patch(pod, subset, patch_pod) + has_room


def _matches_any(terms: list[Object], name: str, labels: Mapping[str, str]) -> bool:
    try:
        return compile_cluster_terms(terms).matches(name, labels)
    except SelectorError:
        return False


def _has_patch(pod: Object, subset: Mapping[str, Any], patch_pod: PatchPod) -> bool:
    patch = subset.get("patch")
    if not patch:
        return True
    try:
        return is_json_equal(_without_annotations(patch_pod(pod, patch)), _without_annotations(pod))
    except ApiError:  # the patch is malformed
        return False


def _without_annotations(pod: Mapping[str, Any]) -> Object:
    metadata = {key: value for key, value in (pod.get("metadata") or {}).items() if key != "annotations"}
    return {**pod, "metadata": metadata}


class _Room:
    """How many more pods each subset may get in one version, those counted that are admitted and not seen yet."""

    def __init__(self, spread: Object, version: str, by_subset: Mapping[str, list[Object]], total: int) -> None:
        self._spread = spread
        self._limits = {
            name_of(subset): resolve_limit(subset.get("maxReplicas"), total) for subset in subsets_of(spread)
        }
        self._used = Counter({name: sum(map(is_live, pods)) for name, pods in by_subset.items()})
        seen = {id_of(pod): name for name, pods in by_subset.items() for pod in pods}
        entry = ((spread.get("status") or {}).get("versionedSubsetStatuses") or {}).get(version) or ()
        self._recorded = {pod_id: name_of(each) for each in entry for pod_id in each.get(CREATING) or ()}
        self._used.update(name for pod_id, name in self._recorded.items() if pod_id not in seen)
        self.released = {each for each, name in seen.items() if self._recorded.get(each, name) != name}

    def recorded(self, pod: Object) -> Object | None:
        """Return the subset that has a place for this pod already: another instance may be adopting it."""
        return find_subset(self._spread, self._recorded.get(object_name(pod), ""))

    def release(self, pod: Object) -> None:
        """Free the place that is recorded for this pod."""
        pod_id = object_name(pod)
        if (name := self._recorded.get(pod_id)) is not None:
            self._used[name] -= 1
            self.released.add(pod_id)

    def use_record(self, pod: Object) -> None:
        """Let the adoption of this pod take its recorded place."""
        self._used[self._recorded[object_name(pod)]] -= 1

    def has_room(self, name: str) -> bool:
        limit = self._limits[name]
        return limit is None or self._used[name] < limit

    def take(self, name: str) -> None:
        self._used[name] += 1


def _own_subset(spread: Object, pod: Object) -> str | None:
    """Return the subset in the pod's annotation; NO_SUBSET if it was removed, None without annotation."""
    match = parse_match(pod)
    if match is None or match.spread != object_name(spread):
        return None
    return match.subset if find_subset(spread, match.subset) is not None else NO_SUBSET


def _adopting_subset(
    spread: Object, pod: Object, nodes: Mapping[str, Object], room: _Room, patch_pod: PatchPod
) -> Object | None:
    """Return the subset that adopts a pod without a subset, None for none.

    A pod that has a record and no annotation was admitted without it, unless an adoption made the record.
    """
    recorded, node_name = room.recorded(pod), (pod.get("spec") or {}).get("nodeName")
    node = nodes.get(node_name or "")
    if recorded is not None and is_live(pod) and node_name:
        if node is None:
            return None  # the record stays until the node is known
        if match_score(recorded, pod, node, patch_pod, has_room=True) is not None:
            room.use_record(pod)
            return recorded
    room.release(pod)
    return _best_subset(spread, pod, nodes, room, patch_pod)


def _is_older(pod: Mapping[str, Any], spread: Mapping[str, Any]) -> bool:
    """Return True if the pod was created before the WorkloadSpread, or it is not known when."""
    created = [parse_rfc3339((each.get("metadata") or {}).get("creationTimestamp")) for each in (pod, spread)]
    return created[0] is None or created[1] is None or created[0] < created[1]


def _best_subset(
    spread: Object, pod: Object, nodes: Mapping[str, Object], room: _Room, patch_pod: PatchPod
) -> Object | None:
    node = nodes.get((pod.get("spec") or {}).get("nodeName") or "")
    if node is None or not is_live(pod):
        return None
    best: Object | None = None
    best_score = -1
    may_exceed = is_stateful(spread) or _is_older(pod, spread)
    for subset in subsets_of(spread):
        has_room = room.has_room(name_of(subset))
        if not has_room and not may_exceed:
            continue
        score = match_score(subset, pod, node, patch_pod, has_room=has_room)
        if score is not None and score > best_score:
            best, best_score = subset, score
    return best
