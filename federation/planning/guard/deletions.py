"""Deletions that take data or other objects with them: which ones count, and for what. Pure.

They are asked for by users, and cannot be undone. They count by kind, and for namespaced kinds by namespace, so that
no tenant can hold up another one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.resources import PERSISTENT_VOLUME_CLAIMS
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import PastMove, held_move, past_move
from federation.planning.leftovers.strays import is_kept_kind

_DELETION = "Deletion"
CLAIM = PERSISTENT_VOLUME_CLAIMS.group_kind
"""API version and kind of the objects that a namespace takes with it."""


def cause_of(federated: Mapping[str, Any]) -> Cause:
    """Return what the deletion of a federated object counts for."""
    kind = str(federated["spec"]["template"].get("kind"))
    return Cause(_DELETION, str(federated["metadata"].get("namespace") or ""), kind)


def is_deletion(cause: Cause) -> bool:
    """Return whether the cause is that of deletions, not of moves."""
    return cause.kind == _DELETION


def remaining_of(federated: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the deletion of the object would count for, as the values of an index.

    The index has no objects whose deletion goes on. It has those whose deletion waits for a permit.
    """
    template = federated["spec"]["template"]
    group = str(template.get("apiVersion", "")).rpartition("/")[0]
    is_counted = is_kept_kind(group, str(template.get("kind"))) and allowed_deletion(federated) is None
    return (str(cause_of(federated)),) if is_counted else ()


def allowed_deletion(federated: Mapping[str, Any]) -> PastMove | None:
    """Return the record of a deletion that goes on, None while it may not."""
    past = past_move(federated)
    return past if past is not None and any(map(is_deletion, past.causes)) else None


def holds_among(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the holds of the claims whose deletion is held."""
    held = (held_move(claim) for claim in claims)
    return sorted({move.hold for move in held if move is not None and is_deletion(move.cause)})


def is_released(federated: Mapping[str, Any]) -> bool:
    """Return whether all member objects are released, so that nothing is deleted."""
    annotations = federated["metadata"].get("annotations") or {}
    return (annotations.get(names.INTERNAL_ORPHAN) or annotations.get(names.ORPHAN)) == "all"
