"""Undo the last move of an object, within a window: whether it is possible, and the placement afterwards. Pure.

A request names the move by its time, so it can neither be repeated nor made for a move to come.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from federation.api import names
from federation.apimachinery.clock import from_rfc3339
from federation.planning.guard.losses import held_placement
from federation.planning.guard.record import PastMove, past_move

UNDO_WINDOW = timedelta(hours=1)


def requested_undo(federated: Mapping[str, Any]) -> PastMove | None:
    """Return the move that the user asks to undo, None when nothing is asked or the last move is another one."""
    asked = (federated["metadata"].get("annotations") or {}).get(names.UNDO)
    past = past_move(federated) if asked else None
    return past if past is not None and past.at == asked else None


def undo_problem(past: PastMove, existing: Collection[str], now: datetime) -> str:
    """Return why the move cannot be undone, "" if it can; `existing` are the joined clusters."""
    try:
        at = from_rfc3339(past.at)
    except ValueError:
        return "the time of the move is malformed"
    if now - at > UNDO_WINDOW:
        return f"the move of {past.at} is more than {UNDO_WINDOW.total_seconds() / 3600:g} h ago"
    if gone := sorted(past.placement.keys() - set(existing)):
        return f"clusters [{','.join(gone)}] of the earlier placement are gone or leaving"
    return ""


def undone_placement(past: PastMove, current: Mapping[str, int | None], wanted: int | None) -> dict[str, int | None]:
    """Return the earlier placement; an object that was scaled since keeps its present number of replicas."""
    if None in past.placement.values() or None in current.values():
        return dict(past.placement)
    return held_placement(past.placement, current, wanted)
