"""Followers that would leave running workloads, because a policy does not schedule followers any more. Pure.

That is no change of the workload or of the follower: the pods still refer to it and fail without it.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.followers.leaderplan import Find, FindType, is_follower_scheduling_enabled, plan_leader
from federation.planning.followers.references import Identity
from federation.planning.guard.ledger import Cause

_FOLLOWING = "Following"


def abandoned_clusters(
    leaving: frozenset[str],
    follower: Identity,
    leader: Mapping[str, Any],
    type_: FederatedType | None,
    find_type: FindType,
    find: Find,
) -> frozenset[str]:
    """Return the clusters that the follower would leave although the leader stays there and refers to it.

    `type_` is the leader's federated type.
    """
    metadata = leader["metadata"]
    if metadata.get("deletionTimestamp") or is_follower_scheduling_enabled(leader):
        return frozenset()
    annotations = {**(metadata.get("annotations") or {}), names.ENABLE_FOLLOWER_SCHEDULING: "true"}
    before = {**leader, "metadata": {**metadata, "annotations": annotations}}
    for reference, clusters in plan_leader(before, type_, find_type, find).followers.items():
        if (reference.group, reference.kind, reference.name) == (follower.group, follower.kind, follower.name):
            return leaving & clusters
    return frozenset()


def causes_of(follower: Mapping[str, Any]) -> tuple[Cause, ...]:
    """Return what it counts for: the followers of its kind in its namespace, then those in all namespaces."""
    kind, namespace = str(follower["spec"]["template"].get("kind")), str(follower["metadata"].get("namespace") or "")
    return Cause(_FOLLOWING, namespace, kind), Cause(_FOLLOWING, "", kind)


def is_following(cause: Cause) -> bool:
    """Return whether the cause is that of followers that leave their workloads."""
    return cause.kind == _FOLLOWING
