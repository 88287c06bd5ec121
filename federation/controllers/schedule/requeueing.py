"""When objects that are unschedulable, or were decided without all plugins, are reconciled again.

Every method returns the reconcile's Result. Four things requeue an object: a cluster change that matches its queueing
hint (`unschedulable.py`; `controller.py` enqueues it), a time in its hint, a remote plugin that is available again
(`pluginoutages.py`), and the end of a toleration. Nothing is polled.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from federation.apimachinery.clock import Clock
from federation.controllers.schedule.decider import AttemptContext, Decided
from federation.controllers.schedule.inputcache import InputCache
from federation.controllers.schedule.pluginoutages import PluginOutages
from federation.controllers.schedule.unschedulable import UnschedulableObjects, UnschedulableRecord
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.toleratedtaints import ToleratedTaints
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.queueinghints import ANY_CLUSTER_CHANGE, QueueingHint
from federation.scheduling.snapshot import Snapshot, changes

REPORTED = ClusterChange.RESOURCES | ClusterChange.ANNOTATIONS
"""Changes that members report every few seconds: their retries are batched."""


class Requeueing:
    """Requeues objects whose decision is unsuccessful or incomplete."""

    def __init__(
        self,
        cache: InputCache,
        outages: PluginOutages,
        tolerated: ToleratedTaints,
        clock: Clock,
        reports_wait_s: float,
    ) -> None:
        self._cache = cache
        self._tolerated = tolerated
        self._outages = outages
        self._clock = clock
        self._reports_wait_s = reports_wait_s

    @contextmanager
    def retry(self, key: Key) -> Iterator[None]:
        """Clear the object's retry marks for an attempt; restore them when the attempt raises."""
        marked = [objects for objects in (self._cache.unschedulable, self._cache.unplaced) if objects.has_retry(key)]
        # Cleared before the decision, because a change that arrives during it must lead to another attempt.
        for objects in marked:
            objects.clear_retry(key)
        try:
            yield
        except BaseException:
            for objects in marked:
                objects.mark_retry((key,))
            raise

    def after_unschedulable(self, key: Key, hint: QueueingHint, snapshot: Snapshot) -> Result:
        """Requeue an unschedulable object for changes since the decision's snapshot, or for the time in its hint."""
        return self._after_changes(self._cache.unschedulable, key, hint, snapshot)

    def at_once(self, key: Key) -> Result:
        """Requeue an object that is unschedulable, or has unplaced replicas, for a change during its decision."""
        for objects in (self._cache.unschedulable, self._cache.unplaced):
            objects.mark_retry((key,))
        return Result(0.0)

    def at_hinted_time(self, key: Key) -> Result:
        """Requeue an unschedulable object at the time in its hint.

        Every reconcile returns it again, because the queue keeps only the earliest time per key.
        """
        return self._at_time(self._cache.unschedulable, key)

    def after_placement(
        self, context: AttemptContext, hint: QueueingHint | None, unavailable: Sequence[str], snapshot: Snapshot
    ) -> Result:
        """Requeue a placed object for unplaced replicas (`hint`) and for unavailable plugins that were ignored."""
        outage = self._after_ignoring(context, unavailable)
        if hint is None:
            self._cache.unplaced.remove(context.key)
            return outage
        self._cache.unplaced.add(context.key, UnschedulableRecord("", b"", self._clock.now(), hint=hint))
        result = self._after_changes(self._cache.unplaced, context.key, hint, snapshot)
        return result if outage == DONE else outage

    def after_deferral(self, context: AttemptContext) -> Result:
        """Requeue a deferred object for unplaced replicas and for plugins that its last decision ignored."""
        outage = self._after_ignoring(context, context.attempt.ignored_plugins())
        return self._at_time(self._cache.unplaced, context.key) if outage == DONE else outage

    def after_plugin_failure(self, context: AttemptContext, decided: Decided) -> Result:
        """Requeue an object when its failed remote plugin is available again."""
        failure = decided.decision.failure
        if not decided.has_called_plugins or failure is None:
            return DONE  # The profile cannot work: a change of profile or plugins requeues the object.
        return self._outages.wait_for(context.key, (failure.plugin,), context.started_s)

    def at_toleration_end(self, key: Key, ends: Mapping[str, datetime], result: Result, since: datetime) -> Result:
        """Requeue the object when it stops to tolerate the taints of a cluster, or earlier if `result` asks for it.

        An end after `since`, the beginning of the reconcile, may have come after its decision: it is looked at again.
        """
        self._tolerated.record(key, ends)
        now = self._clock.now()
        waits_s = [max(0.0, (end - now).total_seconds()) for end in ends.values() if end > since]
        if result.requeue_after_s is not None:
            waits_s.append(result.requeue_after_s)
        return Result(min(waits_s)) if waits_s else result

    def start(self, key: Key) -> datetime:
        """Record that the object is reconciled now and does not wait for plugins; return the time."""
        self._outages.stop_waiting(key)
        return self._clock.now()

    def is_plugin_back(self, context: AttemptContext) -> bool:
        """Return whether a plugin that the last decision ignored may be available."""
        return any(map(self._outages.may_be_available, context.attempt.ignored_plugins()))

    def unavailable_among(self, plugins: Sequence[str]) -> list[str]:
        """Return the unavailable ones of the plugins."""
        return [plugin for plugin in plugins if self._outages.is_unavailable(plugin)]

    def remember_unplaced(self, context: AttemptContext) -> None:
        """Retry unplaced replicas, and those that may return to an earlier group, after a restart: it loses hints."""
        attempt = context.attempt
        if context.is_first and (attempt.has_unplaced_replicas() or attempt.may_go_back()):
            record = UnschedulableRecord("", b"", self._clock.now(), hint=ANY_CLUSTER_CHANGE)
            self._cache.unplaced.add(context.key, record)

    def _after_ignoring(self, context: AttemptContext, plugins: Sequence[str]) -> Result:
        policy = context.attempt.policy
        # A returning plugin counts like a changed profile, which not every policy follows.
        if not plugins or policy is None or not policy.follows_content or not self._outages.has_webhook_client:
            return DONE
        return self._outages.wait_for(context.key, plugins, context.started_s)

    def _after_changes(self, objects: UnschedulableObjects, key: Key, hint: QueueingHint, snapshot: Snapshot) -> Result:
        # Changes during the decision found no record of it yet, and have not enqueued the object.
        happened = changes(snapshot, self._cache.scoped.newest(snapshot))
        matching = [change for name, change in happened if hint.matches(name, change)]
        if matching:
            objects.mark_retry((key,))
            return Result(0.0 if any(change & ~REPORTED for change in matching) else self._reports_wait_s)
        return self._at_time(objects, key)

    def _at_time(self, objects: UnschedulableObjects, key: Key) -> Result:
        record = objects.get(key)
        if record is None or record.hint.at is None:
            return DONE
        return Result(max(0.0, (record.hint.at - self._clock.now()).total_seconds()))
