"""The servers of this database: each renews a Lease in kube-system with its address, like kube-apiserver.

A Lease counts until it was not renewed for its duration, by the clock of the server that looks at it.
"""

import contextlib
from dataclasses import dataclass

import orjson

from federation.apimachinery.clock import Clock, to_rfc3339_micro
from federation.apimachinery.errors import AlreadyExists, ApiError, NotFound
from federation.apimachinery.resources import LEASES, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, WriteOptions

NAMESPACE = "kube-system"
IDENTITY_LABEL = "apiserver.kubernetes.io/identity"
_IDENTITY = "federation-apiserver"
_ADDRESS = "apiserver.kubernetes.io/address"
_DURATION_S = 30
_FORGOTTEN_S = 3_600.0
"""The Lease of a server that is silent for so long is removed."""
_OPTIONS = WriteOptions(field_manager="federation-apiserver")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where one server is reached."""

    port: int
    ip: str


class ServerLeases:
    """The Leases of all servers; `identity` names this one."""

    def __init__(self, registry: Registry, identity: str, own: Address, clock: Clock) -> None:
        self._registry = registry
        self._name = f"{_IDENTITY}-{identity}"
        self._own = own
        self._clock = clock
        self._seen: dict[str, tuple[str, float]] = {}

    async def renew(self) -> None:
        """Create or renew this server's Lease."""
        info = self._registry.kinds.lookup(LEASES.group, LEASES.version, LEASES.plural)
        now = to_rfc3339_micro(self._clock.now())
        spec = {"holderIdentity": self._name, "leaseDurationSeconds": _DURATION_S, "renewTime": now}
        try:
            lease: Object = orjson.loads(await self._registry.get(info, NAMESPACE, self._name))
            await self._registry.update(
                info, NAMESPACE, self._name, {**lease, "spec": {**lease["spec"], **spec}}, _OPTIONS
            )
        except NotFound:
            metadata = {
                "name": self._name,
                "labels": {IDENTITY_LABEL: _IDENTITY},
                "annotations": {_ADDRESS: f"{self._own.ip} {self._own.port}"},
            }
            with contextlib.suppress(AlreadyExists):
                await self._registry.create(info, NAMESPACE, {"metadata": metadata, "spec": spec}, _OPTIONS)

    async def live(self) -> list[Address]:
        """Return the addresses of all servers that renew their Leases, this one included, in order."""
        info = self._registry.kinds.lookup(LEASES.group, LEASES.version, LEASES.plural)
        page = await self._registry.list(info, NAMESPACE, ListOptions(label_selector=f"{IDENTITY_LABEL}={_IDENTITY}"))
        now_s, seen, found = self._clock.monotonic(), {}, {self._own}
        for value in page.items:
            lease: Object = orjson.loads(value)
            name, spec = lease["metadata"]["name"], lease.get("spec") or {}
            renewed = str(spec.get("renewTime", ""))
            before = self._seen.get(name)
            seen[name] = before if before is not None and before[0] == renewed else (renewed, now_s)
            address, silent_s = _address_of(lease), now_s - seen[name][1]
            if address is not None and silent_s < float(spec.get("leaseDurationSeconds") or _DURATION_S):
                found.add(address)
            elif silent_s >= _FORGOTTEN_S:
                await self._remove(name)
        self._seen = seen
        return sorted(found)

    async def release(self) -> None:
        """Remove this server's Lease, so that clients are not sent here any more."""
        await self._remove(self._name)

    async def _remove(self, name: str) -> None:
        info = self._registry.kinds.lookup(LEASES.group, LEASES.version, LEASES.plural)
        with contextlib.suppress(ApiError):
            await self._registry.delete(info, NAMESPACE, name, DeleteOptions())


def _address_of(lease: Object) -> Address | None:
    ip, _, port = str((lease["metadata"].get("annotations") or {}).get(_ADDRESS, "")).partition(" ")
    return Address(int(port), ip) if ip and port.isdigit() else None
