"""Metrics and log lines about the fleet: clusters, objects by stage, and how long each stage of a delivery takes.

It only follows the caches, in every process, and writes nothing. Each event costs one comparison; a scrape costs
nothing. The same numbers go into the history of the last hours. Latencies are measured for objects that are created
while the process runs: for older ones the process does not know when each stage began.
"""

from collections import Counter as Tally
from dataclasses import dataclass, field

import structlog
from prometheus_client import Gauge, Histogram, Info

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions, interpreter
from federation.apimachinery.clock import Clock
from federation.apimachinery.metrics import DELIVERY_BUCKETS_S, LATENCY_BUCKETS_S
from federation.apimachinery.resources import Object
from federation.planning.clusters.clustershare import NO_SHARE, ClusterShare, share_of
from federation.planning.cost.rates import from_nano
from federation.planning.diagnosis.deliverystage import Stage, is_ready, stage_of, unplaced_replicas
from federation.planning.federatedobject.placements import effective_placement
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.fleethistory import Counter, FleetHistory, Happening
from federation.runtime.fleethistory import Gauge as Series
from federation.runtime.informers import Informers
from federation.runtime.replay import is_replaying
from federation.runtime.sourceinformers import SourceInformers

_log = structlog.get_logger(__name__)
_build = Info("federation_build", "The version of the control plane, and of its Python if that is a slow build")
_cluster_ready = Gauge("federation_cluster_ready", "1 while the member is ready, else 0", ["cluster"])
_objects = Gauge("federation_objects", "Federated objects by the stage of their delivery", ["state"])
_unplaced = Gauge("federation_replicas_unplaced", "Replicas that no cluster could take at their last decision")
_seconds = Histogram(
    "federation_delivery_seconds",
    "Time from the creation of an object until it was placed, applied in all clusters, and ready there",
    ["stage"],
    buckets=DELIVERY_BUCKETS_S,
)
_objects_in = {stage: _objects.labels(stage.value) for stage in Stage}
_stage_seconds = Histogram(
    "federation_delivery_stage_seconds",
    "Time of one stage of the delivery of a new object: from its creation to the federated object, then until placed, "
    "overridden (no controller is pending), applied in all clusters, and ready there",
    ["stage"],
    buckets=LATENCY_BUCKETS_S,
)
FEDERATED, PLACED, OVERRIDDEN, APPLIED, READY = "federated", "placed", "overridden", "applied", "ready"
_SINCE_CREATION = (PLACED, APPLIED, READY)
for _name in _SINCE_CREATION:
    _seconds.labels(_name)
for _name in (FEDERATED, PLACED, OVERRIDDEN, APPLIED, READY):
    _stage_seconds.labels(_name)
_FAILURES = (Stage.UNPLACED, Stage.FAILING)
_SERIES = {
    Series.OBJECTS_DELIVERED: (Stage.APPLIED,),
    Series.OBJECTS_UNDERWAY: (Stage.PENDING, Stage.PROPAGATING, Stage.DELETING),
    Series.OBJECTS_SILENT: (Stage.SILENT,),
    Series.OBJECTS_FAILING: _FAILURES,
}
"""The stages of each series of the history; objects without a policy are in none."""
_FOLLOWED_MAX = 100_000
"""New objects whose latencies are being measured."""
_CREATED_MAX = 10_000
"""Sources without a federated object whose creation is remembered; beyond it the oldest is forgotten."""
_FEDERATED_S_MAX = 60.0
"""An object that is federated later waited for a policy that selects it, not for a controller."""


@dataclass(slots=True)
class _Delivery:
    """A new object on its way."""

    since_s: float
    last_s: float
    """When it reached its last stage."""
    reached: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Fleet:
    """Sums over all clusters; integers, so that they stay exact however often they change."""

    ready: int = 0
    cpu: int = 0
    cpu_requested: int = 0
    memory: int = 0
    memory_requested: int = 0
    price: int = 0

    def replace(self, before: ClusterShare, now: ClusterShare) -> None:
        """Replace the share of one cluster."""
        self.ready += now.is_ready - before.is_ready
        self.cpu += now.cpu - before.cpu
        self.cpu_requested += now.cpu_requested - before.cpu_requested
        self.memory += now.memory - before.memory
        self.memory_requested += now.memory_requested - before.memory_requested
        self.price += now.price - before.price

    def values(self) -> dict[Series, float]:
        """Return the sums by series: cores, bytes, and the price per hour."""
        return {
            Series.CLUSTERS_READY: self.ready,
            Series.CPU: self.cpu / 1000,
            Series.CPU_REQUESTED: self.cpu_requested / 1000,
            Series.MEMORY: self.memory,
            Series.MEMORY_REQUESTED: self.memory_requested,
            Series.PRICE: from_nano(self.price),
        }


class FleetMetrics:
    """Follows clusters, federated objects and workloads."""

    def __init__(self, objects: FederatedObjects, informers: Informers, clock: Clock, *, version: str) -> None:
        _build.info({"version": version, "slow_python": interpreter.slow_build()})
        self._objects = objects
        self._clock = clock
        self._stages: dict[Key, tuple[Stage, int]] = {}
        self._counts: Tally[Stage] = Tally()
        self._replicas = 0
        self._deliveries: dict[Key, _Delivery] = {}
        self._created_s: dict[Key, float] = {}
        self.history = FleetHistory(clock)
        """The last hours of these numbers, for the web UI."""
        self._shares: dict[str, ClusterShare] = {}
        self._fleet = _Fleet()
        self._sources = SourceInformers(informers, self._on_source, is_late=True)
        objects.types.add_listener(self._sources.follow, self._sources.unfollow)
        objects.subscribe(self._on_federated, None, is_late=True)
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._clusters.add_handler(self._on_cluster)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        self._record(old, new)
        if new is None:
            name = (old or {})["metadata"]["name"]
            _cluster_ready.remove(name)
            _log.info("cluster left", cluster=name)
            return
        name, found = new["metadata"]["name"], (new.get("status") or {}).get("conditions")
        _cluster_ready.labels(name).set(conditions.is_true(found, names.CLUSTER_READY))
        before = ((old or {}).get("status") or {}).get("conditions")
        for type_ in (names.CLUSTER_JOINED, names.CLUSTER_READY):
            condition = conditions.find(found, type_)
            known = conditions.find(before, type_)
            if condition is not None and (known or {}).get("status") != condition.get("status"):
                _log.info(
                    "cluster changed",
                    cluster=name,
                    condition=type_,
                    status=condition.get("status"),
                    reason=condition.get("reason", ""),
                )

    def _record(self, old: Object | None, new: Object | None) -> None:
        """Put a cluster into the history: its part of the fleet's amounts, and what happened to it."""
        metadata, history = (new or old or {})["metadata"], self.history
        name: str = metadata["name"]
        before = self._shares.pop(name, None)
        now = None
        if new is not None:
            now = self._shares[name] = share_of(new)
        if before == now:
            return
        self._fleet.replace(before or NO_SHARE, now or NO_SHARE)
        history.set(Series.CLUSTERS, len(self._shares))
        for series, value in self._fleet.values().items():
            history.set(series, value)
        if now is None:
            history.tell(name, Happening.LEFT)
        elif before is None:
            if self._clusters.has_synced:
                history.tell(name, Happening.JOINED)
        elif before.is_ready != now.is_ready:
            ready = conditions.find(((new or {}).get("status") or {}).get("conditions"), names.CLUSTER_READY) or {}
            text = "" if now.is_ready else str(ready.get("message") or ready.get("reason") or "")
            history.tell(name, Happening.BACK if now.is_ready else Happening.LOST, text)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        key = key_of(new if new is not None else old or {})
        before, had = self._stages.pop(key, (None, 0))
        if before is not None:
            self._counts[before] -= 1
            _objects_in[before].set(self._counts[before])
        stage, has = None, 0
        if new is not None:
            type_ = self._objects.type_of(new)
            stage = stage_of(new)
            has = unplaced_replicas(new, type_.paths.replicas_spec if type_ else (), stage)
            self._stages[key] = (stage, has)
            self._counts[stage] += 1
            _objects_in[stage].set(self._counts[stage])
            if stage is not before and stage in _FAILURES:
                if before is not None:
                    self.history.count(Counter.FAILURES)
                _log.info("object is not delivered", key=str(key), state=stage.value, why=_why(new))
        self._replicas += has - had
        _unplaced.set(self._replicas)
        if has != had:
            self.history.set(Series.REPLICAS_UNPLACED, self._replicas)
        if stage is not before:
            for series, stages in _SERIES.items():
                self.history.set(series, sum(self._counts[each] for each in stages))
        if _has_moved(old, new):
            self.history.count(Counter.MOVES)
        self._measure(key, old, new, stage)

    def _measure(self, key: Key, old: Object | None, new: Object | None, stage: Stage | None) -> None:
        if old is None and new is not None and not is_replaying() and len(self._deliveries) < _FOLLOWED_MAX:
            now_s = self._clock.monotonic()
            created_s = self._created_s.pop(key, now_s - 2 * _FEDERATED_S_MAX)
            if now_s - created_s <= _FEDERATED_S_MAX:
                _stage_seconds.labels(FEDERATED).observe(now_s - created_s)
            self._deliveries[key] = _Delivery(now_s, now_s)
        if new is None or stage is Stage.DELETING:
            self._deliveries.pop(key, None)
            return
        if (delivery := self._deliveries.get(key)) is None:
            return
        if effective_placement(new):
            self._reach(delivery, PLACED)
            if stage is not Stage.PENDING:
                self._reach(delivery, OVERRIDDEN)
        if stage is Stage.APPLIED:
            self._reach(delivery, APPLIED)
            type_ = self._objects.type_of(new)
            if type_ is None or not (type_.aggregate and type_.paths.replicas_spec):
                self._deliveries.pop(key)  # nothing tells when it is ready

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        if new is None or (old is not None and not self._deliveries):
            return
        key = self._objects.key_of_source(type_, new)
        if old is None and key not in self._stages and not is_replaying():
            if len(self._created_s) >= _CREATED_MAX:
                del self._created_s[next(iter(self._created_s))]
            self._created_s[key] = self._clock.monotonic()
        delivery = self._deliveries.get(key)
        if delivery is not None and APPLIED in delivery.reached and is_ready(new):
            self._reach(delivery, READY)
            self._deliveries.pop(key)

    def _reach(self, delivery: _Delivery, stage: str) -> None:
        if stage not in delivery.reached:
            delivery.reached.add(stage)
            now_s = self._clock.monotonic()
            _stage_seconds.labels(stage).observe(now_s - delivery.last_s)
            delivery.last_s = now_s
            if stage in _SINCE_CREATION:
                _seconds.labels(stage).observe(now_s - delivery.since_s)


def _has_moved(old: Object | None, new: Object | None) -> bool:
    """Return whether an object that was somewhere is in other clusters now; the first placement is no move."""
    if old is None or new is None or old["metadata"].get("generation") == new["metadata"].get("generation"):
        return False  # the clusters are part of the spec
    before, after = effective_placement(old), effective_placement(new)
    return bool(before and after and before != after)


def _why(federated: Object) -> str:
    found = (federated.get("status") or {}).get("conditions")
    for type_ in (names.SCHEDULED, names.PROPAGATED):
        condition = conditions.find(found, type_)
        if condition is not None and condition.get("status") != "True":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"[:300]
    return ""
