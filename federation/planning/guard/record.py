"""The guard's annotations of a federated object: the move that is held, and the placement before the last move. Pure.

They are the guard's memory: after a restart it counts from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord
from federation.planning.guard.ledger import Cause, parse_cause


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


class _Held(msgspec.Struct, rename={"clusters": "from"}):
    hold: str
    cause: str
    clusters: frozenset[str]
    since: str


class _Past(msgspec.Struct, omit_defaults=True):
    at: str
    causes: list[str]
    placement: dict[str, int | None]
    hold: str = ""


_HELD = {
    name: AnnotationRecord(name, _Held)
    for name in (names.HELD_PLACEMENT, names.HELD_OVERRIDES, names.HELD_FOLLOWING, names.HELD_VOLUMES)
}
_PAST = AnnotationRecord(names.PREVIOUS_PLACEMENT, _Past)


def held_moves(federated: Mapping[str, Any]) -> list[HeldMove]:
    """Return all held moves of a federated object: of its placement or its deletion, its overrides, as a follower."""
    found = (held_move(federated, annotation) for annotation in _HELD)
    return [held for held in found if held is not None]


def held_move(federated: Mapping[str, Any], annotation: str = names.HELD_PLACEMENT) -> HeldMove | None:
    """Return the held move in an annotation of a federated object, None without one."""
    found = _HELD[annotation].of(federated)
    if found is None:
        return None
    try:
        return HeldMove(found.hold, parse_cause(found.cause), found.clusters, found.since)
    except ValueError:
        return None


def past_move(federated: Mapping[str, Any]) -> PastMove | None:
    """Return the last move of a federated object, None without one."""
    found = _PAST.of(federated)
    if found is None:
        return None
    try:
        return PastMove(found.at, tuple(map(parse_cause, found.causes)), found.placement, found.hold)
    except ValueError:
        return None


def held_text(move: HeldMove) -> str:
    """Return the annotation's value."""
    return _HELD[names.HELD_PLACEMENT].text(_Held(move.hold, str(move.cause), move.clusters, move.since))


def past_text(move: PastMove) -> str:
    """Return the annotation's value."""
    return _PAST.text(_Past(move.at, list(map(str, move.causes)), dict(move.placement), move.hold))
