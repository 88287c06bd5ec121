"""The devices of a member, from its ResourceSlices, DeviceClasses and the allocations of its ResourceClaims. Pure.

Devices of one node count; devices that several nodes share are left out, and so are devices with a taint, pools whose
slices are not complete, and what exceeds the limits: the numbers are lower bounds. Devices with equal attributes and
capacities are a kind (`devicekinds.py`). For each node the inventory has the number of devices of each kind and of each
class, in all and free, as amounts of resources that only we know, so that everything that counts resources counts
devices. Partitions of one device share counters (`devicecounters.py`).

Memory is bounded: of a slice only what is read is kept, once for devices that are equal, at most `DEVICES_MAX` of them.

Decision: docs/decisions/0162-devices-are-counted-as-resources.md
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import Object
from federation.planning.clusters.devicecounters import Consumption, CounterPools, Partition
from federation.planning.clusters.devicekinds import Kind, Value, group_by_kind

DEVICES_MAX = 32_768
"""Devices of one member that are counted."""
SLICES_MAX = 16_384
_PARTITIONS_MAX = 8_192
"""Partitions of devices; each is compared with the counters of its device."""
_CLASSES_MAX = 64
_SELECTORS_MAX = 32
_CLAIMS_MAX = 65_536
_FIELDS_MAX = 32
"""Attributes and capacities of one device; as API servers admit them."""
_TEXT_MAX = 128
_NAME_MAX = 253
_CONSUMED_MAX = 64
_EVALUATIONS_MAX = 1_000
"""Expressions that are evaluated for one count: selectors of classes times kinds. What is left is in no class."""
CLASS_SUFFIX = ".deviceclass.resource.k8s.io/devices"
"""After the name of a class: the resource of its devices, as in Kubernetes' own quotas."""

Selects = Callable[[str, Kind], bool]
"""Returns whether a CEL expression selects a device of a kind; an expression that fails selects none."""
DeviceId = tuple[str, str, str]
"""Driver, pool and name."""
Amounts = dict[str, int]


def class_resource(name: str) -> str:
    """Return the resource whose amounts are the devices of a class."""
    return f"{name}{CLASS_SUFFIX}"


class _Device(NamedTuple):
    """One device as its slice has it; equal attributes and capacities are the same object."""

    name: str
    node: str
    values: Mapping[str, Value]
    consumes: Consumption


@dataclass(frozen=True, slots=True)
class _Slice:
    """What is read of a ResourceSlice."""

    pool: tuple[str, str]
    generation: int
    count: int
    devices: tuple[_Device, ...]
    counters: Mapping[str, Mapping[str, int]]

    @property
    def partitions(self) -> int:
        """The devices that consume counters."""
        return sum(1 for device in self.devices if device.consumes)


@dataclass(slots=True)
class NodeDevices:
    """The devices of one node: in all and allocated, by resource."""

    whole: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)


class _Counted(NamedTuple):
    """A device as it is counted: under the resource of its kind."""

    device: DeviceId
    resource: str
    consumes: Consumption


@dataclass(frozen=True, slots=True)
class _Structure:
    """The devices of a member without their allocations; `names` has the resources that a kind counts for."""

    nodes: Mapping[str, list[_Counted]]
    kinds: Mapping[str, Kind]
    names: Mapping[str, tuple[str, ...]]
    pools: CounterPools

    def count(
        self, counts: Mapping[tuple[str, bool], int], partitions: list[_Counted], used: set[DeviceId]
    ) -> NodeDevices:
        """Return what one node has: whole devices by kind and whether they are used, and partitions one by one."""
        whole, taken = Counter[str](), Counter[str]()
        for (resource, is_used), count in counts.items():
            for name in self.names[resource]:
                whole[name] += count
                taken[name] += count * is_used
        groups: dict[str, list[Partition]] = {}
        for each in partitions:
            for name in self.names[each.resource]:
                groups.setdefault(name, []).append((each.device, each.consumes))
        gone = [(each.device, each.consumes) for each in partitions if each.device in used]
        for name, members in groups.items():
            most = self.pools.count(members, ())
            free = self.pools.count([each for each in members if each[0] not in used], gone)
            whole[name] += most
            taken[name] += most - free
        return NodeDevices(dict(whole), dict(taken))


@dataclass(frozen=True, slots=True)
class Devices:
    """The result: amounts by node, and the kinds by the resource that has their amounts."""

    nodes: Mapping[str, NodeDevices]
    kinds: Mapping[str, Kind]

    def to_status(self) -> list[Object]:
        """Return `status.resources.devices` of a FederatedCluster."""
        return [kind.to_status(resource) for resource, kind in self.kinds.items()]


class DeviceInventory:
    """The devices of one member, updated object by object; `devices` counts them."""

    def __init__(self, selects: Selects) -> None:
        self._selects = selects
        self._slices: dict[str, _Slice] = {}
        self._classes: dict[str, tuple[str, ...]] = {}
        self._allocated: dict[tuple[str, str], tuple[DeviceId, ...]] = {}
        self._interned: dict[frozenset[tuple[str, Value]], Mapping[str, Value]] = {}
        self._devices = 0
        self._partitions = 0
        self._evaluations = 0
        self._known: _Structure | None = None
        self._counted: Devices | None = None

    def set_slice(self, name: str, source: Mapping[str, Any] | None) -> None:
        """Add or update a ResourceSlice; None removes it."""
        old = self._slices.pop(name, None)
        self._devices -= len(old.devices) if old is not None else 0
        self._partitions -= old.partitions if old is not None else 0
        if source is not None and len(self._slices) < SLICES_MAX:
            found = self._read_slice(source, DEVICES_MAX - self._devices)
            if found is not None and self._partitions + found.partitions <= _PARTITIONS_MAX:
                self._slices[name] = found
                self._devices += len(found.devices)
                self._partitions += found.partitions
        if len(self._interned) > 2 * self._devices + _FIELDS_MAX:
            self._interned = {}
        self._known = self._counted = None

    def set_class(self, name: str, source: Mapping[str, Any] | None) -> None:
        """Add or update a DeviceClass; None removes it."""
        self._classes.pop(name, None)
        if source is not None and len(self._classes) < _CLASSES_MAX:
            selectors = _items((source.get("spec") or {}).get("selectors"), _SELECTORS_MAX)
            texts = [_mapping(each.get("cel")).get("expression") for each in selectors]
            self._classes[name] = tuple(str(text) for text in texts if text)
        self._known = self._counted = None

    def set_claim(self, key: tuple[str, str], source: Mapping[str, Any] | None) -> None:
        """Add or update a ResourceClaim by namespace and name; None removes it."""
        old, new = self._allocated.pop(key, ()), allocated_devices(source or {})
        if new and len(self._allocated) < _CLAIMS_MAX:
            self._allocated[key] = new
        if old != new:
            self._counted = None

    def devices(self) -> Devices | None:
        """Return the devices as of now, None if the member has none."""
        if not self._slices:
            return None
        if self._counted is None:
            self._counted = self._count()
        return self._counted

    # -- counting

    def _structure(self) -> "_Structure":
        """Return what does not depend on allocations."""
        slices, self._evaluations = list(self._complete()), 0
        by_node: dict[str, list[tuple[DeviceId, _Device]]] = {}
        for each in slices:
            for device in each.devices:
                by_node.setdefault(device.node, []).append(((*each.pool, device.name), device))
        kind_of = group_by_kind(
            {device_id: (device_id[0], device.values) for found in by_node.values() for device_id, device in found}
        )
        pools = CounterPools()
        for each in slices:
            pools.add(each.pool, each.counters)
        nodes: dict[str, list[_Counted]] = {}
        for node, found in by_node.items():
            for device_id, device in found:
                resource = kind_of[device_id].resource
                if device.consumes:
                    pools.see(device_id[:2], resource, device.consumes)
                nodes.setdefault(node, []).append(_Counted(device_id, resource, device.consumes))
        kinds = {kind.resource: kind for kind in sorted(set(kind_of.values()), key=lambda kind: kind.resource)}
        kinds = {
            name: kind.with_classes(self._classes_of(kind)).with_displaced(pools.displaced(name, kinds))
            for name, kind in kinds.items()
        }
        names = {name: (name, *map(class_resource, kind.classes)) for name, kind in kinds.items()}
        return _Structure(nodes, kinds, names, pools)

    def _count(self) -> Devices:
        if self._known is None:
            self._known = self._structure()
        structure = self._known
        used = {device_id for claim in self._allocated.values() for device_id in claim}
        alike: dict[Hashable, NodeDevices] = {}
        nodes: dict[str, NodeDevices] = {}
        for node, found in structure.nodes.items():
            counts = Counter((each.resource, each.device in used) for each in found if not each.consumes)
            partitions = [each for each in found if each.consumes]
            key = None if partitions else frozenset(counts.items())
            if key is None or key not in alike:
                alike[key] = structure.count(counts, partitions, used)
            nodes[node] = alike[key]
        return Devices(nodes, structure.kinds)

    def _complete(self) -> Iterator[_Slice]:
        """Yield the slices of the newest generation of each pool that has all of them."""
        newest: dict[tuple[str, str], int] = {}
        for each in self._slices.values():
            newest[each.pool] = max(newest.get(each.pool, 0), each.generation)
        current = [each for each in self._slices.values() if each.generation == newest[each.pool]]
        found: dict[tuple[str, str], int] = {}
        for each in current:
            found[each.pool] = found.get(each.pool, 0) + 1
        return (each for each in current if found[each.pool] == each.count)

    def _classes_of(self, kind: Kind) -> tuple[str, ...]:
        found = (name for name, texts in self._classes.items() if all(self._tries(text, kind) for text in texts))
        return tuple(sorted(found))

    def _tries(self, text: str, kind: Kind) -> bool:
        self._evaluations += 1
        return self._evaluations <= _EVALUATIONS_MAX and self._selects(text, kind)

    # -- reading

    def _read_slice(self, source: Mapping[str, Any], room: int) -> _Slice | None:
        spec = _mapping(source.get("spec"))
        pool, driver, node = _mapping(spec.get("pool")), spec.get("driver"), spec.get("nodeName") or ""
        name = pool.get("name")
        if not isinstance(driver, str) or not isinstance(name, str) or not isinstance(node, str):
            return None
        if len(driver) > _NAME_MAX or len(name) > _NAME_MAX:
            return None
        listed = _items(spec.get("devices"), room)
        devices = (self._read_device(driver, node, each) for each in listed)
        counters = {
            str(each.get("name")): _counters(each.get("counters"))
            for each in _items(spec.get("sharedCounters"), _FIELDS_MAX)
        }
        return _Slice(
            (driver, name),
            _int(pool.get("generation")),
            _int(pool.get("resourceSliceCount")),
            tuple(device for device in devices if device is not None),
            counters,
        )

    def _read_device(self, driver: str, node: str, device: Mapping[str, Any]) -> _Device | None:
        """Return a device, None for one that is not of one node, or that a taint keeps from use."""
        name, node = device.get("name"), node or device.get("nodeName") or ""
        taints = _items(device.get("taints"), _FIELDS_MAX)
        if not isinstance(name, str) or not isinstance(node, str) or not node:
            return None
        if any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in taints):
            return None
        values = dict(_values(driver, device))
        shared = self._interned.setdefault(frozenset(values.items()), values)
        consumes = tuple(
            (str(each.get("counterSet")), tuple(sorted(_counters(each.get("counters")).items())))
            for each in _items(device.get("consumesCounters"), _CONSUMED_MAX)
        )
        return _Device(name[:_TEXT_MAX], node[:_TEXT_MAX], shared, consumes)


def allocated_devices(claim: Mapping[str, Any]) -> tuple[DeviceId, ...]:
    """Return the devices that a ResourceClaim has, without those that it only administers."""
    devices = _mapping(_mapping(_mapping(claim.get("status")).get("allocation")).get("devices"))
    return tuple(
        (str(each.get("driver")), str(each.get("pool")), str(each.get("device")))
        for each in _items(devices.get("results"), _FIELDS_MAX)
        if not each.get("adminAccess")
    )


def read_kind(driver: str, device: Mapping[str, Any]) -> Kind:
    """Return a device with all that selectors can see of it."""
    return Kind(driver, tuple(sorted(_values(driver, device))))


def _values(driver: str, device: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Yield the attributes (`a/DOMAIN/NAME`) and capacities (`c/DOMAIN/NAME`) of a device."""
    for key, value in list(_mapping(device.get("attributes")).items())[:_FIELDS_MAX]:
        for type_ in ("string", "int", "bool", "version"):
            found = _mapping(value).get(type_)
            if isinstance(found, str | int | bool) and len(str(found)) <= _TEXT_MAX:
                yield f"a/{_qualified(driver, key)}", (type_, found)
    for key, value in list(_mapping(device.get("capacity")).items())[:_FIELDS_MAX]:
        amount = _mapping(value).get("value")
        if isinstance(amount, str | int) and len(str(amount)) <= _TEXT_MAX:
            yield f"c/{_qualified(driver, key)}", ("quantity", str(amount))


def _qualified(driver: str, key: str) -> str:
    key = key[: 2 * _TEXT_MAX]
    return key if "/" in key else f"{driver}/{key}"


def _counters(value: Any) -> dict[str, int]:
    """Return counters in thousandths, rounded down; a malformed one is 0."""
    amounts = {}
    for key, entry in list(_mapping(value).items())[:_FIELDS_MAX]:
        try:
            amounts[str(key)[:_TEXT_MAX]] = max(0, parse(_mapping(entry).get("value") or "0").milli)
        except (ValueError, TypeError):
            amounts[str(key)[:_TEXT_MAX]] = 0
    return amounts


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any, items_max: int) -> Iterable[Mapping[str, Any]]:
    return [each for each in value[: max(0, items_max)] if isinstance(each, Mapping)] if isinstance(value, list) else ()


def _int(value: Any) -> int:
    return value if type(value) is int else 0
