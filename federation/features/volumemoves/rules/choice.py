"""Which claims move, by which way, and how the workload is stopped meanwhile. Pure."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from federation.apimachinery.jsonpatch import to_pointer
from federation.apimachinery.resources import GroupKind, Object
from federation.features.volumemoves.rules.moverecord import OldVolumes, Phase, VolumeMove, Way, Wish
from federation.features.volumemoves.rules.objects import CONTENTS, DESTINATIONS, SNAPSHOTS, SOURCES, is_of
from federation.planning.guard.earliervolumes import claim_stems_of, has_data, stem_of

_RETENTION = "persistentVolumeClaimRetentionPolicy"
_STOPPED = frozenset((Phase.QUIESCE, Phase.COPY, Phase.STOP, Phase.VERIFY, Phase.READY, Phase.SWITCHED))
_STOPPED_AFTER_HOOK = _STOPPED - {Phase.QUIESCE, Phase.COPY}
Kinds = AbstractSet[GroupKind]
_NEEDS = {
    Way.VOLSYNC: ((SOURCES,), (DESTINATIONS,)),
    Way.SNAPSHOT: ((SNAPSHOTS, CONTENTS), (SNAPSHOTS, CONTENTS)),
    Way.OLD: ((), ()),
}
"""The kinds that the source and the target must serve."""


def choose_way(wish: Wish, source: str, served: Kinds, target: str, served_there: Kinds) -> tuple[str, str]:
    """Return the way to copy, and why there is none: what is missing where."""
    ways = [Way(wish.method)] if wish.method else [Way.VOLSYNC, Way.SNAPSHOT]
    problems = []
    for way in ways:
        lacks = []
        for cluster, kinds, needed in zip((source, target), (served, served_there), _NEEDS[way], strict=True):
            missing = [str(each.group_kind) for each in needed if each.group_kind not in kinds]
            if missing:
                lacks.append(f"{cluster} does not serve {' and '.join(missing)}")
        if not lacks:
            return way, ""
        problems.append(f"{way}: {', '.join(lacks)}")
    return "", f"no way to copy its volumes is installed in both clusters ({'; '.join(problems)})"


def claims_to_move(template: Mapping[str, Any], claims: Iterable[Object]) -> tuple[list[Object], str]:
    """Return the claims of a workload's templates in a cluster, and why they cannot be copied."""
    stems = claim_stems_of(template)
    found = [claim for claim in claims if stem_of(claim["metadata"]["name"]) in stems]
    for claim in found:
        if not has_data(claim):
            return [], f"claim {claim['metadata']['name']} has no volume, or is being deleted"
    return sorted(found, key=lambda claim: str(claim["metadata"]["name"])), ""


def taken_names(claims: Iterable[Object], wanted: Iterable[str], move: str) -> list[str]:
    """Return the claims among those of the target that have a wanted name, and that the move did not make."""
    names = set(wanted)
    return sorted(
        claim["metadata"]["name"] for claim in claims if claim["metadata"]["name"] in names and not is_of(claim, move)
    )


def old_problem(move: VolumeMove, claims: Iterable[Object]) -> str:
    """Return why the workload cannot go back to what an earlier move left in the target; `claims` are those there."""
    present = {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in claims if has_data(claim)}
    old = next((each for each in move.kept if each.cluster == move.target), None)
    if old is None:
        return f"no earlier move left volumes of it in {move.target}"
    gone = sorted(name for name, uid in old.claims.items() if present.get(name) != uid)
    return f"{move.target} does not have the old claims {', '.join(gone)} any more" if gone else ""


def still_old(move: VolumeMove, placed: AbstractSet[str]) -> tuple[OldVolumes, ...]:
    """Return what earlier moves left in clusters where the workload does not run."""
    return tuple(each for each in move.kept if each.cluster not in placed)


def stopping_overrides(
    move: VolumeMove, wish: Wish, replicas_path: tuple[str, ...], template: Mapping[str, Any]
) -> dict[str, list[dict[str, Any]]]:
    """Return the overrides by cluster at the present step: without pods in the source, and without losing its claims.

    A StatefulSet may delete its claims when it is scaled down or deleted. It does not while they are the only ones.
    """
    if move.phase not in (_STOPPED_AFTER_HOOK if wish.quiesce_url else _STOPPED):
        return {}
    patches: list[dict[str, Any]] = [{"op": "replace", "path": to_pointer(replicas_path), "value": 0}]
    if (template.get("spec") or {}).get(_RETENTION):
        kept = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        patches.append({"op": "replace", "path": f"/spec/{_RETENTION}", "value": kept})
    return {move.source: patches}
