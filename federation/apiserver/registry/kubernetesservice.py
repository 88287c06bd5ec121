"""The Service `default/kubernetes` and its endpoints: how clients find the API server from its own objects.

The same objects as kube-apiserver's kubernetes service controller keeps: a Service at the first address of the service
network, an Endpoints object and an EndpointSlice with the server's address. They are checked at an interval; an
existing Service is left as it is. The objects stay at shutdown, so a restart at the same address writes nothing.
"""

import contextlib
import ipaddress
import socket
from typing import Any, Final

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import AlreadyExists, Conflict, Invalid, NotFound
from federation.apimachinery.resources import SERVICES, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions

NAMESPACE, NAME = "default", "kubernetes"
INTERVAL_S: Final = 10.0
"""kube-apiserver's interval."""
_PORT_NAME: Final = "https"
_OPTIONS = WriteOptions(field_manager="federation-apiserver")


class KubernetesService:
    """Keeps the objects of one registry."""

    def __init__(self, registry: Registry, *, address: str, port: int, clock: Clock) -> None:
        self._registry = registry
        self._address = address
        self._port = port
        self._clock = clock

    async def run(self) -> None:
        """Correct the objects at an interval, until cancelled."""
        while True:
            # Another writer was faster; the next round reads the newer state.
            with contextlib.suppress(AlreadyExists, Conflict, NotFound):
                await self.reconcile()
            await self._clock.sleep(INTERVAL_S)

    async def reconcile(self) -> None:
        """Create or correct the objects; without an address, only the Service."""
        await self._ensure_service()
        if self._address:
            await self._ensure_endpoints()
            await self._ensure_endpoint_slice()

    async def _ensure_service(self) -> None:
        info = self._registry.kinds.lookup("", "v1", SERVICES.plural)
        if await self._read(info) is not None:
            return
        port = {"name": _PORT_NAME, "protocol": "TCP", "port": 443, "targetPort": self._port}
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

    async def _ensure_endpoints(self) -> None:
        info = self._registry.kinds.lookup("", "v1", "endpoints")
        port = {"name": _PORT_NAME, "port": self._port, "protocol": "TCP"}
        subsets = [{"addresses": [{"ip": self._address}], "ports": [port]}]
        # The EndpointSlice is our own, so the mirroring controller must not make one.
        labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
        await self._ensure(info, {"metadata": {"name": NAME, "labels": labels}, "subsets": subsets})

    async def _ensure_endpoint_slice(self) -> None:
        info = self._registry.kinds.lookup("discovery.k8s.io", "v1", "endpointslices")
        is_ipv6 = ipaddress.ip_address(self._address).version == 6
        desired: Object = {
            "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
            "addressType": "IPv6" if is_ipv6 else "IPv4",
            "endpoints": [{"addresses": [self._address], "conditions": {"ready": True}}],
            "ports": [{"name": _PORT_NAME, "port": self._port, "protocol": "TCP"}],
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
