"""The steps of queues in a decision: an object waits until it is admitted, and then goes where its admission says.

One that loses its cluster gives its admission back.
"""

from federation.api import names
from federation.scheduling.answers import Leave, Wait
from federation.scheduling.chain import Gate, Permit, Shape
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.jobqueues import (
    ADMISSION,
    Phase,
    QueueIndex,
    admission_of,
    is_lost,
    to_lost,
    waiting_message,
    within_admission,
)
from federation.scheduling.proposal import Proposal
from federation.scheduling.question import Question


class Admitted(Gate):
    """An object that waits in its JobQueue."""

    name = "queue"
    reads = (QueueIndex,)

    def ask(self, question: Question) -> Wait | Leave | None:
        """Let an object without a queue, or with an admission, go on; one that lost its admission leaves."""
        if not question.queue:
            return None
        admission, is_placed = admission_of(question.attempt.federated), bool(question.attempt.current())
        message = waiting_message(question.queue, admission)
        if message and is_placed and admission is not None and admission.phase in (Phase.EVICTED, Phase.LOST):
            return Leave(message)
        return Wait(names.REASON_QUEUED, message) if message and not is_placed else None

    def calls(self, question: Question) -> bool:
        """Return whether an admitted object has no place yet."""
        return bool(question.queue) and not question.attempt.current()


class WithinAdmission(Shape):
    """The clusters and nodes of the admission."""

    name = "admission"

    def shape(self, unit: SchedulingUnit, question: Question) -> SchedulingUnit:
        """Return the unit within its admission."""
        return within_admission(unit, question.attempt.federated) if question.queue else unit


class KeepsItsPlace(Permit):
    """An admitted object that has to leave every cluster that it is in."""

    name = "queue-place"
    asks_of_failures = True

    def permit(self, proposal: Proposal) -> Proposal | Leave:
        """Let it leave, and wait in its JobQueue for another place."""
        federated, unit, known = proposal.attempt.federated, proposal.due.unit, proposal.snapshot.by_name
        admission = admission_of(federated)
        if admission is None or not is_lost(federated, unit, proposal.decision.placements, known):
            return proposal
        lost = to_lost(admission, proposal.attempt.current(), proposal.now)
        return Leave(lost.because, ADMISSION.entry(lost))


STEPS = (Admitted(), WithinAdmission(), KeepsItsPlace())
