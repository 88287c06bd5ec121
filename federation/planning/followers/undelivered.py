"""Followers that a cluster of their workload does not have as the host has them. Pure.

Pods there run with the data of another object or an earlier version, or do not start. The workload goes on, because it
may run already, and its condition `FollowersDelivered` says so (docs/decisions/0089). States that end by themselves, as
a delivery under way or a cluster that does not answer, do not count. `controllers/follower` writes the condition.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.amounts import first_of
from federation.planning.followers.leaderplan import Find
from federation.planning.followers.references import Identity

_THERE_BEFORE = "AlreadyExists"
_REFUSED = frozenset(
    (
        _THERE_BEFORE,
        "ManagedLabelFalse",
        "FieldRetentionFailed",
        "ComputeResourceFailed",
        "ApplyOverridesFailed",
        "AdmissionRefused",
        "AdmissionFailed",
        "CreationFailed",
        "UpdateFailed",
        "KindNotServed",
        "EndUnknown",
        "CorrectionPaused",
    )
)
"""`status.clusters[].status` of clusters in which somebody has to do something."""
_FOLLOWERS_NAMED_MAX = 5
_CLUSTERS_NAMED_MAX = 5


def refusals(follower: Mapping[str, Any]) -> dict[str, str]:
    """Return the status of each cluster that does not take this version of a federated object."""
    entries = (follower.get("status") or {}).get("clusters") or ()
    return {entry["cluster"]: entry["status"] for entry in entries if entry.get("status") in _REFUSED}


def describe_undelivered(followers: Mapping[Identity, frozenset[str]], find: Find) -> str:
    """Return a sentence for each follower that clusters of its workload refuse, "" for none.

    `followers` are those of one workload, with the clusters that it takes them to.
    """
    found: list[str] = []
    for follower in sorted(followers):
        federated = find(follower)
        refused = refusals(federated) if federated is not None else {}
        clusters = {cluster: status for cluster, status in refused.items() if cluster in followers[follower]}
        found += (_sentence(follower, clusters, status) for status in sorted(set(clusters.values())))
    return first_of(found, _FOLLOWERS_NAMED_MAX, separator="; ")


def _sentence(follower: Identity, clusters: Mapping[str, str], status: str) -> str:
    listed = sorted(cluster for cluster, held in clusters.items() if held == status)
    where = first_of(listed, _CLUSTERS_NAMED_MAX)
    text = f"{follower.kind} {follower.name} is not the host's in {where} ({status})"
    target = f"{follower} -n {follower.namespace}"
    if status != _THERE_BEFORE:
        return f"{text}: see fedctl why {target}"
    return f"{text}: pods use the one that was there before; take it over with fedctl adopt {target}"
