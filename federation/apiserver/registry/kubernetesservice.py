"""The Service `default/kubernetes` and its endpoints: how clients find the API server from its own objects.

The same objects as kube-apiserver's kubernetes service controller keeps: a Service at the first address of the service
network, an Endpoints object and an EndpointSlice with the server's address. They are checked at an interval; an
existing Service is left as it is. The objects stay at shutdown, so a restart at the same address writes nothing.
"""

import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import AlreadyExists, Conflict, Invalid, NotFound
from federation.apimachinery.resources import SERVICES, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.registry.serverleases import Address, ServerLeases
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions

NAMESPACE, NAME = "default", "kubernetes"
INTERVAL_S: Final = 10.0
"""kube-apiserver's interval."""
_PORT_NAME: Final = "https"
_OPTIONS = WriteOptions(field_manager="federation-apiserver")


class KubernetesService:
    """Keeps the objects of one registry. `identity` names this server among several that share a database."""

    def __init__(self, registry: Registry, *, address: str, port: int, clock: Clock, identity: str = "") -> None:
        self._registry = registry
        self._own = Address(port, address)
        self._clock = clock
        self._leases = ServerLeases(registry, identity, self._own, clock) if identity and address else None

    async def run(self) -> None:
        """Correct the objects at an interval, until cancelled."""
        try:
            while True:
                # Another writer was faster; the next round reads the newer state.
                with contextlib.suppress(AlreadyExists, Conflict, NotFound):
                    await self.reconcile()
                await self._clock.sleep(INTERVAL_S)
        finally:
            if self._leases is not None:
                await self._leases.release()

    async def reconcile(self) -> None:
        """Create or correct the objects; without an address, only the Service."""
        await self._ensure_service()
        if self._leases is not None:
            await self._leases.renew()
        if self._own.ip:
            servers = await self._leases.live() if self._leases is not None else [self._own]
            await self._ensure_endpoints(servers)
            await self._ensure_endpoint_slice(servers)

    async def _ensure_service(self) -> None:
        info = self._registry.kinds.lookup("", "v1", SERVICES.plural)
        if await self._read(info) is not None:
            return
        port = {"name": _PORT_NAME, "protocol": "TCP", "port": 443, "targetPort": self._own.port}
        network = ipaddress.ip_network(self._registry.options.service_network)
        service: Object = {
            "metadata": {"name": NAME, "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {
                "type": "ClusterIP",
                "clusterIP": str(network[1]),
                "ipFamilyPolicy": "SingleStack",
                "sessionAffinity": "None",
                "ports": [port],
            },
        }
        try:
            await self._create(info, service)
        except Invalid:
            # A Service of a user holds the first address; nothing routes by it on a host API.
            del service["spec"]["clusterIP"]
            await self._create(info, service)

    async def _ensure_endpoints(self, servers: Sequence[Address]) -> None:
        info = self._registry.kinds.lookup("", "v1", "endpoints")
        subsets = [
            {
                "addresses": [{"ip": each.ip} for each in group],
                "ports": [{"name": _PORT_NAME, "port": port, "protocol": "TCP"}],
            }
            for port, group in groupby(servers, key=lambda server: server.port)
        ]
        # The EndpointSlice is our own, so the mirroring controller must not make one.
        labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
        await self._ensure(info, {"metadata": {"name": NAME, "labels": labels}, "subsets": subsets})

    async def _ensure_endpoint_slice(self, servers: Sequence[Address]) -> None:
        """Write the addresses of the first server's port and family: a slice has one of each."""
        info = self._registry.kinds.lookup("discovery.k8s.io", "v1", "endpointslices")
        port, version = servers[0].port, ipaddress.ip_address(servers[0].ip).version
        listed = [s.ip for s in servers if s.port == port and ipaddress.ip_address(s.ip).version == version]
        desired: Object = {
            "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
            "addressType": "IPv6" if version == 6 else "IPv4",
            "endpoints": [{"addresses": [ip], "conditions": {"ready": True}} for ip in listed],
            "ports": [{"name": _PORT_NAME, "port": port, "protocol": "TCP"}],
        }
        live = await self._read(info)
        if live is not None and live.get("addressType") != desired["addressType"]:
            await self._registry.delete(info, NAMESPACE, NAME, DeleteOptions())  # the type cannot be changed
        await self._ensure(info, desired)

    async def _ensure(self, info: KindInfo, desired: Object) -> None:
        """Create the object, or replace its content when it differs; other labels and annotations are kept."""
        live = await self._read(info)
        if live is None:
            await self._create(info, desired)
            return
        labels = {**(live["metadata"].get("labels") or {}), **desired["metadata"]["labels"]}
        content = {key: value for key, value in desired.items() if key != "metadata"}
        corrected = {**live, **content, "metadata": {**live["metadata"], "labels": labels}}
        if corrected != live:
            await self._registry.update(info, NAMESPACE, NAME, corrected, _OPTIONS)

    async def _read(self, info: KindInfo) -> Object | None:
        try:
            value = await self._registry.get(info, NAMESPACE, NAME)
        except NotFound:
            return None
        live: Object = orjson.loads(value)
        return live

    async def _create(self, info: KindInfo, obj: Object) -> None:
        await self._registry.create(info, NAMESPACE, {**obj, "metadata": dict(obj["metadata"])}, _OPTIONS)


def advertised_address(host: str, advertise_address: str = "") -> str:
    """Return the IP address that endpoints name for a server that listens on `host`, "" if the machine has none.

    It is `advertise_address`, or `host`. Endpoints cannot name a loopback or unspecified address: it is replaced by
    that of the interface with the default route, as in kube-apiserver.
    """
    for given in (advertise_address, host):
        try:
            address = ipaddress.ip_address(given)
        except ValueError:
            continue
        if not (address.is_unspecified or address.is_loopback):
            return str(address)
    return _interface_address(socket.AF_INET, "192.0.2.1") or _interface_address(socket.AF_INET6, "2001:db8::1")


def _interface_address(family: socket.AddressFamily, destination: str) -> str:
    """Return the local address of the route to a destination; connecting a datagram socket sends nothing."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((destination, 9))
            found: Any = probe.getsockname()[0]
    except OSError:
        return ""
    address = ipaddress.ip_address(found)
    return "" if address.is_unspecified or address.is_loopback or address.is_link_local else str(address)
