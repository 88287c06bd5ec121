"""Watch the devices of one member: its ResourceSlices, DeviceClasses, and the allocations of its ResourceClaims.

Only in members that serve them, and only while the host federates claims: until then nobody can ask for a device.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, Object, Resource
from federation.controllers.cluster.apidiscovery import ServedType
from federation.planning.clusters.clusterresources import Collector
from federation.runtime.members import Members

_DEVICE = ("name", "nodeName", "attributes", "capacity", "consumesCounters", "taints")
_SLICE = ("driver", "pool", "nodeName", "sharedCounters")


class DeviceWatch:
    """Feeds the collector of one member with its devices."""

    def __init__(
        self,
        cluster: str,
        members: Members,
        collector: Collector,
        types: Callable[[], Sequence[FederatedType]],
        changed: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._devices = collector.devices
        self._types = types
        self._changed = changed
        self._is_watching = False

    def ensure(self, served: frozenset[ServedType]) -> None:
        """Begin to watch if the member serves devices and claims are federated."""
        group, version, kind = RESOURCE_SLICES.group, RESOURCE_SLICES.version, RESOURCE_SLICES.kind
        if self._is_watching or (group, version, kind) not in served or not _federates(self._types(), group):
            return
        self._is_watching = True
        transforms = {RESOURCE_SLICES: slim_slice, DEVICE_CLASSES: slim_class, RESOURCE_CLAIMS: slim_claim}
        for resource, transform in transforms.items():
            informer = self._members.ensure_owned_informer(self._cluster, resource, transform)
            if informer is not None:
                informer.add_handler(partial(self._saw, resource))

    def _saw(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        name = str(metadata["name"])
        if resource == RESOURCE_SLICES:
            self._devices.set_slice(name, new)
        elif resource == DEVICE_CLASSES:
            self._devices.set_class(name, new)
        else:
            self._devices.set_claim((str(metadata.get("namespace") or ""), name), new)
        self._changed()


def _federates(types: Iterable[FederatedType], group: str) -> bool:
    return any(type_.resource.group == group for type_ in types)


def slim_slice(source: Object) -> Object:
    """Return what is counted of a ResourceSlice."""
    spec = source.get("spec") or {}
    devices = [_only(device, _DEVICE) for device in spec.get("devices") or () if isinstance(device, Mapping)]
    return {"metadata": _metadata(source), "spec": {**_only(spec, _SLICE), "devices": devices}}


def slim_class(source: Object) -> Object:
    """Return the selectors of a DeviceClass."""
    return {"metadata": _metadata(source), "spec": _only(source.get("spec") or {}, ("selectors",))}


def slim_claim(source: Object) -> Object:
    """Return the allocation of a ResourceClaim."""
    allocation = (source.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or []
    return {"metadata": _metadata(source), "status": {"allocation": {"devices": {"results": results}}}}


def _metadata(source: Object) -> Object:
    return _only(source["metadata"], ("name", "namespace", "resourceVersion"))


def _only(fields: Mapping[str, Any], names: Iterable[str]) -> Object:
    return {name: fields[name] for name in names if name in fields}
