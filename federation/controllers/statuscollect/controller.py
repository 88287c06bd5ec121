"""Triggers of status collection, and its wiring; the steps are in `reconcile.py`.

Every change of a member object is a trigger, and so is the end of a member's cache. A `Coalescer` spaces the writes, so
that a rollout with hundreds of status changes costs one write per interval.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from federation.apimachinery.resources import Object, Resource
from federation.controllers.statuscollect.reconcile import Reconciler
from federation.delivery.rules.status import stale_clusters
from federation.planning.status.debounce import Coalescer, Pace
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.indexer import CacheKey
from federation.runtime.subscription import Triggers


@dataclass(frozen=True, slots=True)
class StatusCollectOptions:
    """Limits of status collection."""

    workers: int = 4
    """Concurrent reconciles; each waits for the host's group commit."""
    pace: Pace = field(
        default_factory=lambda: Pace(quiet_s=5.0, wait_s_max=15.0, interval_s=15.0, share_s=0.2, stretch_max=4.0)
    )


_TRIGGERS = Triggers(added=False, generation=False, labels=True, status=stale_clusters)


class StatusCollectController:
    """Owns the queue of status collection."""

    def __init__(self, host: Host, *, options: StatusCollectOptions | None = None) -> None:
        chosen = options or StatusCollectOptions()
        self._objects = host.objects
        self._clock = host.clock
        self._pace: Coalescer[Key] = Coalescer(chosen.pace)
        self._reconciler = Reconciler(host, self._pace)
        self.controller: Controller[Key] = Controller(
            "statuscollect", self._reconciler.reconcile, workers=chosen.workers, clock=host.clock, ends_delays=True
        )
        host.objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)
        host.members.add_handler(self._on_member)
        host.members.add_sync_listener(self._on_synced)
        host.members.add_discard_listener(self._on_discarded)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._objects.wait_synced()
        await self.controller.run()

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._reconciler.forget(key_of(old or {}))
        else:
            self._enqueue(key_of(new))

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = self._objects.types.for_resource(resource)
        obj = new if new is not None else old
        if type_ is not None and type_.collect and obj is not None:
            self._enqueue(self._objects.key_of_source(type_, obj))

    def _on_synced(self, cluster: str, resource: Resource) -> None:  # noqa: ARG002  # a listener's signature
        """Drop the entries that the cluster had before this start, of objects that it lost since."""
        self._enqueue_incomplete(resource)

    def _on_discarded(self, resource: Resource, shown: Iterable[CacheKey]) -> None:
        """Drop the entries of a cluster that has left, also those that were kept while its cache was incomplete."""
        type_ = self._objects.types.for_resource(resource)
        if type_ is None or not type_.collect:
            return
        for namespace, name in shown:
            self._enqueue(self._objects.key_for(type_, namespace, name))
        self._enqueue_incomplete(resource)

    def _enqueue_incomplete(self, resource: Resource) -> None:
        for key in self._reconciler.take_incomplete(resource):
            self._enqueue(key)

    def _enqueue(self, key: Key) -> None:
        self.controller.enqueue(key, after_s=self._pace.note(key, self._clock.monotonic()), postpones=True)
