"""Devices of a member grouped into kinds, which selectors cannot tell apart. Pure.

Devices of a kind are equal in driver, attributes and capacities. A serial number makes each device unique, and no
selector that is written for a fleet asks for it. So attributes with many values are omitted, those with few values
first, until there are at most 16 kinds for each driver. An expression that reads an omitted attribute fails, and
selects nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import orjson

from federation.apimachinery.resources import Object
from federation.planning.clusters.names import DEVICE_KIND_PREFIX
from federation.planning.clusters.nodeclasses import classify

Value = tuple[str, str | int | bool]
"""The type of a value, and the value: string, int, bool, version or quantity."""
Identity = tuple[str, str, str]
_DRIVERS_MAX = 4
_OTHER_DRIVERS = "other"
"""Stands for the drivers of a member beyond that."""
_UNIQUE_MIN = 4
"""Devices from which on an attribute that is different for all of them is omitted."""
_ATTRIBUTE, _CAPACITY = "a/", "c/"


@dataclass(frozen=True, eq=False)
class Kind:
    """Devices that selectors cannot tell apart. `resource` is the name under which they are counted.

    `displaced` says how many devices of other kinds cannot be used any more when one of this kind is allocated.
    """

    driver: str
    values: tuple[tuple[str, Value], ...]
    classes: tuple[str, ...] = ()
    displaced: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """What selectors can see of the devices, as a hash: results of expressions are cached by it."""
        return blake2b(orjson.dumps((self.driver, self.values)), digest_size=8).hexdigest()

    @property
    def resource(self) -> str:
        """The name of the resource whose amounts are these devices."""
        return f"{DEVICE_KIND_PREFIX}{self.digest}"

    def with_classes(self, classes: tuple[str, ...]) -> "Kind":
        """Return the kind with the classes that it belongs to."""
        return replace(self, classes=classes)

    def with_displaced(self, displaced: Mapping[str, int]) -> "Kind":
        """Return the kind with what one device of it displaces."""
        return replace(self, displaced=displaced)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The variable `device` of CEL expressions."""
        attributes: dict[str, dict[str, Any]] = {}
        capacity: dict[str, dict[str, Any]] = {}
        for key, (type_, value) in self.values:
            domain, _, name = key[len(_ATTRIBUTE) :].partition("/")
            if key.startswith(_CAPACITY):
                capacity.setdefault(domain, {})[name] = {"quantity": value}
            else:
                attributes.setdefault(domain, {})[name] = {"semver": value} if type_ == "version" else value
        # A domain that a device does not have is an empty map in Kubernetes, unknown names in it are errors.
        return {"driver": self.driver, "attributes": attributes, "capacity": capacity}

    def to_status(self, resource: str) -> Object:
        """Return the entry of `status.resources.devices`."""
        entry: Object = {"resource": resource, "driver": self.driver}
        attributes = {key[2:]: {type_: value} for key, (type_, value) in self.values if key.startswith(_ATTRIBUTE)}
        capacity = {key[2:]: value for key, (_, value) in self.values if key.startswith(_CAPACITY)}
        if attributes:
            entry["attributes"] = attributes
        if capacity:
            entry["capacity"] = capacity
        if self.classes:
            entry["classes"] = list(self.classes)
        if self.displaced:
            entry["displaces"] = dict(self.displaced)
        return entry


def kinds_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Kind]:
    """Return the kinds of `status.resources.devices` by resource."""
    found = {}
    for entry in entries:
        values: list[tuple[str, Value]] = [
            (f"{_ATTRIBUTE}{key}", (type_, value))
            for key, typed in (entry.get("attributes") or {}).items()
            for type_, value in typed.items()
        ]
        values += [(f"{_CAPACITY}{key}", ("quantity", value)) for key, value in (entry.get("capacity") or {}).items()]
        displaced = {str(name): int(count) for name, count in (entry.get("displaces") or {}).items()}
        classes = tuple(map(str, entry.get("classes") or ()))
        found[str(entry["resource"])] = Kind(str(entry["driver"]), tuple(sorted(values)), classes, displaced)
    return found


def group_by_kind(devices: Mapping[Identity, tuple[str, Mapping[str, Value]]]) -> dict[Identity, Kind]:
    """Return the kind of each device, of which the driver and all values are given."""
    by_driver: dict[str, dict[Identity, Mapping[str, Value]]] = {}
    for device, (driver, values) in devices.items():
        by_driver.setdefault(driver, {})[device] = values
    found: dict[Identity, Kind] = {}
    # A member with more drivers than that is no real one: the drivers with most devices count.
    ordered = sorted(by_driver.items(), key=lambda entry: (-len(entry[1]), entry[0]))
    for at, (driver, members) in enumerate(ordered):
        if at >= _DRIVERS_MAX:
            found |= dict.fromkeys(members, Kind(_OTHER_DRIVERS, ()))
            continue
        unique = _unique(members.values())
        alike: dict[tuple[tuple[str, Value], ...], list[Identity]] = {}
        for device, values in members.items():
            kept = tuple([entry for entry in values.items() if entry[0] not in unique])
            alike.setdefault(kept, []).append(device)
        # Distinct values are compared, and not devices, of which there may be thousands.
        texts = {str(at): ({key: str(value) for key, value in kept}, ()) for at, kept in enumerate(alike)}
        classes, omitted = classify(texts)
        left_out, known = frozenset(omitted), dict[Any, Kind]()
        for place, (kept, same) in enumerate(alike.items()):
            key = classes[str(place)]
            if key not in known:
                known[key] = Kind(driver, tuple(sorted(entry for entry in kept if entry[0] not in left_out)))
            found |= dict.fromkeys(same, known[key])
    return found


def _unique(devices: Collection[Mapping[str, Value]]) -> frozenset[str]:
    """Return the attributes of which each device has a value of its own, such as its serial number."""
    if len(devices) < _UNIQUE_MIN:
        return frozenset()
    found: dict[str, set[Value]] = {}
    for values in devices:
        for key, value in values.items():
            found.setdefault(key, set()).add(value)
    return frozenset(key for key, values in found.items() if len(values) == len(devices))
