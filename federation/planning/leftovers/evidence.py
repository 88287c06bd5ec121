"""The evidence for a deletion in a member: one rule that every deletion passes. Pure.

A deletion needs a word about this very copy that is newer than the user's last word about it. A word is the decision
that took an object away from the cluster, the deletion of its source, a record, or an answer of an administrator that
names the cluster or the copy. A word counts if it was given while the cluster was a member, in the membership that it
has now. What was decided before the join, what nobody decided, and an unknown cluster are no evidence.

`delivery/members/operations.py` sends no deletion to which there is an objection.
Decision: docs/decisions/0207-a-deletion-needs-evidence.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, assert_never

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import parse_rfc3339

_CLOCKS_DIFFER = timedelta(minutes=1)
"""How far the clocks of members and of the host may be apart."""


class Word(StrEnum):
    """What asks for a deletion."""

    PLACEMENT = "placement"
    """A decision took the object away from the cluster, and the federated object recorded that."""
    ELSEWHERE = "elsewhere"
    """A sweep found a copy of an object that is placed in other clusters."""
    SOURCE = "source"
    """A user deleted the source."""
    RECORD = "record"
    """A Leftover that asks for it."""
    ANSWER = "answer"
    """An administrator named the cluster, or the copy: `cascading-delete`, `strays: remove`, the action of a report."""


@dataclass(frozen=True, slots=True)
class Membership:
    """One membership of a cluster: a FederatedCluster from its join until it is deleted."""

    created: str = ""
    """When its FederatedCluster was created, by the clock of the API server, which also dates deletions."""
    joined: str = ""
    """When the cluster had joined, by the clock of the control plane, which also dates decisions; "" before."""
    cluster_uid: str = ""
    """The uid of the member's namespace kube-system, "" when it is not known."""


NO_MEMBERSHIP = Membership()
"""A membership of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about one deletion. Times are those of the API, "" when they are not known."""

    word: Word
    membership: Membership | None
    """The membership of the cluster, None for a cluster that is not a member."""
    at: str = ""
    """When the word was given."""
    created: str = ""
    """When a copy that a sweep found was created, by the clock of the member; "" for one that was delivered."""
    object_created: str = ""
    """When the federated object of its name was created, "" without one."""
    cluster_uid: str = ""
    """The uid of the cluster that the word is about, "" when it is not known."""
    is_recorded: bool = False
    """Whether the federated object recorded in this membership that the cluster may hold its object."""
    is_kept: bool = False
    """Whether a record says that a user kept this copy, and no later word is about it."""


def membership_of(cluster: Mapping[str, Any]) -> Membership:
    """Return the membership of a FederatedCluster."""
    status = cluster.get("status") or {}
    joined = conditions.find(status.get("conditions"), names.CLUSTER_JOINED) or {}
    return Membership(
        created=str(cluster["metadata"].get("creationTimestamp") or ""),
        joined=str(joined.get("lastTransitionTime") or "") if joined.get("status") == "True" else "",
        cluster_uid=str(status.get("clusterUid") or ""),
    )


def objection(evidence: Evidence) -> str:
    """Return why the copy must not be deleted, "" if there is evidence for it."""
    membership = evidence.membership
    if membership is None:
        return "the cluster is not a member"
    if evidence.is_kept:
        return "a user kept it when the cluster left the federation"
    if evidence.created and not _is_in_order(membership.created, evidence.created):
        return "it was in the cluster before the cluster joined"
    if _is_older(evidence.created, evidence.object_created):
        return "it is older than the object of its name, so a word about that one is not about it"
    match evidence.word:
        case Word.PLACEMENT:
            return "" if evidence.is_recorded else "no decision since the cluster joined has taken it away"
        case Word.ELSEWHERE:
            # What was decided in the second of the join may follow from the cluster's absence.
            is_joined = _is_in_order(membership.created, evidence.at) and evidence.at != membership.joined
            is_newer = is_joined and _is_in_order(membership.joined, evidence.at)
            return "" if is_newer else "its object was placed in other clusters before the cluster joined"
        case Word.SOURCE:
            is_newer = _is_in_order(membership.created, evidence.at)
            return "" if is_newer else "its source was deleted before the cluster joined"
        case Word.RECORD:
            if evidence.cluster_uid and membership.cluster_uid and evidence.cluster_uid != membership.cluster_uid:
                return "the record is about another cluster"
            is_newer = _is_in_order(membership.created, evidence.at)
            return "" if is_newer else "its deletion was asked for before the cluster joined"
        case Word.ANSWER:
            return ""
        case other:
            assert_never(other)


def _is_older(created: str, than: str) -> bool:
    """Return whether a copy is of an earlier object of its name, which may have left it to a user."""
    copy, obj = parse_rfc3339(created), parse_rfc3339(than)
    return copy is not None and obj is not None and obj - copy > _CLOCKS_DIFFER


def _is_in_order(first: str, second: str) -> bool:
    """Return whether both times are known and the first is not after the second."""
    earlier, later = parse_rfc3339(first), parse_rfc3339(second)
    return earlier is not None and later is not None and earlier <= later
