"""Triggers of application failover, and its wiring; the steps are in `reconcile.py`.

A change of a copy's status, or of the federated object, triggers a reconcile of its own workload; so does a cluster
that becomes ready or not. Nothing is polled: a reconcile says when a result can change by time alone.
"""

import asyncio
from collections.abc import Iterator

from federation.api import names
from federation.api.federatedtype import FederatedType, template_kind
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object, Resource
from federation.features.applicationfailover.reconcile import Reconciler, fails_over
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.status.copyhealth import Compile
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_WORKERS = 4
_DELAY_S = 1.0
"""From a change of a copy to its reconcile: a rollout is many changes."""
_BY_CLUSTER = "application-failover/cluster"
_BY_KIND = "application-failover/kind"
_TRIGGERS = Triggers(
    annotations=frozenset(
        (names.APPLICATION_FAILOVER, names.APPLICATION_FAILOVER_RULES, names.DEPARTED_CLUSTERS, names.PURGE)
    )
)


class ApplicationFailoverController:
    """Owns the queue of application failover."""

    def __init__(self, host: Host, compile_: Compile) -> None:
        self._objects = host.objects
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        reconciler = Reconciler(host, compile_, lambda name: self._clusters.get("", name))
        self.controller: Controller[Key] = Controller(
            "applicationfailover", reconciler.reconcile, workers=_WORKERS, clock=host.clock, resync=self._all_keys
        )
        host.objects.add_index(_BY_CLUSTER, _clusters_of)
        host.objects.add_index(_BY_KIND, _kinds_of)
        host.objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)
        self._clusters.add_handler(self._on_cluster)
        host.members.add_handler(self._on_member_object)

    async def run(self) -> None:
        """Run until cancelled."""
        await asyncio.gather(self._objects.wait_synced(), self._clusters.wait_synced())
        self._objects.types.add_listener(self._on_type, lambda _: None)
        await self.controller.run()

    def _all_keys(self) -> Iterator[Key]:
        return (key_of(federated) for federated in self._objects.scan() if fails_over(federated))

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if fails_over(federated) or (old is not None and fails_over(old)):
            self.controller.enqueue(key_of(federated))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or _is_ready(old) != _is_ready(new):
            name = (new if new is not None else old or {})["metadata"]["name"]
            for federated in self._objects.by_index(_BY_CLUSTER, name):
                self.controller.enqueue(key_of(federated), after_s=_DELAY_S, priority=1)

    def _on_type(self, type_: FederatedType) -> None:
        for key in self._objects.keys_by_index(_BY_KIND, str(type_.resource.group_kind)):
            self.controller.enqueue(key, priority=1)

    def _on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = self._objects.types.for_resource(resource)
        if type_ is None:
            return
        metadata = (new if new is not None else old or {})["metadata"]
        key = self._objects.key_for(type_, metadata.get("namespace", ""), metadata["name"])
        federated = self._objects.get(key)
        if federated is not None and fails_over(federated):
            self.controller.enqueue(key, after_s=_DELAY_S)


def _clusters_of(federated: Object) -> frozenset[str]:
    return effective_placement(federated) if fails_over(federated) else frozenset()


def _kinds_of(federated: Object) -> tuple[str, ...]:
    return (str(template_kind(federated)),) if fails_over(federated) else ()


def _is_ready(cluster: Object) -> bool:
    return conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY)
