"""The evidence that sync has for a deletion in a member: the placement, or the deletion of the source. Pure.

What it is worth is decided in `planning/leftovers/evidence.py`.
"""

from collections.abc import Mapping
from typing import Any

from federation.delivery.rules.plan import ClusterState
from federation.planning.leftovers.evidence import Evidence, Word


def evidence_of(federated: Mapping[str, Any], cluster: ClusterState | None, *, is_recorded: bool) -> Evidence:
    """Return the evidence for the removal of an object that is deleted, or not placed in the cluster.

    `is_recorded` means that the federated object names the cluster as a possible holder. What an earlier membership
    recorded was removed when the cluster joined (`members/memberships.py`).
    """
    membership = cluster.membership if cluster is not None else None
    deleted = federated["metadata"].get("deletionTimestamp")
    if deleted:
        return Evidence(Word.SOURCE, membership, at=str(deleted))
    return Evidence(Word.PLACEMENT, membership, is_recorded=is_recorded)
