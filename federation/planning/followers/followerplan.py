"""Plan the patch of a follower: its placement, `spec.follows` and its pending controllers. Pure.

A follower goes to every cluster of its leaders, and leaves a cluster only after them: while a leader's member object
that may need it exists, or may exist, the follower stays. The leader's federated object is the evidence (departed
clusters, status by cluster), so nothing is lost in a restart. Where member objects outlive their leader
(`orphaned.py`) the follower stays with them. `controllers/follower` sends the patch.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

from federation.api import names
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    Part,
    departed_clusters,
    effective_placement,
    placement_of,
    to_merge_patch,
    with_annotations,
    with_placement,
)
from federation.planning.followers.orphaned import IN_PLACE, KeptClusters, kept_for, to_annotation
from federation.planning.followers.references import FollowersError, Identity, listed_followers


def stored_leaders(federated: Mapping[str, Any]) -> list[Identity]:
    """Return the leaders that the object has recorded (`spec.follows`)."""
    return [
        Identity(entry.get("group") or "", entry.get("kind", ""), entry.get("namespace") or "", entry.get("name", ""))
        for entry in (federated.get("spec") or {}).get("follows") or ()
    ]


def is_following_disabled(federated: Mapping[str, Any]) -> bool:
    """Return True if the object must not follow (annotation disable-following)."""
    return (federated["metadata"].get("annotations") or {}).get(names.DISABLE_FOLLOWING) == "true"


def has_recorded_kept(follower: Mapping[str, Any] | None, leader: Identity, clusters: frozenset[str]) -> bool:
    """Return True if a follower has recorded that it stays in the clusters of an orphaning leader, or need not stay."""
    if follower is None or follower["metadata"].get("deletionTimestamp") or is_following_disabled(follower):
        return True
    return clusters <= kept_for(follower).get(leader, frozenset())


def clusters_to_leave(federated: Mapping[str, Any], wanted: Collection[str]) -> frozenset[str]:
    """Return the clusters where the object is placed as a follower and no leader needs it."""
    return frozenset(placement_of(federated, names.FOLLOWER_CONTROLLER)).difference(wanted)


def clusters_still_needed(leaving: frozenset[str], leader: Mapping[str, Any]) -> frozenset[str]:
    """Return those of the clusters in which a leader may still have pods that need the follower.

    These are the leader's departed clusters and those without its current version, whose pods may be older ones.
    """
    metadata, status = leader["metadata"], leader.get("status") or {}
    try:
        listed_followers(metadata.get("annotations") or {})
    except FollowersError:
        # A malformed annotation hides the listed followers; a typing error must not remove any.
        return leaving & effective_placement(leader)
    known = {entry["cluster"]: entry.get("status") for entry in status.get("clusters") or ()}
    is_current = status.get("syncedGeneration") == metadata.get("generation") and not metadata.get("deletionTimestamp")
    unsettled = {cluster for cluster, held in known.items() if not is_current or held != IN_PLACE}
    return leaving & (departed_clusters(leader) | unsettled)


def plan_following(
    federated: Mapping[str, Any],
    stages: Sequence[Sequence[str]],
    leaders: AbstractSet[Identity],
    clusters: Iterable[str],
    kept: KeptClusters,
    *,
    leaders_max: int,
    guarded: Mapping[str, str | None] | None = None,
) -> Part | None:
    """Return the merge patch that makes the object follow its leaders, None when nothing changes.

    `stages` is the pipeline of the object's type, `kept` the clusters that it keeps for deleted leaders. At most
    `leaders_max` leaders are recorded, those recorded already first; the placement always covers all of them. `guarded`
    are the annotations of the guard.
    """
    placement = with_placement(federated, names.FOLLOWER_CONTROLLER, {*clusters, *chain(*kept.values())})
    retention = with_annotations(federated, {names.KEPT_FOR: to_annotation(kept), **(guarded or {})})
    stored = stored_leaders(federated)
    recorded = _recorded(stored, leaders, leaders_max)
    follows: Part = {}
    if recorded != set(stored):
        follows = {"spec": {"follows": [_entry(leader) for leader in sorted(recorded)] or None}}
    pending = with_annotations(federated, _pending(federated, stages)) if placement else {}
    return to_merge_patch(federated, placement, follows, retention, pending)


def _recorded(stored: Iterable[Identity], leaders: AbstractSet[Identity], leaders_max: int) -> AbstractSet[Identity]:
    """Return the leaders to record. Above the limit, changes of the others cause no write."""
    kept = [leader for leader in stored if leader in leaders][:leaders_max]
    missing = leaders_max - len(kept)
    return {*kept, *heapq.nsmallest(missing, leaders - set(kept))} if missing else set(kept)


def _entry(leader: Identity) -> dict[str, str]:
    return {key: value for key, value in leader._asdict().items() if value}


def _pending(federated: Mapping[str, Any], stages: Sequence[Sequence[str]]) -> dict[str, str | None]:
    """Return the annotation that makes all stages behind the scheduler pending: overrides depend on the placement."""
    behind = pendingcontrollers.downstream(pendingcontrollers.without_idle(federated, stages), names.GLOBAL_SCHEDULER)
    try:
        pending = pendingcontrollers.pending_stages(federated)
    except pendingcontrollers.PipelineError:
        return {}  # The federate controller repairs it and starts the whole pipeline.
    ahead = pendingcontrollers.without(pending, [controller for stage in behind for controller in stage])
    after = pendingcontrollers.normalise((*ahead, *behind))
    return {} if after == pending else {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(after)}
