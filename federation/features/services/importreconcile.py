"""The steps for one ServiceImport: place the Service and its EndpointSlices, and name the exporting clusters."""

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from federation.api import names
from federation.api.resources import SERVICE_IMPORTS
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import SERVICES, Object, Resource
from federation.features.services.names import EVENT_NO_SERVICE, SOURCE_CLUSTER
from federation.features.services.rules.exports import source_of
from federation.features.services.rules.imports import importing_clusters, plan_service, plan_slice
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer

WRITER = "serviceimport"
BY_SERVICE = "serviceimports/service"


class Reconciler:
    """Reconciles one ServiceImport per call; its key is that of the ServiceImport and of the Service."""

    def __init__(self, host: Host, imports: Informer) -> None:
        self._client = host.client
        self._objects = host.objects
        self._imports = imports
        self._recorder = host.recorder

    async def reconcile(self, key: Key) -> Result:
        """Write the placements that changed, and the status of the ServiceImport."""
        service_import = self._imports.get(*key)
        clusters = importing_clusters(self._federated(SERVICE_IMPORTS, key))
        await self._place_service(key, service_import, clusters)
        sources = await self._place_slices(key, clusters)
        if service_import is not None and not service_import["metadata"].get("deletionTimestamp"):
            await self._report(key, service_import, [{"cluster": name} for name in sorted(sources)])
        return DONE

    async def _place_service(self, key: Key, service_import: Object | None, clusters: Collection[str]) -> None:
        service = self._federated(SERVICES, key)
        if service is None and service_import is not None and clusters:
            text = f'there is no Service "{key.name}" in the namespace; create the Service that other clusters export'
            self._recorder.event(service_import, WARNING, EVENT_NO_SERVICE, text)
        if service is None or service["metadata"].get("deletionTimestamp"):
            return
        if (patch := plan_service(service, service_import, clusters)) is not None:
            await self._objects.patch(key_of(service), service, patch, writer=WRITER)

    async def _place_slices(self, key: Key, clusters: Collection[str]) -> set[str]:
        """Place the imported EndpointSlices of the Service; return the clusters that they come from."""
        sources = set()
        for federated in self._objects.by_index(BY_SERVICE, f"{key.namespace}/{key.name}", key.namespace):
            if federated["metadata"].get("deletionTimestamp"):
                continue
            sources.add(str(federated["spec"]["template"]["metadata"]["labels"][SOURCE_CLUSTER]))
            if (patch := plan_slice(federated, clusters)) is not None:
                await self._objects.patch(key_of(federated), federated, patch, writer=WRITER)
        return sources

    def _federated(self, resource: Resource, key: Key) -> Object | None:
        type_ = self._objects.types.for_resource(resource)
        return None if type_ is None else self._objects.get(self._objects.key_for(type_, *key))

    async def _report(self, key: Key, service_import: Object, clusters: list[Object]) -> None:
        if ((service_import.get("status") or {}).get("clusters") or []) == clusters:
            return
        with contextlib.suppress(NotFound):
            await self._client.patch(
                SERVICE_IMPORTS,
                key.name,
                {"status": {"clusters": clusters}},
                namespace=key.namespace,
                subresource="status",
                field_manager=names.FIELD_MANAGER,
            )


def service_key_of(federated: Mapping[str, Any]) -> Key | None:
    """Return the key of the ServiceImport that a federated object concerns, None if it concerns none."""
    template = (federated.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata") or {}
    namespace = federated["metadata"].get("namespace", "")
    match template.get("kind"):
        case "Service" | "ServiceImport":
            return Key(namespace, str(metadata.get("name", "")))
        case "EndpointSlice":
            found = source_of(template)
            return Key(namespace, found[0]) if found is not None else None
        case _:
            return None


def slice_service(federated: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the index value of the federated object of an imported EndpointSlice; () for all others."""
    key = service_key_of(federated)
    if key is None or federated["spec"]["template"].get("kind") != "EndpointSlice":
        return ()
    return (f"{key.namespace}/{key.name}",)
