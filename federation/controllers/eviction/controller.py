"""Condition EvictionAllowed of FederatedClusters, and the turns of objects that wait to leave them.

One reconcile serves all clusters: halts and rates are common to them. It runs after each change of a cluster's taints
or readiness, after each move while others wait, and when time alone changes something.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from prometheus_client import Gauge

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.controllers.eviction.names import EVENT_EVICTION_HALTED, EVENT_EVICTION_RESUMED, REASON_EVICTION_ALLOWED
from federation.planning.changehold import Hold
from federation.planning.failover.departure import not_lost
from federation.planning.failover.evictionrecord import StayReason
from federation.planning.failover.halts import HaltReason
from federation.runtime.controller import Controller, Key, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.scheduling.evictions import Evictions, condition_of

_waiting = Gauge("federation_controllers_evictions_waiting", "Objects that wait for their turn to leave a cluster")
_ALL = ""
"""The only key."""


class Scheduler(Protocol):
    """The controller that moves objects."""

    @property
    def evictions(self) -> Evictions:
        """The clusters that replicas leave, and the pace."""
        ...

    async def wait_started(self) -> None:
        """Return once it knows all clusters and objects."""
        ...

    def retry(self, keys: Iterable[Key]) -> None:
        """Schedule these federated objects again."""
        ...


class EvictionController:
    """Publishes halts, and schedules again what may leave. `run` works until cancelled."""

    def __init__(self, host: Host, scheduler: Scheduler) -> None:
        self._client = host.client
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._scheduler = scheduler
        self._evictions = evictions = scheduler.evictions
        self._evicting = evictions.clusters
        self._recorder = host.recorder
        self._clock = host.clock
        self._obstacles: Mapping[str, Hold | None] = {}
        self.controller: Controller[str] = Controller("eviction", self.reconcile, workers=1, clock=host.clock)
        evictions.changed = partial(self.controller.enqueue, _ALL)

    async def run(self) -> None:
        """Reconcile once all clusters are known: halts count those that are lost."""
        await self._scheduler.wait_started()
        await self.controller.run()

    async def reconcile(self, _: str) -> Result:
        """Write the condition of each cluster that needs it, and enqueue the objects whose turn it is."""
        halt = self._evicting.halt(self._clock.now())
        for cluster in self._clusters.list():
            await self._publish(cluster, self._obstacle(cluster["metadata"]["name"], halt))
        obstacles = {name: self._obstacle(name, halt) for name in self._evicting.by_name}
        if obstacles != self._obstacles:
            self._obstacles = obstacles
            halted, self._evictions.halted = self._evictions.halted, set()
            self._scheduler.retry(Key(*key) for key in sorted(halted))
        turns, wait_s = self._evictions.pace.next_turns(self._clock.now().timestamp())
        self._scheduler.retry(Key(*key) for key in turns)
        _waiting.set(self._evictions.pace.waiting)
        now = self._clock.now()
        ends = [
            obstacle.until for obstacle in obstacles.values() if obstacle is not None and obstacle.until is not None
        ]
        times = [max(0.0, (until - now).total_seconds()) for until in ends]
        return Result(min((*times, *(() if wait_s is None else (wait_s,))), default=None))

    def _obstacle(self, name: str, halt: Hold | None) -> Hold | None:
        """Return why nothing may leave a cluster, None if replicas may."""
        evicting = self._evicting.by_name.get(name)
        if evicting is None:
            return None
        if not evicting.is_drained and evicting.fault:
            return Hold(HaltReason.NOT_LOST, not_lost(evicting))
        if not evicting.is_drained:
            return halt
        blocked = self._evicting.blocked(name, self._clock.now())
        return None if blocked is None else Hold(StayReason.BUDGET, blocked.message, blocked.until)

    async def _publish(self, cluster: Object, obstacle: Hold | None) -> None:
        status, reason, message = "True", REASON_EVICTION_ALLOWED, self._rate()
        name = cluster["metadata"]["name"]
        evicting, old = self._evicting.by_name.get(name), condition_of(cluster)
        if evicting is None and old is None:
            return
        present = list((cluster.get("status") or {}).get("conditions") or ())
        if evicting is None:
            await self._write(cluster, conditions.remove(present, names.EVICTION_ALLOWED))
            return
        if obstacle is not None:
            status, reason, message = "False", obstacle.reason, obstacle.message
        after = conditions.set_condition(
            present,
            type_=names.EVICTION_ALLOWED,
            status=status,
            reason=reason,
            message=message,
            now=self._clock.now(),
            time_fields=("lastProbeTime",),
        )
        if after is present:
            return
        await self._write(cluster, after)
        was_halted = old is not None and old.get("status") == "False"
        if status == "False" and not was_halted:
            self._recorder.event({**_TYPE, **cluster}, WARNING, EVENT_EVICTION_HALTED, message)
        elif status == "True" and was_halted:
            self._recorder.event({**_TYPE, **cluster}, NORMAL, EVENT_EVICTION_RESUMED, message)

    def _rate(self) -> str:
        limit = self._evictions.options.pace.replicas_per_minute
        if not limit:
            return "failover is off: no replicas leave"
        return f"replicas leave, at most {limit} per minute from all clusters"

    async def _write(self, cluster: Object, after: list[dict[str, Any]]) -> None:
        # The whole list is written, for the version that was read: its other conditions have another writer.
        body = {
            "metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"]},
            "status": {"conditions": after},
        }
        name = cluster["metadata"]["name"]
        await self._client.patch(
            FEDERATED_CLUSTERS, name, body, subresource="status", field_manager=names.FIELD_MANAGER
        )


_TYPE = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": FEDERATED_CLUSTERS.kind}
