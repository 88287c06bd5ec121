"""Triggers of status aggregation, and its wiring; the steps are in `reconcile.py`.

Member objects, federated objects and caches that become complete are triggers. A change is written at once, so that
`kubectl` shows a lost replica and a recovered one when the member reports it; an object that keeps changing gets one
write per second. From a new generation of the federated object until it is rolled out, one write every four seconds
shows the progress, and the end is written at once. With many rollouts at the same time, most of which end soon, the
progress of each is written less often (docs/decisions/0079-progress-has-a-budget.md).
"""

from dataclasses import dataclass, field

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import Object, Resource
from federation.controllers.statusaggregate.reconcile import Reconciler
from federation.planning.aggregation.rules import Compile
from federation.planning.status.completeness import (
    begins_rollout,
    is_complete,
    is_degraded,
    is_delivered,
    is_replacing_pods,
)
from federation.planning.status.debounce import Coalescer, Pace
from federation.planning.status.sourceconditions import is_undelivered
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.sourceinformers import SourceInformers
from federation.runtime.subscription import Triggers


@dataclass(frozen=True, slots=True)
class StatusAggregateOptions:
    """Limits of status aggregation."""

    workers: int = 8
    """Concurrent reconciles; each waits for the host's group commit."""
    rules_s_max: float = 0.25
    """Time for the status rules of one object. They run on the event loop, so the other objects wait for them."""
    pace: Pace = field(
        default_factory=lambda: Pace(
            quiet_s=0.2, wait_s_max=4.0, interval_s=1.0, burst=5, spacing_s=0.1, share_s=0.2, stretch_max=15.0
        )
    )


_TRIGGERS = Triggers(annotations=True, owner_references=True, status=lambda federated: federated.get("status"))


class StatusAggregateController:
    """Owns the queue of status aggregation and the informers of sources."""

    def __init__(self, host: Host, compile_rule: Compile, *, options: StatusAggregateOptions | None = None) -> None:
        chosen = options or StatusAggregateOptions()
        self._objects = host.objects
        self._types = host.objects.types
        self._clock = host.clock
        self._sources = SourceInformers(host.informers, self._on_source, is_late=True)
        self._pace: Coalescer[Key] = Coalescer(chosen.pace)
        self._reconciler = Reconciler(host, self._sources.get, self._pace, compile_rule, chosen.rules_s_max)
        self.controller: Controller[Key] = Controller(
            "statusaggregate", self._reconciler.reconcile, workers=chosen.workers, clock=host.clock, ends_delays=True
        )
        self._types.add_listener(self._follow, self._sources.unfollow)
        host.objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)
        host.members.add_handler(self._on_member)
        host.members.add_sync_listener(self._on_synced)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._objects.wait_synced()
        await self.controller.run()

    def _follow(self, type_: FederatedType) -> None:
        if type_.aggregate:
            self._sources.follow(type_)

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        self._reconciler.source_changed(type_.resource, key_of(obj))
        key = self._objects.key_of_source(type_, obj)
        if new is not None and old is None and self._objects.get(key) is not None:
            # The federated object may have been there first (a restart).
            self._enqueue(key)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._reconciler.forget(key_of(old or {}))
        else:
            key, is_news = key_of(new), old is not None and not is_delivered(old)
            if begins_rollout(old, new):
                self._pace.begin(key)
            is_patient = self._pace.has_begun(key) and not is_undelivered(new)
            self._enqueue(key, is_urgent=is_news and self._reconciler.is_rolled_out(key), is_patient=is_patient)

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = self._types.for_resource(resource)
        obj = new if new is not None else old
        if type_ is None or not type_.aggregate or obj is None:
            return
        before, after = ((each or {}).get("status") or {} for each in (old, new))
        if old is not None and new is not None and before == after:
            return
        key = self._objects.key_of_source(type_, obj)
        if before and is_replacing_pods(obj):
            # It reports many times until all pods are replaced.
            self._enqueue(key, is_patient=True)
            return
        if is_complete(new or {}):
            # Fewer replicas than before are surplus ones here.
            is_urgent = not is_complete(old or {}) and self._reconciler.is_rolled_out(key)
        else:
            is_urgent = is_degraded(before, after)
        self._enqueue(key, is_urgent=is_urgent, is_patient=self._pace.has_begun(key))

    def _on_synced(self, cluster: str, resource: Resource) -> None:  # noqa: ARG002  # a listener's signature
        type_ = self._types.for_resource(resource)
        if type_ is None or not type_.aggregate:
            return
        for key in self._objects.keys_of_type(type_):
            self._enqueue(key)

    def _enqueue(self, key: Key, *, is_urgent: bool = False, is_patient: bool = False) -> None:
        after_s = self._pace.note(key, self._clock.monotonic(), is_urgent=is_urgent, is_patient=is_patient)
        self.controller.enqueue(key, after_s=after_s, postpones=True)
