"""The scheduler's part of a move with volumes: a workload stays where it is until its volumes are copied. Pure.

The permit begins a move, says what it waits for, and lets the workload go in the write that records the switch. It
comes after all permits that may hold the move, so nothing is stopped for a move that is held. The decision is made
again after each change of the record, because a move that is not wanted any more is undone.
"""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b

from msgspec import structs

from federation.api import names
from federation.apimachinery.annotationrecords import to_time
from federation.features.volumemoves.names import REASON_VOLUMES_MOVE, REASON_VOLUMES_STAY, VOLUME_MOVE
from federation.features.volumemoves.rules.moverecord import (
    BEFORE_SWITCH,
    RECORD,
    Phase,
    VolumeMove,
    read_wish,
)
from federation.features.volumemoves.rules.transitions import TABLE, Event, fail
from federation.planning.division.ordinals import STARTS, parse_record
from federation.planning.failover.eviction import Placement
from federation.planning.guard.losses import held_placement, lost_clusters
from federation.planning.guard.volumepermit import Word
from federation.scheduling.answers import Wait
from federation.scheduling.chain import Gate, Permit
from federation.scheduling.proposal import Proposal
from federation.scheduling.question import Question

_NOT_WANTED = "the workload is to run elsewhere now"
_PASSING = (Word.FAILOVER, Word.APPROVAL)
"""Words that let a workload leave a lost cluster without its volumes."""


class MoveGoesOn(Gate):
    """A move that is under way, or was undone."""

    name = "volume-move"
    about = frozenset((VOLUME_MOVE,))

    def ask(self, question: Question) -> None:
        """Keep no object from a decision."""
        del question

    def calls(self, question: Question) -> bool:
        """Return whether the object is decided although nothing about it changed."""
        move = RECORD.of(question.attempt.federated)
        return move is not None and move.phase in BEFORE_SWITCH | {Phase.UNDO, Phase.FAILED}


class VolumesCopied(Permit):
    """The volumes of a workload whose user wants them to move with it."""

    name = "volume-copies"
    about = frozenset((VOLUME_MOVE, names.MOVE_VOLUMES))

    def permit(self, proposal: Proposal) -> Proposal | Wait:
        """Let a workload without such volumes go; of another one, copy them first. A plan foresees the outcome."""
        annotations = proposal.attempt.federated["metadata"].get("annotations") or {}
        if proposal.world.copies is None:
            return proposal
        move, wish = RECORD.of(proposal.attempt.federated), str(annotations.get(names.MOVE_VOLUMES) or "")
        lost = lost_clusters(proposal.attempt.current(), proposal.decision.placements)
        if move is not None and move.source in proposal.stays and move.phase not in (Phase.SWITCHED, Phase.KEPT):
            return replace(proposal, is_partial=True)  # it is still to leave, once its cluster is back
        if move is not None and move.phase is Phase.UNDO:
            return _wait(proposal, move) if lost else proposal
        words = {name: word for name, word in proposal.volumes.goes.items() if name in lost}
        words = {name: word for name, word in words.items() if word is not Word.SCALING}
        if not (wish and words):
            return _unwanted(proposal, move, is_moving=bool(lost))
        return _copied_first(proposal, move, wish, words)


def _unwanted(proposal: Proposal, move: VolumeMove | None, *, is_moving: bool) -> Proposal | Wait:
    """Undo a move that is not wanted any more. What leaves without its volumes waits until that is done."""
    if move is None or move.phase in (Phase.SWITCHED, Phase.KEPT):
        return proposal
    if move.phase is Phase.FAILED and move.is_unclean:
        return proposal
    if move.phase is Phase.FAILED:
        kept = structs.replace(move, phase=Phase.KEPT, message="") if move.kept else None
        return proposal.recording(RECORD.entry(kept))
    undone = fail(move, _NOT_WANTED)
    return _wait(proposal, undone) if is_moving else proposal.recording(RECORD.entry(undone))


def _copied_first(proposal: Proposal, move: VolumeMove | None, wish: str, words: Mapping[str, Word]) -> Proposal | Wait:
    before, after = proposal.attempt.current(), proposal.decision.placements
    source, target, problem = pair_of(before, after, words)
    starts = starts_after(proposal, source, target) if not problem else None
    if not problem and starts is None:
        problem = f"the ordinals of its pods in {source} are not recorded"
    if not problem:
        try:
            read_wish(wish)
        except ValueError as error:
            problem = str(error)
    is_same = move is not None and (move.source, move.target) == (source, target) and not problem
    if move is not None and move.phase in BEFORE_SWITCH and not is_same:
        return _wait(proposal, fail(move, _NOT_WANTED))
    if problem:
        return _refuse(proposal, f"its volumes cannot move with it: {problem}")
    if move is not None and is_same and move.phase is Phase.READY:
        assert starts is not None
        switched = structs.replace(move, phase=TABLE[Phase.READY, Event.DONE], message="")
        return proposal.recording({**RECORD.entry(switched), **starts})
    if (cluster := proposal.snapshot.by_name.get(source)) is None or not cluster.is_ready:
        return _without_source(proposal, move, source, words[source])
    if move is not None and move.phase is Phase.SWITCHED:
        return _refuse(proposal, f"its last move, to {move.target}, is not complete")
    if move is not None and is_same and move.phase is Phase.FAILED and move.wish == wish:
        text = (
            f"the move to {target} was undone: {move.message}; a change of annotation {names.MOVE_VOLUMES} tries again"
        )
        return _refuse(proposal, text)
    if move is not None and move.phase is Phase.FAILED and move.is_unclean:
        return _wait(proposal, move)
    has_begun = move is not None and (move.phase is not Phase.PREPARE or move.wish == wish)
    if move is None or not has_begun or move.phase in (Phase.KEPT, Phase.FAILED):
        move = _begun(proposal, move, source, target, wish)
    return _wait(proposal, move)


def _without_source(proposal: Proposal, move: VolumeMove | None, source: str, word: Word) -> Proposal | Wait:
    """Undo what is under way from a lost cluster; its policy or an approval may start without data."""
    if move is not None and move.phase in BEFORE_SWITCH:
        return _wait(proposal, fail(move, f"{source} does not answer") if word in _PASSING else move)
    if word in _PASSING:
        return proposal
    text = f"{source} does not answer, so its volumes cannot be copied"
    return _refuse(proposal, f"{text}; to start without them, remove annotation {names.MOVE_VOLUMES}")


def pair_of(before: Placement, after: Placement, words: Mapping[str, Word]) -> tuple[str, str, str]:
    """Return the cluster that a workload leaves, the new one, and why these are not one of each."""
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    shrunk = sorted(name for name in words if name in after)
    if len(gone) == len(new) == 1 and not shrunk:
        return gone[0], new[0], ""
    leaves, enters = ", ".join((*gone, *shrunk)), ", ".join(new) or "no further cluster"
    return (
        "",
        "",
        f"it would leave {leaves} for {enters}, and volumes move from one cluster to one other cluster as a whole",
    )


def starts_after(proposal: Proposal, source: str, target: str) -> dict[str, str | None] | None:
    """Return the record of ordinals with which the pods in the target find the copies; None if it is not known."""
    annotations = proposal.attempt.federated["metadata"].get("annotations") or {}
    recorded = parse_record(annotations.get(names.ORDINAL_STARTS))
    start = recorded.pop(source, None)
    recorded.pop(target, None)
    if start is None:
        if recorded and proposal.decision.placements[target] is not None:
            return None
        start = 0
    if start in recorded.values():
        return None
    if not recorded and start == 0 and proposal.decision.placements[target] is None:
        return {}
    return {names.ORDINAL_STARTS: STARTS.text({**recorded, target: start})}


def _begun(proposal: Proposal, earlier: VolumeMove | None, source: str, target: str, wish: str) -> VolumeMove:
    since = to_time(proposal.now)
    identity = f"{proposal.key} {source} {target} {wish} {since}"
    name = f"move-{blake2b(identity.encode(), digest_size=5).hexdigest()}"
    kept = earlier.kept if earlier is not None else ()
    return VolumeMove(name, source, target, Phase.PREPARE, since, wish=wish, kept=kept)


def _wait(proposal: Proposal, move: VolumeMove) -> Wait:
    """Keep the workload where it is, with the record of its move."""
    doing = f"{move.phase}: {move.message}" if move.message else str(move.phase)
    text = f"its volumes move from {move.source} to {move.target} before it does ({doing})"
    return Wait(REASON_VOLUMES_MOVE, text, None, _kept(proposal), RECORD.entry(move))


def _refuse(proposal: Proposal, text: str) -> Wait:
    return Wait(REASON_VOLUMES_STAY, text, None, _kept(proposal))


def _kept(proposal: Proposal) -> dict[str, int | None]:
    wanted = proposal.due.unit.desired_replicas
    return held_placement(proposal.attempt.current(), proposal.decision.placements, wanted)
