"""The steps that schedule one federated object (docs/reference/scheduling.md).

Start an attempt, assess whether a decision is due, decide (`decider.py`), write the patch, report (`reporting.py`), and
requeue what is incomplete (`requeueing.py`). When no decision is possible — no policy, no profile, a failing plugin, no
feasible cluster — the last placement stays, and the object is still passed on to the next controller of its pipeline.
Which part of a decision is written now, and what becomes of the rest, the permits of the chain say
(`scheduling/permits`).
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from prometheus_client import Counter

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apimachinery.resources import Object
from federation.controllers.schedule.decider import AttemptContext, Decided, Decider, write_with_claim
from federation.controllers.schedule.guard import Guard
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.names import EVENT_MOVE_UNDONE
from federation.controllers.schedule.queuedobjects import QueuedObjects
from federation.controllers.schedule.reporting import WRITER, Reporter
from federation.controllers.schedule.requeueing import Requeueing
from federation.controllers.schedule.unschedulable import UnschedulableRecord
from federation.planning.failover.completion import to_annotation
from federation.planning.guard.earliervolumes import note_of
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.federatedobjects import FederatedObjects
from federation.scheduling.answers import Assessment, Deferred, Due, Leave, Skipped, Wait
from federation.scheduling.attemptpatches import placement_patch, restoring_patch, unchanged_patch
from federation.scheduling.engine import Decision, Outcome, Placements
from federation.scheduling.explain import digest_of_failure
from federation.scheduling.healthgaps import describe, plan_marks
from federation.scheduling.pendingreplicas import has_unplaced_replicas
from federation.scheduling.proposal import Proposal
from federation.scheduling.queueinghints import (
    ANY_CLUSTER_CHANGE,
    AT_GATE,
    NO_CLUSTER_CHANGE,
    QueueingHint,
    return_hint_for,
)
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import IGNORED_PLUGINS

_evicted = Counter(
    "federation_controllers_evicted_replicas_total",
    "Replicas that left lost and drained clusters, and completed moves",
)


class Reconciler:
    """Schedules one federated object per call."""

    def __init__(
        self,
        objects: FederatedObjects,
        cache: InputCache,
        decider: Decider,
        guard: Guard,
        after_move: Callable[[], None],
        requeueing: Requeueing,
        reporter: Reporter,
    ) -> None:
        self._objects = objects
        self._cache = cache
        self._decider = decider
        self._guard = guard
        self._after_move = after_move
        self._requeueing = requeueing
        self._reporter = reporter
        self._queued = QueuedObjects(objects, cache, decider, reporter)

    async def reconcile(self, key: Key) -> Result:
        """Schedule the object if it is due; write at most one patch, and one of its status after a failure."""
        since = self._requeueing.start(key)
        result = await self._reconcile(key)
        return self._requeueing.at_toleration_end(key, self._decider.tolerated_until(key), result, since)

    async def _reconcile(self, key: Key) -> Result:
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            self._cache.forget(key)
            self._withdraw(key)
            return DONE
        context = self._decider.start(key, federated)
        if context is None:
            self._objects.defer(key, writer=WRITER)
            return DONE
        self._reporter.invalid_migration(context.subject, context.attempt.problem)
        snapshot = self._cache.scoped.of(federated)
        is_plugin_back = self._requeueing.is_plugin_back(context)
        returns, completion = self._decider.returns(context)
        assessment = self._decider.assess(
            context, snapshot, is_plugin_back=is_plugin_back, homes=returns.homes, completes=completion.is_due
        )
        if not isinstance(assessment, Due):
            self._withdraw(key)
        undone = self._guard.undo(context, snapshot)
        if undone is not None:
            await self._restore(context, assessment, undone)
            return DONE
        match assessment:
            case Due() if self._decider.is_retry_pointless(context, assessment):
                await self._write_unchanged(context, Wait("", ""))
                return self._requeueing.at_hinted_time(key)
            case Due():
                with self._requeueing.retry(key):
                    return await self._schedule(context, assessment, snapshot)
            case Wait(reason=""):
                self._cache.unschedulable.mark_retry((context.key,))
                return Result(assessment.after_s)
            case Wait():
                await self._fail(context, assessment, hint=AT_GATE)
            case Leave():
                await self._queued.leave(context, assessment)
            case Deferred():
                return _earlier(_earlier(await self.defer(context, assessment), returns.wait_s), completion.wait_s)
            case Skipped():
                self._cache.unschedulable.remove(key)
                self._cache.unplaced.remove(key)
                await self._reporter.recovered(context.subject, await self._write_unchanged(context, assessment))
        return DONE

    async def _schedule(self, context: AttemptContext, due: Due, snapshot: Snapshot) -> Result:
        """Decide, ask the permits, and write or report the decision."""
        decided = await self._decider.decide(context, due, snapshot)
        is_allowed = self._cache.annotation_policy.allows(context.key.namespace)
        self._reporter.ignored_annotations(context.subject, due.ignored_annotations, is_allowed=is_allowed)
        proposal, answer = self._decider.propose(context, due, decided.decision, snapshot)
        match answer:
            case Leave():
                await self._queued.leave(context, answer)
                self._confirm(context.key)
                return DONE
            case Wait(reason=""):
                self._cache.unschedulable.mark_retry((context.key,))
                self._after_move()
                return Result(answer.after_s)
            case Wait(placements=None):
                return await self._await(context, due, decided.decision, answer, snapshot)
            case Wait():
                return await self._keep(context, proposal, answer)
        if decided.decision.is_success:
            return await self.place(context, decided, proposal)
        return await self._fail_without_place(context, due, decided, snapshot)

    async def _fail_without_place(
        self, context: AttemptContext, due: Due, decided: Decided, snapshot: Snapshot
    ) -> Result:
        """Report a decision that found no place, and what may end that."""
        decision = decided.decision
        if decision.outcome is Outcome.PLUGIN_FAILED:
            await self._fail_for_plugin(context, due, decided)
            return self._requeueing.after_plugin_failure(context, decided)
        hint = self._decider.hint_for(decision, due)
        self._cache.quotas.wait(context.key.namespace, context.key, is_short=bool(decision.exceeded))
        failure = Wait(decision.outcome, decision.reason)
        inputs_hash = self._decider.inputs_hash(context, due)
        await self._fail(context, failure, decided.explanation, inputs_hash=inputs_hash, hint=hint, decision=decision)
        if self._decider.has_other_relations(context, due, snapshot):
            return self._requeueing.at_once(context.key)
        return self._requeueing.after_unschedulable(context.key, hint, snapshot)

    async def _await(
        self, context: AttemptContext, due: Due, decision: Decision, answer: Wait, snapshot: Snapshot
    ) -> Result:
        """Report why nothing of a decision is written; a cluster that it lacks, or time, ends that."""
        hint = self._decider.hint_for(decision, due)
        if answer.after_s is not None:
            hint = replace(hint, at=self._reporter.now() + timedelta(seconds=answer.after_s))
        await self._fail(context, answer, hint=hint)
        return self._requeueing.after_unschedulable(context.key, hint, snapshot)

    async def _keep(self, context: AttemptContext, proposal: Proposal, answer: Wait) -> Result:
        """Write a decision without the move that waits, and report why it waits.

        An approval, the end of its time, or a change of its inputs requeues it.
        """
        due, present = proposal.due, context.federated["metadata"].get("annotations") or {}
        stated = conditions.find((context.federated.get("status") or {}).get("conditions"), names.SCHEDULED) or {}
        is_stated = (stated.get("reason"), stated.get("message")) == (answer.reason, answer.message)
        is_news = not is_stated or bool(answer.annotations.items() - present.items())
        patch, _ = placement_patch(
            context.attempt,
            due,
            answer.placements or {},
            proposal.decision.reason,
            guarded=answer.annotations,
            is_held=True,
        )
        await self._write(context, patch)
        self._cache.unschedulable.remove(context.key)
        self._reporter.stays(context.subject, answer.annotations)
        if is_news:
            await self._reporter.failed(context.subject, answer, has_placement=bool(context.attempt.current()))
            explanation = context.undecided(answer.reason, answer.message)
            await self._reporter.journal(context.subject, answer.reason, explanation, context.started_s)
        self._confirm(context.key)
        return Result(answer.after_s)

    async def place(self, context: AttemptContext, decided: Decided, proposal: Proposal) -> Result:
        """Write a decision that all permits let go on."""
        decision, due, snapshot = proposal.decision, proposal.due, proposal.snapshot
        unavailable = self._requeueing.unavailable_among([ignored.plugin for ignored in decision.ignored])
        await self._place(context, decided, unavailable, proposal)
        self._confirm(context.key)
        needs_hint = proposal.needs_room or has_unplaced_replicas(decision)
        hint = self._decider.hint_for(decision, due) if needs_hint else return_hint_for(decision)
        result = self._requeueing.after_placement(context, hint, unavailable, snapshot)
        if needs_hint and self._decider.has_other_relations(context, due, snapshot):
            return self._requeueing.at_once(context.key)
        return _earlier(result, proposal.requeue_after_s)

    async def _restore(self, context: AttemptContext, assessment: Assessment, placements: Placements) -> None:
        """Write the placement before the last move, as the user asked."""
        federated = await self._write(context, restoring_patch(context.attempt, assessment, placements))
        self._cache.unschedulable.remove(context.key)
        self._cache.unplaced.remove(context.key)
        await self._reporter.recovered(context.subject, federated)
        explanation = context.undecided(EVENT_MOVE_UNDONE, "the last move was undone, as asked")
        self._reporter.undone(context.subject, placements)
        await self._reporter.journal(
            context.subject, EVENT_MOVE_UNDONE, {**explanation, "placements": placements}, context.started_s
        )

    async def _place(
        self, context: AttemptContext, decided: Decided, unavailable: list[str], proposal: Proposal
    ) -> None:
        """Write a successful decision and report it."""
        decision, due = proposal.decision, proposal.due
        marks = plan_marks(context.federated, decision, context.attempt.current(), completes=due.quiet.completes)
        if marks:
            decision = replace(decision, reason=f"{decision.reason}; {describe(marks, decision)}")
        if note := note_of(context.attempt.volumes, decision.placements.keys(), decision.snapshot.by_name.keys()):
            decision = replace(decision, reason=f"{decision.reason}; {note}")
        patch, is_moved = placement_patch(
            context.attempt,
            due,
            decision.placements,
            decision.reason,
            without=unavailable,
            guarded={**proposal.annotations, names.PLACED_WITHOUT: to_annotation(marks)},
            quotas=decision.quotas,
            # Members must have their limits before the pods that the limits are for.
            awaited=names.SPREAD_CONTROLLER if due.is_spread else "",
            is_partial=proposal.is_partial,
        )
        # Assumed before the write: decisions that are made while it is under way must count these replicas.
        self._decider.assume(context, decision)
        try:
            federated = await self._write(context, patch)
        except BaseException:
            self._decider.forget(context)
            raise
        self._cache.unschedulable.remove(context.key)
        if exceeded := (decision.exceeded and decision.shortage) or self._decider.withheld(context):
            await self._reporter.limited(context.subject, federated, exceeded)
        else:
            await self._reporter.recovered(context.subject, federated)
        self._reporter.stays(context.subject, proposal.annotations)
        self._reporter.warn(context.subject, proposal.warnings)
        self._reporter.placed(context.subject, federated, decision, context.attempt.ref, is_moved=is_moved)
        explanation = decided.explanation | {"isChanged": is_moved, "reason": decision.reason}
        if proposal.stays:
            stays = {name: stay.message for name, stay in proposal.stays.items()}
            explanation |= {"placements": decision.placements, "stays": stays}
        is_retry = (
            due.quiet.only_adds
            or due.quiet.goes_back
            or proposal.is_partial
            or (bool(unavailable) and due.comparison.changed == (IGNORED_PLUGINS,))
        )
        if is_retry and not is_moved:
            await self._reporter.tried_again(context.subject, decision.outcome, explanation, context.started_s)
        else:
            await self._reporter.journal(context.subject, decision.outcome, explanation, context.started_s)

    async def defer(self, context: AttemptContext, assessment: Deferred) -> Result:
        """Keep the placement: nothing changed, or only what the policy does not follow."""
        self._requeueing.remember_unplaced(context)
        federated = await self._write_unchanged(context, assessment)
        namespace = context.key.namespace
        if withheld := self._decider.withheld(context):
            await self._reporter.limited(context.subject, federated, withheld)
        elif (
            namespace in self._cache.quotas
            and self._reporter.is_limited(federated)
            and context.attempt.has_unplaced_replicas()
        ):
            self._cache.quotas.wait(namespace, context.key, is_short=True)  # also after a restart
        else:
            await self._reporter.recovered(context.subject, federated)
        reasons, written = assessment.comparison.deferred_reasons, context.federated["metadata"].get("annotations")
        if reasons and (written or {}).get(names.SCHEDULING_DEFERRED_REASONS) != reasons:
            explanation = context.undecided("Deferred", reasons, because=assessment.comparison.changed)
            await self._reporter.journal(context.subject, "Deferred", explanation, context.started_s)
        return self._requeueing.after_deferral(context)

    async def _fail_for_plugin(self, context: AttemptContext, due: Due, decided: Decided) -> None:
        """Report a decision that a failed plugin prevented."""
        decision, explanation = decided.decision, decided.explanation
        if due.quiet.only_adds:
            self._cache.unplaced.mark_retry((context.key,))  # The matching change has not led to a decision.
            await self._reporter.tried_again(context.subject, decision.outcome, explanation, context.started_s)
            return
        hint = NO_CLUSTER_CHANGE if decided.has_called_plugins else ANY_CLUSTER_CHANGE
        await self._fail(context, Wait(decision.outcome, decision.reason), explanation, hint=hint)

    async def _fail(
        self,
        context: AttemptContext,
        failure: Wait,
        explanation: dict[str, Any] | None = None,
        *,
        inputs_hash: str = "",
        hint: QueueingHint = NO_CLUSTER_CHANGE,
        decision: Decision | None = None,
    ) -> None:
        """Keep the placement and report the failure once; the journal counts repetitions."""
        subject, unschedulable = context.subject, self._cache.unschedulable
        await self._write(
            context, unchanged_patch(context.attempt, failure, self._queued.refused(context, failure, decision))
        )
        message = f"{failure.reason}: {failure.message}"
        reported = explanation or context.undecided(failure.reason, failure.message)
        digest, last = digest_of_failure(reported), unschedulable.get(context.key)
        if last is not None and last.digest == digest:
            recorded_at = last.recorded_at
            if explanation is not None:
                await self._reporter.repeated(subject, recorded_at)
        else:
            if last is None or last.message != message:
                has_placement = bool(context.attempt.current())
                await self._reporter.failed(subject, failure, has_placement=has_placement)
            recorded_at = await self._reporter.journal(subject, failure.reason, reported, context.started_s)
        unschedulable.add(context.key, UnschedulableRecord(message, digest, recorded_at, inputs_hash, hint))

    def _withdraw(self, key: Key) -> None:
        self._cache.withdraw(key)
        self._after_move()

    def _confirm(self, key: Key) -> None:
        """Count the object's moves as written, and give the next ones their turn."""
        _evicted.inc(self._cache.evictions.pace.confirm(key, self._reporter.now().timestamp()))
        self._after_move()

    async def _write_unchanged(self, context: AttemptContext, assessment: Assessment) -> Object:
        return await self._write(context, unchanged_patch(context.attempt, assessment))

    async def _write(self, context: AttemptContext, patch: Object | None) -> Object:
        """Send the patch, if any; return the resulting object."""
        base, joint = context.federated, ""
        patch = self._decider.dated(patch)
        if context.unwritten is not None:
            base, joint = context.unwritten
            patch = create_merge_patch(base, apply_merge_patch(context.federated, patch or {}))
        return await write_with_claim(self._objects, self._decider, context, base, patch, joint)


def _earlier(result: Result, after_s: float | None) -> Result:
    times = [time_s for time_s in (result.requeue_after_s, after_s) if time_s is not None]
    return Result(min(times)) if times else result
