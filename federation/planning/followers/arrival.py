"""Which followers a workload's copy has to wait for in one cluster, because its pods could not start without them.

Waited for is what is on its way: an object that exists on the host and is, or is about to be, placed in the cluster.
Pure; sync asks before it writes a copy, and bounds how long it waits (docs/decisions/0014).
"""

from collections.abc import Mapping
from typing import Any

from federation.planning.followers.following import is_refusing
from federation.planning.followers.leading import is_dry_run, is_leading, needs_of
from federation.planning.followers.references import NEEDED_BY_PODS, FollowersError, Reference, listed_followers
from federation.planning.placements import effective_placement

_THERE_ALREADY = frozenset(("AlreadyExists", "ManagedLabelFalse", "FieldRetentionFailed"))
"""`status.clusters[].status` of objects that are in the cluster, although not as they should be."""


def new_needs(
    fed_object: Mapping[str, Any], desired: Mapping[str, Any], live: Mapping[str, Any] | None
) -> list[Reference]:
    """Return what the pods of a copy need that those of the present copy do not, sorted.

    `desired` is the rendered copy, `live` the one that is there. What is merely listed as a follower counts for the
    first copy only, and only when it is of a kind that pods need.
    """
    needs = needs_of(desired)
    if live is not None:
        return sorted(needs - needs_of(live))
    try:
        listed = listed_followers(fed_object["metadata"].get("annotations") or {})
    except FollowersError:
        listed = set()
    return sorted(needs | {ref for ref in listed if not ref.group and ref.kind in NEEDED_BY_PODS})


def is_to_come(follower: Mapping[str, Any] | None, leader: Mapping[str, Any], cluster: str) -> bool:
    """Say whether a follower will get to the cluster; both are federated objects, None when there is none."""
    if follower is None or follower["metadata"].get("deletionTimestamp") or is_dry_run(follower):
        return False
    if status_in(follower, cluster) in _THERE_ALREADY:
        return False
    return cluster in effective_placement(follower) or (is_leading(leader) and not is_refusing(follower))


def status_in(fed_object: Mapping[str, Any], cluster: str) -> str:
    """Return the object's published status in the cluster, "" when there is none."""
    for entry in (fed_object.get("status") or {}).get("clusters") or ():
        if entry.get("cluster") == cluster:
            return str(entry.get("status") or "")
    return ""
