"""Find the followers without which the pods of a workload cannot start in a member. Pure.

It waits for a follower that exists on the host and is placed in the cluster, or is about to be. Sync checks this before
it writes a member object, and limits the time (docs/decisions/0014).
"""

from collections.abc import Mapping
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.planning.federatedobject.namespaces import is_never_synced
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.followers.followerplan import is_following_disabled
from federation.planning.followers.leaderplan import dependencies_of, is_dry_run, is_follower_scheduling_enabled
from federation.planning.followers.references import NEEDED_BY_PODS, FollowersError, Reference, listed_followers

_THERE_ALREADY = frozenset(("AlreadyExists", "ManagedLabelFalse", "FieldRetentionFailed"))
"""`status.clusters[].status` of objects that exist in the cluster but are not current."""


def new_dependencies(
    federated: Mapping[str, Any],
    desired: Mapping[str, Any],
    live: Mapping[str, Any] | None,
    type_: FederatedType | None = None,
) -> list[Reference]:
    """Return the dependencies of the desired member object's pods that the live one does not have, sorted.

    A listed follower counts only while there is no live object, and only if pods need its kind.
    """
    dependencies = dependencies_of(desired, type_)
    if live is not None:
        return sorted(dependencies - dependencies_of(live, type_))
    try:
        listed = listed_followers(federated["metadata"].get("annotations") or {})
    except FollowersError:
        listed = set()
    return sorted(dependencies | {ref for ref in listed if not ref.group and ref.kind in NEEDED_BY_PODS})


def is_awaited(namespace: Mapping[str, Any], cluster: str) -> bool:
    """Return True if a namespace, a federated object, is delivered to the cluster and is not known to be there."""
    is_leaving = bool(namespace["metadata"].get("deletionTimestamp"))
    if is_leaving or is_dry_run(namespace) or is_never_synced(namespace["spec"]["template"]):
        return False
    return cluster in effective_placement(namespace) and status_in_cluster(namespace, cluster) not in _THERE_ALREADY


def is_expected(follower: Mapping[str, Any], leader: Mapping[str, Any], cluster: str) -> bool:
    """Return True if a follower will be placed in the cluster; both arguments are federated objects."""
    if follower["metadata"].get("deletionTimestamp") or is_dry_run(follower):
        return False
    if status_in_cluster(follower, cluster) in _THERE_ALREADY:
        return False
    return cluster in effective_placement(follower) or (
        is_follower_scheduling_enabled(leader) and not is_following_disabled(follower)
    )


def status_in_cluster(federated: Mapping[str, Any], cluster: str) -> str:
    """Return the object's published status in the cluster, "" when there is none."""
    for entry in (federated.get("status") or {}).get("clusters") or ():
        if entry.get("cluster") == cluster:
            return str(entry.get("status") or "")
    return ""
