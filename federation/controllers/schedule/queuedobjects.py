"""Objects of JobQueues in the schedule controller: when one gives its admission back, and leaves its cluster.

The rules are in `scheduling/jobqueues.py`; `reconcile.py` calls this at the ends of its steps.
"""

from dataclasses import replace

from federation.api import names
from federation.controllers.schedule.decider import AttemptContext, Decider, write_with_claim
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.reporting import Reporter
from federation.controllers.schedule.unschedulable import UnschedulableRecord
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.answers import Leave, Wait
from federation.scheduling.attemptpatches import withdrawing_patch
from federation.scheduling.engine import Decision
from federation.scheduling.jobqueues import Admission, Phase, admission_of, to_refused
from federation.scheduling.queueinghints import NO_CLUSTER_CHANGE


class QueuedObjects:
    """Ends the admissions of objects; objects without a queue pass."""

    def __init__(self, objects: FederatedObjects, cache: InputCache, decider: Decider, reporter: Reporter) -> None:
        self._objects = objects
        self._cache = cache
        self._decider = decider
        self._reporter = reporter

    def refused(self, context: AttemptContext, failure: Wait, decision: Decision | None) -> Admission | None:
        """Return the record of an admitted object that found no place: it holds its quota no longer."""
        admission = admission_of(context.federated)
        if admission is None or admission.phase is not Phase.ADMITTED or context.attempt.current():
            return None
        filtered = decision.filtered if decision is not None else None
        return to_refused(admission, filtered, failure.message, self._reporter.now())

    async def leave(self, context: AttemptContext, answer: Leave) -> None:
        """Take an object out of its clusters; it waits in its JobQueue, and starts again when it is admitted."""
        self._decider.forget(context)
        patch = withdrawing_patch(context.attempt, answer)
        federated = await write_with_claim(self._objects, self._decider, context, context.federated, patch)
        self._cache.unplaced.remove(context.key)
        subject = replace(context.subject, federated=federated)
        failure = Wait(names.REASON_QUEUED, answer.message)
        await self._reporter.failed(subject, failure, has_placement=False)
        explanation = {**context.undecided(failure.reason, answer.message), "placements": {}}
        recorded_at = await self._reporter.journal(subject, failure.reason, explanation, context.started_s)
        record = UnschedulableRecord(f"{failure.reason}: {answer.message}", b"", recorded_at, "", NO_CLUSTER_CHANGE)
        self._cache.unschedulable.add(context.key, record)
