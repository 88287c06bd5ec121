"""Placements that are written together with the federated object: with its creation, or with a change of its source.

The federate controller offers an object before it writes it. What can be decided at once then needs no second write,
and no second round of events. What fails, waits, moves replicas away or calls remote plugins is left to the reconcile
of the object that is written without: only an object that exists can have a condition with the reason.

Decision: docs/decisions/0071-one-write-for-a-first-placement.md
"""

from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object
from federation.controllers.schedule.decider import AttemptContext, Decider, Unwritten
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.reconcile import Reconciler
from federation.controllers.schedule.requeueing import Requeueing
from federation.planning.failover.completion import missing_clusters
from federation.planning.failover.evictionrecord import eviction_record
from federation.planning.guard.losses import lost_clusters
from federation.planning.guard.record import held_move
from federation.planning.guard.undo import requested_undo
from federation.runtime.controller import Key, Result
from federation.scheduling.answers import Deferred, Due
from federation.scheduling.jobqueues import admission_of


class JointWrites:
    """Decides about objects that are about to be written."""

    def __init__(
        self,
        cache: InputCache,
        decider: Decider,
        requeueing: Requeueing,
        reconciler: Reconciler,
    ) -> None:
        self._cache = cache
        self._decider = decider
        self._requeueing = requeueing
        self._reconciler = reconciler

    async def create_placed(self, key: Key, draft: Object) -> Result | None:
        """Create a federated object with its first placement; return None if nothing was created."""
        since = self._requeueing.start(key)
        context = self._decider.start(key, draft)
        if context is None or context.attempt.problem or context.attempt.volumes.matter:
            return None
        result = await self._place(context, draft)
        if result is None:
            return None
        return self._requeueing.at_toleration_end(key, self._decider.tolerated_until(key), result, since)

    async def update_placed(self, key: Key, federated: Object, patch: Object, *, writer: str) -> Result | None:
        """Patch an object and its placement in the name of `writer`, too; return None if nothing was written.

        The caller has claimed the key, so that no reconcile of it runs meanwhile.
        """
        since = self._requeueing.start(key)
        changed = apply_merge_patch(federated, patch)
        if "spec" in patch:
            generation = (federated["metadata"].get("generation") or 0) + 1
            changed = {**changed, "metadata": {**changed["metadata"], "generation": generation}}
        context = self._decider.start(key, changed, Unwritten(federated, writer))
        if context is None or context.attempt.problem or self._needs_reconcile(context):
            return None
        result = await self._place(context, changed)
        if result is None:
            return None
        return self._requeueing.at_toleration_end(key, self._decider.tolerated_until(key), result, since)

    def _needs_reconcile(self, context: AttemptContext) -> bool:
        """Return whether more goes on with the object than that its source changed."""
        federated, key = context.federated, context.key
        return (
            bool(federated["metadata"].get("deletionTimestamp"))
            or key in self._cache.unschedulable
            or key in self._cache.unplaced
            or admission_of(federated) is not None
            or held_move(federated) is not None
            or requested_undo(federated) is not None
            or bool(eviction_record(federated).left)
            or bool(missing_clusters(federated))
            or bool(context.attempt.ignored_plugins())
            or context.attempt.volumes.matter
        )

    async def _place(self, context: AttemptContext, federated: Object) -> Result | None:
        snapshot = self._cache.scoped.of(federated)
        due = self._decider.assess(context, snapshot, is_plugin_back=False)
        if isinstance(due, Deferred) and context.unwritten is not None:
            return await self._reconciler.defer(context, due)
        if not isinstance(due, Due) or due.ignored_annotations or not self._decider.is_local(due):
            return None
        decided = await self._decider.decide(context, due, snapshot)
        decision = decided.decision
        if not decision.is_success or decision.exceeded:
            return None
        if lost_clusters(context.attempt.current(), decision.placements):
            return None
        proposal, answer = self._decider.propose(context, due, decision, snapshot)
        return await self._reconciler.place(context, decided, proposal) if answer is None else None
