"""The clusters whose copies are not as decided, because something holds the delivery back. Pure.

The delivery writes it into `status.clusters`. A cluster that fails, or does not answer, is not held back.

Decision: docs/decisions/0282-a-plan-begins-with-what-members-have.md
"""

from collections.abc import Mapping
from typing import Any

_HELD = frozenset(("DeliverySuspended", "QuotaExceeded"))
"""Statuses of clusters in which a suspension or a quota holds a write or a removal."""
UPDATE_WAITS = "WaitingForUpdate"
"""The status of a cluster that keeps its content: a freeze holds its update, or others come first."""
_OTHERS_FIRST = "WaitingForReplicas"
_STATUSES = _HELD | {UPDATE_WAITS, _OTHERS_FIRST}


def held_back(federated: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the entries of the clusters that are held back, and of those that wait for them, by cluster."""
    entries = (federated.get("status") or {}).get("clusters") or ()
    return {str(entry["cluster"]): entry for entry in entries if entry.get("status") in _STATUSES}


def is_held(entry: Mapping[str, Any]) -> bool:
    """Return whether a suspension or a quota holds this cluster itself."""
    return entry.get("status") in _HELD


def is_absent(entry: Mapping[str, Any]) -> bool:
    """Return whether the cluster has no object; only for kinds whose objects have a generation."""
    return not entry.get("lastObservedGeneration")
