"""How a move with volumes goes on: a table of its steps, and what ends a step. Pure.

Before the switch everything can be undone: the workload is placed in its old cluster, and nothing runs in the new one.
The switch is one write of the scheduler. After it nothing is undone by itself, because the workload writes in the new
cluster.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import structs

from federation.features.volumemoves.rules.moverecord import BEFORE_SWITCH, OldVolumes, Phase, VolumeMove


class Event(StrEnum):
    """What ends a step."""

    DONE = "done"
    FAILED = "failed"
    """It took too long, cannot succeed, or is not wanted any more."""


TABLE: dict[tuple[Phase, Event], Phase] = {
    (Phase.PREPARE, Event.DONE): Phase.QUIESCE,
    (Phase.QUIESCE, Event.DONE): Phase.COPY,
    (Phase.COPY, Event.DONE): Phase.STOP,
    (Phase.STOP, Event.DONE): Phase.VERIFY,
    (Phase.VERIFY, Event.DONE): Phase.READY,
    (Phase.READY, Event.DONE): Phase.SWITCHED,
    (Phase.SWITCHED, Event.DONE): Phase.KEPT,
    (Phase.UNDO, Event.DONE): Phase.FAILED,
    **dict.fromkeys(((phase, Event.FAILED) for phase in BEFORE_SWITCH), Phase.UNDO),
}
"""A pair that is absent does not happen: what has switched does not fail, and what has ended does not go on."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one look at a step: done, to be repeated because of `message`, or impossible."""

    is_done: bool = False
    message: str = ""
    is_impossible: bool = False
    is_unclean: bool = False
    way: str = ""
    claims: dict[str, str] | None = field(default=None)


DONE = Outcome(is_done=True)


def advance(move: VolumeMove, outcome: Outcome, now: datetime, *, timeout_s: float) -> VolumeMove:
    """Return the move after a look at its step."""
    if outcome.is_done:
        return _done(move, outcome, now)
    if outcome.is_impossible:
        return fail(move, outcome.message)
    is_stopped = move.phase in BEFORE_SWITCH - {Phase.PREPARE}
    if is_stopped and now - move.since > timedelta(seconds=timeout_s):
        return fail(move, f"{move.phase} was not done after {timeout_s:g} s: {outcome.message or move.message}")
    return structs.replace(move, message=move.message if move.phase is Phase.UNDO else outcome.message)


def _done(move: VolumeMove, outcome: Outcome, now: datetime) -> VolumeMove:
    after = TABLE[move.phase, Event.DONE]
    if move.phase is Phase.PREPARE:
        claims = move.claims if outcome.claims is None else outcome.claims
        return structs.replace(move, phase=after, since=now, way=outcome.way, claims=claims, message="")
    if after is Phase.KEPT:
        kept = [each for each in move.kept if each.cluster not in (move.source, move.target)]
        left = (OldVolumes(move.source, move.claims),) if move.claims else ()
        return structs.replace(move, phase=after, kept=(*kept, *left), message="")
    if after is Phase.FAILED:
        return structs.replace(move, phase=after, is_unclean=outcome.is_unclean)
    return structs.replace(move, phase=after, message="")


def cleaned(move: VolumeMove) -> VolumeMove:
    """Return the undone move of which nothing is left."""
    return structs.replace(move, is_unclean=False)


def fail(move: VolumeMove, message: str) -> VolumeMove:
    """Return the move that is undone from now on."""
    return structs.replace(move, phase=TABLE[move.phase, Event.FAILED], message=message)
