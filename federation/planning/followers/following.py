"""What a follower is written: its entry among the placements, whom it follows, and its way through the pipeline.

It goes to every cluster that a leader takes it to. It leaves a cluster only after its leaders have: as long as a copy
of a leader that may still need it is there, or may be, the follower stays (D8). What says so is the leader's own
federated object (clusters it departed from, its status by cluster), so that nothing is forgotten in a restart. Where
copies outlive their leader (`released.py`) the follower stays with them. Pure; `controllers/follower` sends the patch.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

from federation.api import names
from federation.planning import pipeline
from federation.planning.followers.references import FollowersError, Identity, listed_followers
from federation.planning.followers.released import IN_PLACE, Kept, kept_for, to_note
from federation.planning.placements import (
    Part,
    departed_clusters,
    effective_placement,
    placement_of,
    to_merge_patch,
    with_annotations,
    with_placement,
)


def stored_leaders(fed_object: Mapping[str, Any]) -> list[Identity]:
    """Return whom the object was last seen to follow (`spec.follows`)."""
    return [
        Identity(entry.get("group") or "", entry.get("kind", ""), entry.get("namespace") or "", entry.get("name", ""))
        for entry in (fed_object.get("spec") or {}).get("follows") or ()
    ]


def is_refusing(fed_object: Mapping[str, Any]) -> bool:
    """Say whether the object does not want to follow anybody (annotation disable-following)."""
    return (fed_object["metadata"].get("annotations") or {}).get(names.DISABLE_FOLLOWING) == "true"


def has_noted(follower: Mapping[str, Any] | None, leader: Identity, clusters: frozenset[str]) -> bool:
    """Say whether a follower has noted that it stays in the clusters for a leader that is let go, or need not stay."""
    if follower is None or follower["metadata"].get("deletionTimestamp") or is_refusing(follower):
        return True
    return clusters <= kept_for(follower).get(leader, frozenset())


def clusters_to_leave(fed_object: Mapping[str, Any], wanted: Collection[str]) -> frozenset[str]:
    """Return the clusters where the object is for its leaders' sake and no leader takes it any more."""
    return frozenset(placement_of(fed_object, names.FOLLOWER_CONTROLLER)).difference(wanted)


def clusters_still_needed(leaving: frozenset[str], leader: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters in which a leader, as its federated object is, may still have pods that need the follower.

    That is where the leader is on its way out, and where it does not yet run what it should: the pods that are there
    may be those of before.
    """
    metadata, status = leader["metadata"], leader.get("status") or {}
    try:
        listed_followers(metadata.get("annotations") or {})
    except FollowersError:
        # Whom it lists is not known while its annotation cannot be read: a typing error takes nothing away.
        return leaving & effective_placement(leader)
    known = {entry["cluster"]: entry.get("status") for entry in status.get("clusters") or ()}
    is_current = status.get("syncedGeneration") == metadata.get("generation") and not metadata.get("deletionTimestamp")
    unsettled = {cluster for cluster, held in known.items() if not is_current or held != IN_PLACE}
    return leaving & (departed_clusters(leader) | unsettled)


def plan_following(
    fed_object: Mapping[str, Any],
    stages: Sequence[Sequence[str]],
    leaders: AbstractSet[Identity],
    clusters: Iterable[str],
    kept: Kept,
    *,
    leaders_max: int,
) -> Part | None:
    """Return the merge patch that has the object follow, None when it does already.

    `stages` is the pipeline of the object's type, `kept` the clusters that it keeps for leaders that are no more. Of
    very many leaders only some are noted, first those that are noted already; the clusters are always those of all.
    """
    placement = with_placement(fed_object, names.FOLLOWER_CONTROLLER, {*clusters, *chain(*kept.values())})
    note = with_annotations(fed_object, {names.KEPT_FOR: to_note(kept)})
    stored = stored_leaders(fed_object)
    noted = _noted(stored, leaders, leaders_max)
    follows: Part = {}
    if noted != set(stored):
        follows = {"spec": {"follows": [_entry(leader) for leader in sorted(noted)] or None}}
    turn = with_annotations(fed_object, _turn(fed_object, stages)) if placement else {}
    return to_merge_patch(fed_object, placement, follows, note, turn)


def _noted(stored: Iterable[Identity], leaders: AbstractSet[Identity], leaders_max: int) -> AbstractSet[Identity]:
    """Return the leaders to note; that thousands of others come and go costs nothing."""
    if len(leaders) <= leaders_max:
        return leaders
    kept = [leader for leader in stored if leader in leaders][:leaders_max]
    missing = leaders_max - len(kept)
    return {*kept, *heapq.nsmallest(missing, leaders - set(kept))} if missing else set(kept)


def _entry(leader: Identity) -> dict[str, str]:
    return {key: value for key, value in leader._asdict().items() if value}


def _turn(fed_object: Mapping[str, Any], stages: Sequence[Sequence[str]]) -> dict[str, str | None]:
    """Return the annotation that has everybody behind the scheduler look again: overrides are made per cluster."""
    behind = pipeline.downstream(pipeline.effective(fed_object, stages), names.GLOBAL_SCHEDULER)
    try:
        pending = pipeline.pending(fed_object)
    except pipeline.PipelineError:
        return {}  # The federate controller cures it, and starts from the beginning.
    ahead = pipeline.without(pending, [controller for stage in behind for controller in stage])
    after = pipeline.normalise((*ahead, *behind))
    return {} if after == pending else {names.PENDING_CONTROLLERS: pipeline.to_annotation(after)}
