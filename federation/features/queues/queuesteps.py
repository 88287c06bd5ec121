"""The steps of queues in a decision: an object waits until it is admitted, and then goes where its admission says."""

from federation.api import names
from federation.scheduling.answers import Leave, Wait
from federation.scheduling.chain import Gate, Shape
from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.jobqueues import Phase, admission_of, waiting_message, within_admission
from federation.scheduling.question import Question


class Admitted(Gate):
    """An object that waits in its JobQueue."""

    name = "queue"

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


STEPS = (Admitted(), WithinAdmission())
