"""The moves of a plan that the guard would hold, by cause. Pure.

The permits have asked the guard about each move as it was decided. A move of a large cause waits there for others of
its cause, so all are asked once more when none can come any more.

Decision: docs/decisions/0245-plans-ask-the-permits.md
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from federation.api import names
from federation.planning.federatedobject.placements import Name
from federation.planning.guard.ledger import Cause
from federation.planning.guard.record import held_move
from federation.scheduling.answers import Wait
from federation.scheduling.proposal import Proposal
from federation.scheduling.whatif.pipelinerun import PipelineRun
from federation.scheduling.whatif.planresult import PlannedHold
from federation.scheduling.whatif.state import CompiledState


def planned_holds(runs: Mapping[Name, PipelineRun | None], state: CompiledState, now: datetime) -> list[PlannedHold]:
    """Return what would be held. An object is held for its first cause that exceeds its limit."""
    later = now + timedelta(seconds=state.moves.options.quiet_s)
    decided = [run for run in runs.values() if run is not None and run.proposal is not None]
    for run in decided:
        if isinstance(run.answer, Wait) and not run.answer.reason:
            run.ask_permits(state, later)
    found: dict[tuple[Cause, str], list[Proposal]] = {}
    for key, proposal in _held(decided):
        found.setdefault(key, []).append(proposal)
    return [
        _to_hold(cause, volumes, proposals, state, later)
        for (cause, volumes), proposals in sorted(found.items(), key=lambda entry: (str(entry[0][0]), entry[0][1]))
    ]


def _held(decided: Iterable[PipelineRun]) -> Iterable[tuple[tuple[Cause, str], Proposal]]:
    """Yield the moves that are held, each with its cause and the volumes that it would leave behind."""
    for run in decided:
        if isinstance(run.answer, Wait) and run.answer.reason == names.REASON_HELD and run.permitted is not None:
            held, volumes = held_move({"metadata": {"annotations": run.answer.annotations}}), run.permitted.volumes
            if held is not None:
                yield (held.cause, volumes.volumes if volumes.waits else ""), run.permitted


def _to_hold(cause: Cause, volumes: str, proposals: list[Proposal], state: CompiledState, now: datetime) -> PlannedHold:
    size = state.count(cause, proposals[0].attempt, proposals[0].due.policy)
    return PlannedHold(
        str(cause),
        tuple(sorted(proposal.key for proposal in proposals)),
        volumes=volumes,
        counted=state.moves.counted(cause, now),
        size=size,
        allowed=state.moves.options.allowed(size),
    )
