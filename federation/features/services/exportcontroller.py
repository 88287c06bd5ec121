"""Triggers of exported Services, and its wiring; the steps are in `reconcile.py`.

The EndpointSlices of the members are watched once a ServiceExport is federated. The changes of a Service in all members
within a second share one reconcile: a rollout changes its endpoints hundreds of times.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, SERVICE_EXPORTS
from federation.apimachinery.resources import ENDPOINT_SLICES, SERVICES, Object, Resource
from federation.features.services.exportreconcile import BY_SERVICE, KINDS, Reconciler, service_of
from federation.features.services.rules.exports import SERVICE_NAME_LABEL, source_of
from federation.planning.failover.departure import evicting_of
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers


@dataclass(frozen=True, slots=True)
class ServiceExportOptions:
    """Limits of the controller."""

    workers: int = 4
    """Services that are reconciled at the same time."""
    coalescing_s: float = 1.0
    """Delay between a change in a member and the reconcile; all changes until then share it."""
    toleration_s: float = 300.0
    """How long a lost cluster's endpoints stay after it was tainted."""


class ServiceExportController:
    """Keeps the host's copies of exported EndpointSlices. `run` runs until cancelled."""

    def __init__(self, host: Host, options: ServiceExportOptions | None = None) -> None:
        chosen, informers = options or ServiceExportOptions(), host.informers
        self._objects = host.objects
        self._members = host.members
        self._coalescing_s = chosen.coalescing_s
        self._is_watching = False
        self._exports = informers.for_resource(SERVICE_EXPORTS)
        self._services = informers.for_resource(SERVICES)
        self._slices = informers.for_resource(ENDPOINT_SLICES)
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._slices.add_index(BY_SERVICE, service_of)
        reconciler = Reconciler(
            host, self._exports, self._services, self._slices, self._clusters, toleration_s=chosen.toleration_s
        )
        self.controller: Controller[Key] = Controller(
            "serviceexport", reconciler.reconcile, workers=chosen.workers, clock=host.clock, resync=self._keys
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        self._exports.add_handler(self._on_export)
        self._slices.add_handler(self._on_copy)
        self._clusters.add_handler(self._on_cluster)
        self._objects.subscribe(self._on_federated, Triggers(deletion=False), is_late=True)
        self._members.add_handler(self._on_member)
        self._members.add_sync_listener(self._on_synced)
        informers = (self._exports, self._services, self._slices, self._clusters)
        await asyncio.gather(self._objects.wait_synced(), *(informer.wait_synced() for informer in informers))
        await self.controller.run()

    def _keys(self) -> Iterator[Key]:
        """Yield every Service that is, or was, exported."""
        yield from map(key_of, self._exports.list())
        for copy in self._slices.list():
            for value in service_of(copy):
                yield Key(*value.split("/"))

    def _enqueue(self, key: Key) -> None:
        self.controller.enqueue(key, after_s=self._coalescing_s)

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if _is_export(template := federated["spec"]["template"]):
            self._watch_members()
            self._enqueue(Key(federated["metadata"].get("namespace", ""), str(template["metadata"]["name"])))

    def _watch_members(self) -> None:
        """Watch the members from the first federated ServiceExport, or copy of an EndpointSlice, on."""
        if self._is_watching:
            return
        self._is_watching = True
        for kind in KINDS:
            self._members.ensure_informer(kind)

    def _on_export(self, old: Object | None, new: Object | None) -> None:
        self._enqueue(key_of(new if new is not None else old or {}))

    def _on_copy(self, old: Object | None, new: Object | None) -> None:
        for value in service_of(new if new is not None else old or {}):
            self._watch_members()
            self._enqueue(Key(*value.split("/")))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if _cluster_facts(old) != _cluster_facts(new):
            for key in self._keys():
                self._enqueue(key)

    def _on_synced(self, cluster: str, resource: Resource) -> None:
        del cluster
        if resource in KINDS:
            for key in self._keys():
                self._enqueue(key)

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        del cluster
        if resource not in KINDS:
            return
        obj = new if new is not None else old or {}
        metadata = obj["metadata"]
        name = metadata["name"]
        if resource == ENDPOINT_SLICES:
            if source_of(obj) is not None:
                return
            name = (metadata.get("labels") or {}).get(SERVICE_NAME_LABEL, "")
        if self._exports.get(metadata["namespace"], name) is not None:
            self._enqueue(Key(metadata["namespace"], name))


def _is_export(template: Object) -> bool:
    return (template.get("apiVersion"), template.get("kind")) == (SERVICE_EXPORTS.api_version, SERVICE_EXPORTS.kind)


def _cluster_facts(cluster: Object | None) -> Any:
    """Return what decides whether a cluster's endpoints stay."""
    if cluster is None:
        return None
    metadata = cluster["metadata"]
    is_cut = names.TRAFFIC_CUT in (metadata.get("annotations") or {})
    return evicting_of(cluster), metadata.get("deletionTimestamp"), is_cut
