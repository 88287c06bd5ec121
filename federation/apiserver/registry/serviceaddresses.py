"""Allocation of cluster IPs and node ports to Services.

The search for a free address starts at a hash of the Service's name, so that the same manifests get the same
addresses. Allocations are kept in memory, loaded from the store at first use and kept up to date by a watch. Two
processes that allocate at the same moment may choose the same address; nothing routes by it on a host API, so there is
no lock between processes.
"""

import zlib
from collections.abc import Iterable
from ipaddress import ip_address, ip_network
from typing import Any

from federation.apimachinery.errors import InternalError, invalid
from federation.apimachinery.fielderrors import invalid as invalid_field
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.defaults.servicefamilies import (
    FAMILIES,
    HEADLESS,
    addresses_of,
    family_of,
    has_health_check,
)
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.verbs.context import VerbContext, run_hook

_PREFIX = "/core/services/"
_RESERVED_ADDRESSES = 16
"""Addresses at the start of the network that are given only on request, for example to DNS."""


class ServiceAddresses:
    """The allocator; one per registry. A `Hook` of the kind Service."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context
        options = context.options
        self._networks = {
            FAMILIES[0]: ip_network(options.service_network),
            FAMILIES[1]: ip_network(options.service_network_ipv6),
        }
        self._first_port, self._last_port = context.options.node_ports
        self._owners: dict[str | int, str] = {}
        self._allocated: dict[str, list[str | int]] = {}
        self._is_loaded = False
        context.hooks[_PREFIX] = self

    async def run(self) -> None:
        """Watch the allocations of other processes until cancelled."""
        await run_hook(self._context.store, _PREFIX, await self._load(), self)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        await self._allocate(obj, dry_run=dry_run)

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        del old
        await self._allocate(new, dry_run=dry_run)

    def written(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        allocated = list(_allocations(obj["spec"]))
        for released in set(self._allocated.get(uid, ())) - set(allocated):
            self._owners.pop(released, None)
        self._allocated[uid] = allocated
        for resource in allocated:
            self._owners.setdefault(resource, uid)

    def removed(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for resource in self._allocated.pop(uid, ()):
            if self._owners.get(resource) == uid:
                del self._owners[resource]

    async def _load(self) -> int:
        page = await self._context.store.list(_PREFIX)
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
        if spec.get("clusterIP") == HEADLESS:
            spec["clusterIPs"] = [HEADLESS]
        else:
            self._allocate_addresses(obj, uid)
        wants_ports = spec["type"] == "NodePort" or (
            spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True)
        )
        if wants_ports:
            self._allocate_ports(obj, uid)
        if has_health_check(spec):
            self._allocate_health_check(obj, uid)
        if not dry_run:
            self.written(obj)

    def _allocate_addresses(self, obj: Object, uid: str) -> None:
        """Check the addresses of a Service, and add those of families that have none yet."""
        spec = obj["spec"]
        found = addresses_of(spec)
        for index, address in enumerate(found):
            self._check_address(obj, address, uid, index)
        families = spec.get("ipFamilies") or [FAMILIES[0]]
        found += [self._free_address(obj, family) for family in families[len(found) :]]
        spec["clusterIP"], spec["clusterIPs"] = found[0], found

    def _allocate_health_check(self, obj: Object, uid: str) -> None:
        spec = obj["spec"]
        taken = {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}
        if not spec.get("healthCheckNodePort"):
            spec["healthCheckNodePort"] = self._free_port(obj, taken)
        else:
            self._check_port(obj, spec["healthCheckNodePort"], uid, "spec.healthCheckNodePort")

    def _allocate_ports(self, obj: Object, uid: str) -> None:
        taken: set[int] = {obj["spec"].get("healthCheckNodePort") or 0}
        for index, port in enumerate(obj["spec"].get("ports") or ()):
            if not port.get("nodePort"):
                port["nodePort"] = self._free_port(obj, taken)
            else:
                self._check_port(obj, port["nodePort"], uid, f"spec.ports[{index}].nodePort")
            taken.add(port["nodePort"])

    def _free_address(self, obj: Object, family: str) -> str:
        network = self._networks[family]
        size = network.num_addresses - _RESERVED_ADDRESSES - 1
        start = _search_start(obj, size)
        for step in range(size):
            address = str(network[_RESERVED_ADDRESSES + (start + step) % size])
            if address not in self._owners:
                return address
        raise InternalError(f"no free cluster IP in {network}")

    def _free_port(self, obj: Object, taken: set[int]) -> int:
        size = self._last_port - self._first_port + 1
        start = _search_start(obj, size)
        for step in range(size):
            port = self._first_port + (start + step) % size
            if port not in self._owners and port not in taken:
                return port
        raise InternalError(f"no free node port in {self._first_port}-{self._last_port}")

    def _check_address(self, obj: Object, address: str, uid: str, index: int) -> None:
        shown = obj["spec"].get("clusterIPs") or [address]
        network = self._networks[family_of(address)]
        try:
            is_inside = ip_address(address) in network
        except ValueError:
            text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
            raise _refused(obj, f"spec.clusterIPs[{index}]", address, text) from None
        if not is_inside:
            text = (
                f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of"
                f" valid IPs is {network}"
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


def _allocations(spec: dict[str, Any]) -> Iterable[str | int]:
    yield from addresses_of(spec)
    if port_number := spec.get("healthCheckNodePort"):
        yield port_number
    for port in spec.get("ports") or ():
        if number := port.get("nodePort"):
            yield number


def _search_start(obj: Object, size: int) -> int:
    metadata = obj["metadata"]
    return zlib.crc32(f"{metadata.get('namespace')}/{metadata['name']}".encode()) % size


def _refused(obj: Object, field: str, value: Any, text: str) -> Exception:
    return invalid("Service", "", obj["metadata"]["name"], [invalid_field(field, value, text)])
