"""Spans of deliveries: one generation of an object from its first sight to the members that run it.

    deliver ─┬─ place            until clusters are chosen
             ├─ apply CLUSTER    until this cluster has it
             └─ ready            until its replicas are ready everywhere

It follows the caches and writes nothing, like the metrics of the fleet; the process that leads records. What happened
before it led, or before it started, has no spans.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import Clock
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Object
from federation.delivery.rules.status import ClusterStatus
from federation.planning.diagnosis.deliverystage import Stage, is_ready, stage_of
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.informers import Informers
from federation.runtime.sourceinformers import SourceInformers
from federation.tracing.tracer import Times, Tracer

_FOLLOWED_MAX = 10_000
"""Deliveries under way; further ones have no spans."""
_PLACED = (Stage.PROPAGATING, Stage.FAILING, Stage.APPLIED)


@dataclass(slots=True)
class _Delivery:
    """A generation of a source on its way; `known` are the clusters' statuses of the generation before."""

    identity: tuple[str, int]
    known: Mapping[str, Mapping[str, Any]]
    since: datetime
    placed: datetime | None = None
    applied: datetime | None = None
    clusters: set[str] = field(default_factory=set)


class Deliveries:
    """Follows federated objects and their sources; `leads` says whether this process runs the controllers."""

    def __init__(
        self,
        objects: FederatedObjects,
        informers: Informers,
        tracer: Tracer,
        leads: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._objects = objects
        self._tracer = tracer
        self._leads = leads
        self._clock = clock
        self._deliveries: dict[Key, _Delivery] = {}
        self._sources = SourceInformers(informers, self._on_source)
        objects.types.add_listener(self._sources.follow, self._sources.unfollow)
        objects.subscribe(self._on_federated, None)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        key = key_of(new if new is not None else old or {})
        delivery = self._deliveries.get(key)
        identity = _identity_of(new) if new is not None else None
        if delivery is not None and delivery.identity != identity:
            self._end(key, delivery, "replaced" if new is not None else "deleted")
            delivery = None
        if new is None or identity is None or not self._leads() or not self._objects.has_synced:
            return
        if delivery is None:
            if identity == (_identity_of(old) if old is not None else None) or len(self._deliveries) >= _FOLLOWED_MAX:
                return
            delivery = self._deliveries[key] = _Delivery(identity, _statuses(new), self._clock.now())
        self._advance(key, delivery, new)

    def _advance(self, key: Key, delivery: _Delivery, new: Object) -> None:
        stage, now = stage_of(new), self._clock.now()
        if delivery.placed is None:
            if stage not in _PLACED:
                return
            delivery.placed = now
            self._child("place", delivery, Times(delivery.since, now), {})
        is_current = (new.get("status") or {}).get("syncedGeneration") == new["metadata"].get("generation")
        for cluster, status in _statuses(new).items():
            is_new = is_current or status != delivery.known.get(cluster)
            if is_new and status.get("status") == ClusterStatus.OK and cluster not in delivery.clusters:
                delivery.clusters.add(cluster)
                self._child(f"apply {cluster}", delivery, Times(delivery.placed, now), {"k8s.cluster.name": cluster})
        if stage is Stage.APPLIED and is_current and delivery.applied is None:
            delivery.applied = now
            type_ = self._objects.type_of(new)
            if type_ is None or not (type_.aggregate and type_.paths.replicas_spec):
                self._end(key, delivery, "applied")  # nothing tells when it is ready

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        del old
        if new is None or not self._deliveries:
            return
        key = self._objects.key_of_source(type_, new)
        delivery = self._deliveries.get(key)
        if delivery is None or delivery.applied is None or new["metadata"].get("generation", 0) != delivery.identity[1]:
            return
        if is_ready(new):
            self._child("ready", delivery, Times(delivery.applied, self._clock.now()), {})
            self._end(key, delivery, "ready")

    def _child(self, name: str, delivery: _Delivery, times: Times, attributes: Mapping[str, str | int]) -> None:
        self._tracer.record(name, times, self._tracer.delivery(*delivery.identity), attributes)

    def _end(self, key: Key, delivery: _Delivery, outcome: str) -> None:
        del self._deliveries[key]
        uid, generation = delivery.identity
        attributes: dict[str, str | int] = {
            "k8s.namespace.name": key.namespace,
            "federation.object": key.name,
            "federation.uid": uid,
            "federation.generation": generation,
            "federation.outcome": outcome,
        }
        times = Times(delivery.since, self._clock.now())
        self._tracer.record_root("deliver", self._tracer.delivery(uid, generation), times, attributes)


def _identity_of(federated: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return uid and generation of the source, None for a federated object without one."""
    owner = controller_of(federated)
    metadata = ((federated.get("spec") or {}).get("template") or {}).get("metadata") or {}
    return (str(owner["uid"]), int(metadata.get("generation", 0))) if owner is not None else None


def _statuses(federated: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    clusters = (federated.get("status") or {}).get("clusters") or ()
    return {each["cluster"]: each for each in clusters}
