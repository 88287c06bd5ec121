"""What the members of one federated object get: rendered per cluster as sync renders it, and compared.

A copy that cannot be rendered (an override that does not fit) keeps its error. Where members scale the object
themselves (annotation retain-replicas) a copy that exists keeps its replicas. The federation's own bookkeeping in a
copy (its hash, the generation that it came from) is no part of what is compared and shown.
"""

from collections.abc import Collection, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.paths import Path
from federation.api.resources import Object
from federation.planning.memberobject import Rendered, Renderer, RenderError, content_hash, effective_placement
from federation.planning.retention import retain_replicas
from federation.scheduling.snapshot import to_cluster
from federation.scheduling.unit import current_clusters
from federation.scheduling.whatif.result import Copy, Row

_BOOKKEEPING = frozenset((names.TEMPLATE_HASH, names.SOURCE_GENERATION))


def copies_of(
    fed_object: Mapping[str, Any] | None, type_: FederatedType, only: Collection[str] | None = None
) -> dict[str, Copy]:
    """Return the copies of a federated object by cluster, {} when there is no object; with `only` in these clusters."""
    if fed_object is None:
        return {}
    placed = effective_placement(fed_object)
    clusters = placed if only is None else placed.intersection(only)
    if not clusters:
        return {}
    renderer = Renderer(fed_object, type_)
    copies = {}
    for cluster in sorted(clusters):
        try:
            copies[cluster] = _to_copy(renderer.render(cluster), type_)
        except RenderError as error:
            copies[cluster] = Copy({}, "", "", error=str(error))
    return copies


def _to_copy(rendered: Rendered, type_: FederatedType) -> Copy:
    metadata = rendered.object["metadata"]
    annotations = {key: value for key, value in metadata["annotations"].items() if key not in _BOOKKEEPING}
    kept = {key: value for key, value in metadata.items() if key != "annotations"}
    manifest: Object = {**rendered.object, "metadata": kept | ({"annotations": annotations} if annotations else {})}
    return Copy(manifest, content_hash(manifest), rendered.hash, type_.replicas(manifest))


def to_rows(
    old: Mapping[str, Copy],
    new: Mapping[str, Copy],
    clusters: Mapping[str, Mapping[str, Any]],
    retained: Path = (),
    waiting: Mapping[str, int] | None = None,
) -> list[Row]:
    """Return one row per cluster that has a copy before or after, sorted.

    `clusters` are the FederatedClusters by name; `retained` is where the replicas are that members keep; `waiting` says
    how many replicas of a cluster fit on none of its nodes.
    """
    rows = []
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if retained and before is not None and after is not None and not (before.error or after.error):
            manifest = retain_replicas(after.manifest, before.manifest, retained)
            after = Copy(manifest, content_hash(manifest), after.hash, before.replicas)
        crowded = f"{count} fit on no node now" if (count := (waiting or {}).get(name)) else ""
        note = "; ".join(filter(None, (_note(clusters.get(name)), crowded)))
        rows.append(Row(name, before, after, note))
    return rows


def _note(cluster: Mapping[str, Any] | None) -> str:
    if cluster is None:
        return "the cluster is gone"
    seen = to_cluster(cluster)
    if not seen.is_joined:
        return "the cluster has not joined"
    return "" if seen.is_ready else "not ready: nothing changes there until it is"


def unplaced_of(fed_object: Mapping[str, Any] | None, type_: FederatedType) -> int:
    """Return how many replicas of a divided object have no place; 0 for an object that nobody divides."""
    if fed_object is None:
        return 0
    wanted, total = type_.replicas(fed_object["spec"]["template"]), 0
    placed = current_clusters(fed_object, type_)
    if wanted is None or not placed:
        return 0
    for count in placed.values():
        if count is None:
            return 0
        total += count
    return max(0, wanted - total)
