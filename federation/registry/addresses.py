"""What Services are given: cluster IPs and node ports, each to one Service only.

A free address is looked for from a place that the Service's name decides, so that the same manifests get the same
addresses. Who has what is kept in memory, loaded from the store at first need and kept current by a watch. Two
processes that allocate in the same instant could choose the same address; on a host API nothing routes by it, so no
lock spans them.
"""

import zlib
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from typing import Any

from federation.api.resources import Object
from federation.base.errors import InternalError, invalid
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.validation.fields import invalid as invalid_field
from federation.store.interface import EventType

_PREFIX = "/core/services/"
_RESERVED_ADDRESSES = 16
"""The first addresses of the network are left to those who ask for them: the API server's own, DNS."""


class ServiceAddresses:
    """The allocator; one per registry. A `Hook` of the kind Service."""

    def __init__(self, access: Access) -> None:
        self._access = access
        network = ip_network(access.options.service_network)
        assert isinstance(network, IPv4Network)
        self._network = network
        self._first_port, self._last_port = access.options.node_ports
        self._owners: dict[str | int, str] = {}
        self._held: dict[str, list[str | int]] = {}
        self._is_loaded = False
        access.hooks[_PREFIX] = self

    async def run(self) -> None:
        """Follow what other processes allocate and release, until cancelled."""
        revision = await self._load()
        async for batch in self._access.store.watch(_PREFIX, revision):
            for event in batch:
                obj = encoding.decode(event.value)
                if event.type is EventType.DELETED:
                    self.removed(obj)
                else:
                    self.written(obj)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        await self._allocate(obj, dry_run=dry_run)

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        del old
        await self._allocate(new, dry_run=dry_run)

    def written(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        holds = list(_resources_of(obj["spec"]))
        for gone in set(self._held.get(uid, ())) - set(holds):
            self._owners.pop(gone, None)
        self._held[uid] = holds
        for resource in holds:
            self._owners.setdefault(resource, uid)

    def removed(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for resource in self._held.pop(uid, ()):
            if self._owners.get(resource) == uid:
                del self._owners[resource]

    async def _load(self) -> int:
        page = await self._access.store.list(_PREFIX)
        for entry in page.entries:
            self.written(encoding.decode(entry.value))
        self._is_loaded = True
        return page.revision

    async def _allocate(self, obj: Object, *, dry_run: bool) -> None:
        if not self._is_loaded:
            await self._load()
        spec = obj["spec"]
        if spec["type"] == "ExternalName":
            for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                spec.pop(field, None)
            return
        uid = obj["metadata"]["uid"]
        if not spec.get("clusterIP") and spec.get("clusterIPs"):
            spec["clusterIP"] = spec["clusterIPs"][0]
        if not spec.get("clusterIP"):
            spec["clusterIP"] = self._free_address(obj)
        elif spec["clusterIP"] != "None":
            self._check_address(obj, spec["clusterIP"], uid)
        spec["clusterIPs"] = [spec["clusterIP"]]
        wants_ports = spec["type"] == "NodePort" or (
            spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)
        )
        if wants_ports:
            self._allocate_ports(obj, uid)
        if not dry_run:
            self.written(obj)

    def _allocate_ports(self, obj: Object, uid: str) -> None:
        taken: set[int] = set()
        for index, port in enumerate(obj["spec"].get("ports") or ()):
            if not port.get("nodePort"):
                port["nodePort"] = self._free_port(obj, taken)
            else:
                self._check_port(obj, port["nodePort"], uid, f"spec.ports[{index}].nodePort")
            taken.add(port["nodePort"])

    def _free_address(self, obj: Object) -> str:
        size = self._network.num_addresses - _RESERVED_ADDRESSES - 1
        start = _place(obj, size)
        first = int(self._network.network_address) + _RESERVED_ADDRESSES
        for step in range(size):
            address = str(IPv4Address(first + (start + step) % size))
            if address not in self._owners:
                return address
        raise InternalError(f"no free cluster IP in {self._network}")

    def _free_port(self, obj: Object, taken: set[int]) -> int:
        size = self._last_port - self._first_port + 1
        start = _place(obj, size)
        for step in range(size):
            port = self._first_port + (start + step) % size
            if port not in self._owners and port not in taken:
                return port
        raise InternalError(f"no free node port in {self._first_port}-{self._last_port}")

    def _check_address(self, obj: Object, address: str, uid: str) -> None:
        shown = [address]
        try:
            is_inside = ip_address(address) in self._network
        except ValueError:
            raise _refused(
                obj, "spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            ) from None
        if not is_inside:
            text = (
                f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of"
                f" valid IPs is {self._network}"
            )
            raise _refused(obj, "spec.clusterIPs", shown, text)
        if self._owners.get(address, uid) != uid:
            text = f"failed to allocate IP {address}: provided IP is already allocated"
            raise _refused(obj, "spec.clusterIPs", shown, text)

    def _check_port(self, obj: Object, port: int, uid: str, field: str) -> None:
        if not self._first_port <= port <= self._last_port:
            valid = f"{self._first_port}-{self._last_port}"
            text = f"provided port is not in the valid range. The range of valid ports is {valid}"
            raise _refused(obj, field, port, text)
        if self._owners.get(port, uid) != uid:
            raise _refused(obj, field, port, "provided port is already allocated")


def _resources_of(spec: dict[str, Any]) -> Iterable[str | int]:
    if (address := spec.get("clusterIP")) and address != "None":
        yield address
    for port in spec.get("ports") or ():
        if number := port.get("nodePort"):
            yield number


def _place(obj: Object, size: int) -> int:
    metadata = obj["metadata"]
    return zlib.crc32(f"{metadata.get('namespace')}/{metadata['name']}".encode()) % size


def _refused(obj: Object, field: str, value: Any, text: str) -> Exception:
    return invalid("Service", "", obj["metadata"]["name"], [invalid_field(field, value, text)])
