"""Render the member objects of one federated object per cluster, as sync renders them, and compare them.

A member object that cannot be rendered (an override does not apply) carries the error. Where members scale the object
themselves (annotation retain-replicas) an existing member object keeps its replicas. The federation's own annotations
(template hash, source generation) are neither compared nor shown.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.dotpaths import Path
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.placements import current_clusters, effective_placement
from federation.planning.rendering.memberobject import (
    Rendered,
    Renderer,
    RenderError,
    content_hash,
)
from federation.planning.rendering.retention import retain_replicas
from federation.planning.waves.rolloutpart import rollout_part
from federation.planning.waves.waverules import divide_into_waves, find_rules
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.whatif.planresult import MemberObject, MemberPlan

_BOOKKEEPING = frozenset((names.TEMPLATE_HASH, names.SOURCE_GENERATION))


def member_objects_of(
    federated: Mapping[str, Any] | None, type_: FederatedType, only: Collection[str] | None = None
) -> dict[str, MemberObject]:
    """Return the member objects by cluster, {} without a federated object; with `only`, those in these clusters."""
    if federated is None:
        return {}
    placed = effective_placement(federated)
    clusters = placed if only is None else placed.intersection(only)
    if not clusters:
        return {}
    renderer = Renderer(federated, type_)
    members = {}
    for cluster in sorted(clusters):
        try:
            members[cluster] = _to_member_object(renderer.render(cluster), type_)
        except RenderError as error:
            members[cluster] = MemberObject({}, "", "", error=str(error))
    return members


def _to_member_object(rendered: Rendered, type_: FederatedType) -> MemberObject:
    metadata = rendered.object["metadata"]
    annotations = {key: value for key, value in metadata["annotations"].items() if key not in _BOOKKEEPING}
    kept = {key: value for key, value in metadata.items() if key != "annotations"}
    manifest: Object = {**rendered.object, "metadata": kept | ({"annotations": annotations} if annotations else {})}
    return MemberObject(manifest, content_hash(manifest), rendered.hash, type_.replicas(manifest))


def to_rows(
    old: Mapping[str, MemberObject],
    new: Mapping[str, MemberObject],
    clusters: Mapping[str, Mapping[str, Any]],
    retained: Path = (),
    waiting: Mapping[str, int] | None = None,
) -> list[MemberPlan]:
    """Return one row per cluster that has the object before or after, sorted.

    `clusters` are the FederatedClusters by name. `retained` is the path of replicas that members keep. `waiting` is the
    number of replicas per cluster that fit on no node.
    """
    rows = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if retained and before is not None and after is not None and not (before.error or after.error):
            manifest = retain_replicas(after.manifest, before.manifest, retained)
            after = MemberObject(manifest, content_hash(manifest), after.hash, before.replicas)
        crowded = f"{count} fit on no node now" if (count := (waiting or {}).get(name)) else ""
        note = "; ".join(filter(None, (_note(clusters.get(name)), crowded)))
        rows.append(MemberPlan(name, before, after, note))
    return rows


def to_waves(
    federated: Mapping[str, Any] | None,
    type_: FederatedType,
    rows: Sequence[MemberPlan],
    clusters: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, list[str], bool]]:
    """Return the waves in which the clusters of the rows are changed, and whether each needs an approval.

    [] if the policies have no waves. A wave without clusters waits for an approval.
    """
    rules, part = find_rules(federated) if federated is not None else None, rollout_part(type_)
    if rules is None or part is None:
        return []
    present: dict[str, Mapping[str, str]] = {}
    changed = []
    for row in rows:
        if row.before is None or row.after is None or row.after.error:
            continue
        present[row.cluster] = (clusters.get(row.cluster) or {"metadata": {}})["metadata"].get("labels") or {}
        if part.of(row.before.manifest) != part.of(row.after.manifest):
            changed.append(row.cluster)
    paused = {wave.name for wave in rules.waves if wave.is_paused}
    divided = divide_into_waves(rules, {name: present[name] for name in changed}, present)
    return [(wave, found, wave in paused or not found) for wave, found in divided]


def _note(cluster: Mapping[str, Any] | None) -> str:
    if cluster is None:
        return "the cluster is gone"
    view = to_cluster(cluster)
    if not view.is_joined:
        return "the cluster has not joined"
    return "" if view.is_ready else "not ready: nothing changes there until it is"


def unplaced_of(federated: Mapping[str, Any] | None, type_: FederatedType) -> int:
    """Return the number of unplaced replicas of a divided object; 0 for an object that is not divided."""
    if federated is None:
        return 0
    desired, total = type_.replicas(federated["spec"]["template"]), 0
    placed = current_clusters(federated, type_)
    if desired is None or not placed:
        return 0
    for count in placed.values():
        if count is None:
            return 0
        total += count
    return max(0, desired - total)
