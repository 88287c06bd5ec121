"""The simulated load balancers: an address for each Service of type LoadBalancer and for each Ingress.

Addresses come from 100.64.0.0/10, which no network routes; each member has a block of 8192, chosen by its name, so that
two members rarely give the same address. An address stays with its object and is free again when the object is gone.
"""

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any

from federation.apimachinery.resources import INGRESSES, SERVICES, Object, Resource
from federation.runtime.controller import Controller, Key, Result, key_of
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.memberparts import Member

_DONE = Result()
_BLOCK = 8192
_FIRST = 100 << 24 | 64 << 16


class LoadBalancerController:
    """Reconciles the addresses of Services and Ingresses of one member."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._informers = {kind: member.cache(kind) for kind in (SERVICES, INGRESSES)}
        self._pool = AddressPool(_FIRST + zlib.crc32(member.name.encode()) % 512 * _BLOCK, _BLOCK)
        # One worker: addresses are given one after the other, so that runs repeat.
        self.controller = Controller[tuple[Resource, Key]](
            "sim-loadbalancer", self._reconcile, workers=1, clock=member.clock
        )
        for resource, informer in self._informers.items():
            informer.add_handler(partial(self._changed, resource))

    def _changed(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        if new is None:
            for address in _addresses(old or {}):
                self._pool.release(address)
            return
        for address in _addresses(new):
            self._pool.take(address)
        if _wants_address(resource, new) != bool(_addresses(new)):
            self.controller.enqueue((resource, key_of(new)))

    async def _reconcile(self, request: tuple[Resource, Key]) -> Result:
        resource, key = request
        informer = self._informers[resource]
        obj = informer.get(key.namespace, key.name)
        if obj is None or podsof.is_terminating(obj):
            return _DONE
        held = _addresses(obj)
        if _wants_address(resource, obj) == bool(held):
            return _DONE
        balancer: Object = {}
        if not held:
            entry = {"ip": self._pool.next(_requested(obj))}
            balancer = {"ingress": [{**entry, "ipMode": "VIP"} if resource is SERVICES else entry]}
        status = {**(obj.get("status") or {}), "loadBalancer": balancer}
        await podsof.write_status(self._client, informer, resource, obj, status)
        for address in held:
            self._pool.release(address)
        return _DONE


class AddressPool:
    """The IPv4 addresses of one block; the first and the last are never given."""

    def __init__(self, first: int, size: int) -> None:
        self._first, self._size = first, size
        self._taken: set[str] = set()
        self._hint = 1
        """No address before this one is free."""

    def take(self, address: str) -> None:
        """Mark an address as used."""
        self._taken.add(address)

    def release(self, address: str) -> None:
        """Mark an address as free."""
        self._taken.discard(address)
        number = _to_number(address) - self._first
        if 1 <= number < self._hint:
            self._hint = number

    def next(self, wanted: str = "") -> str:
        """Take and return the wanted address if it is free, else the lowest free one; more than the block is shared."""
        if wanted and wanted not in self._taken:
            self._taken.add(wanted)
            return wanted
        while _to_text(self._first + self._hint) in self._taken and self._hint < self._size - 2:
            self._hint += 1
        address = _to_text(self._first + self._hint)
        self._taken.add(address)
        return address


def _wants_address(resource: Resource, obj: Mapping[str, Any]) -> bool:
    """Return True for an object that somebody outside the cluster reaches; other classes have other controllers."""
    if resource is INGRESSES:
        return True
    return obj["spec"].get("type") == "LoadBalancer" and not obj["spec"].get("loadBalancerClass")


def _requested(obj: Mapping[str, Any]) -> str:
    return str(obj["spec"].get("loadBalancerIP") or "")


def _addresses(obj: Mapping[str, Any]) -> list[str]:
    entries = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [each["ip"] for each in entries if each.get("ip")]


def _to_text(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _to_number(address: str) -> int:
    parts = address.split(".")
    if len(parts) != 4 or not all(part.isdecimal() for part in parts):
        return 0
    return sum(int(part) << shift for part, shift in zip(parts, (24, 16, 8, 0), strict=True))
