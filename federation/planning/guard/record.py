"""The guard's annotations of a federated object: the move that is held, and the placement before the last move. Pure.

They are the guard's memory: after a restart it counts from them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from federation.api import names
from federation.planning.guard.ledger import Cause, parse_cause

_HELD = (names.HELD_PLACEMENT, names.HELD_OVERRIDES, names.HELD_FOLLOWING)


@dataclass(frozen=True, slots=True)
class HeldMove:
    """A move that is held: away from `clusters`, since `since` (RFC 3339), by the PlacementHold of this name."""

    hold: str
    cause: Cause
    clusters: frozenset[str]
    since: str


@dataclass(frozen=True, slots=True)
class PastMove:
    """The placement before the last move, when that was, its causes, and the PlacementHold that was approved for it."""

    at: str
    causes: tuple[Cause, ...]
    placement: Mapping[str, int | None]
    hold: str = ""


def held_moves(federated: Mapping[str, Any]) -> list[HeldMove]:
    """Return all held moves of a federated object: of its placement or its deletion, its overrides, as a follower."""
    found = (held_move(federated, annotation) for annotation in _HELD)
    return [held for held in found if held is not None]


def held_move(federated: Mapping[str, Any], annotation: str = names.HELD_PLACEMENT) -> HeldMove | None:
    """Return the held move in an annotation of a federated object, None without one or for a malformed record."""
    try:
        found = _read(federated, annotation)
        if found is None:
            return None
        clusters = frozenset(map(str, found["from"]))
        return HeldMove(str(found["hold"]), parse_cause(found["cause"]), clusters, str(found["since"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def past_move(federated: Mapping[str, Any]) -> PastMove | None:
    """Return the last move of a federated object, None without one or for a malformed record."""
    try:
        found = _read(federated, names.PREVIOUS_PLACEMENT)
        if found is None:
            return None
        placement = {str(name): None if count is None else int(count) for name, count in found["placement"].items()}
        causes = tuple(map(parse_cause, found["causes"]))
        return PastMove(str(found["at"]), causes, placement, str(found.get("hold") or ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def held_text(move: HeldMove) -> str:
    """Return the annotation's value."""
    fields = {"hold": move.hold, "cause": str(move.cause), "from": sorted(move.clusters), "since": move.since}
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()


def past_text(move: PastMove) -> str:
    """Return the annotation's value."""
    fields: dict[str, Any] = {"at": move.at, "causes": _texts(move.causes), "placement": dict(move.placement)}
    if move.hold:
        fields["hold"] = move.hold
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()


def _texts(causes: Iterable[Cause]) -> list[str]:
    return [str(cause) for cause in causes]


def _read(federated: Mapping[str, Any], annotation: str) -> dict[str, Any] | None:
    text = (federated["metadata"].get("annotations") or {}).get(annotation)
    return orjson.loads(text) if text else None
