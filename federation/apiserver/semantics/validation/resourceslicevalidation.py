"""Validate ResourceSlices: the pool, where its devices are, and each device with its attributes and capacities.

The rules and limits are those of kube-apiserver; `devicevalidation.py` has those that claims share.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from federation.apimachinery import nameformats
from federation.apimachinery import quantity as quantities
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    immutable,
    invalid,
    required,
    too_long,
    too_many,
)
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.devicevalidation import (
    validate_bindings,
    validate_driver,
    validate_label,
    validate_list,
    validate_pool,
    validate_qualified_name,
    validate_taint,
)

_DEVICES_MAX: Final = 128
_DEVICES_WITH_TAINTS_OR_COUNTERS_MAX: Final = 64
_COUNTER_SETS_MAX: Final = 8
_COUNTERS_MAX: Final = 32
_CONSUMPTIONS_MAX: Final = 2
_ATTRIBUTES_MAX: Final = 32
_TAINTS_MAX: Final = 16
_OPTIONS_MAX: Final = 10
_VALUE_LENGTH_MAX: Final = 64
_VALUES: Final = ("bool", "int", "string", "version")
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_ONE_PLACE: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_PLACE_PER_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true"
    " in the ResourceSlice spec"
)
_NO_PLACE_PER_DEVICE: Final = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the"
    " ResourceSlice spec"
)
_TRUE_OR_UNSET: Final = "must be either unset or set to true"
Fields = Mapping[str, Any]


def validate_slice(obj: Object, old: Object | None = None) -> Causes:
    """Validate a ResourceSlice; driver, pool and node cannot change."""
    spec = obj.get("spec") or {}
    pool, devices = spec.get("pool") or {}, spec.get("devices") or []
    causes = validate_driver(spec.get("driver") or "", "spec.driver") + _validate_pool(pool)
    if old is not None:
        before = old.get("spec") or {}
        causes += immutable("spec.pool.name", pool.get("name"), (before.get("pool") or {}).get("name"))
        for name in ("driver", "nodeName"):
            causes += immutable(f"spec.{name}", spec.get(name), before.get(name))
    causes += _validate_place(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        causes.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    has_limit = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    devices_max = _DEVICES_WITH_TAINTS_OR_COUNTERS_MAX if has_limit else _DEVICES_MAX
    is_per_device = bool(spec.get("perDeviceNodeSelection"))
    causes += validate_list(
        devices, "spec.devices", devices_max, lambda device, field: _validate_device(device, field, is_per_device)
    )
    causes += _validate_unique(devices, "name", "spec.devices")
    counters = spec.get("sharedCounters") or []
    causes += validate_list(counters, "spec.sharedCounters", _COUNTER_SETS_MAX, _validate_counter_set)
    return causes + _validate_unique(counters, "name", "spec.sharedCounters")


def _validate_pool(pool: Fields) -> Causes:
    causes = validate_pool(pool.get("name") or "", "spec.pool.name")
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        causes.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        causes.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return causes


def _validate_place(spec: Fields) -> Causes:
    causes: Causes = []
    found = []
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name == "":
        causes.append(invalid("spec.nodeName", name, "must be either unset or set to a non-empty string"))
    elif name is not None:
        found.append("`nodeName`")
        causes += [invalid("spec.nodeName", name, text) for text in nameformats.dns1123_subdomain(name)]
    if selector is not None:
        found.append("`nodeSelector`")
        if len(terms := selector.get("nodeSelectorTerms") or []) != 1:
            text = "must have exactly one node selector term"
            causes.append(invalid("spec.nodeSelector.nodeSelectorTerms", terms, text))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            found.append(f"`{field}`")
        elif spec.get(field) is False:
            causes.append(invalid(f"spec.{field}", False, _TRUE_OR_UNSET))
    if not found:
        causes.append(required("spec", _ONE_PLACE))
    elif len(found) > 1:
        causes.append(invalid("spec", f"{{{', '.join(found)}}}", f"{_ONE_PLACE}, but multiple fields are set"))
    return causes


def _validate_device(device: Fields, field: str, is_per_device: bool) -> Causes:
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    causes = validate_label(device.get("name") or "", f"{field}.name")
    if (total := len(attributes) + len(capacities)) > _ATTRIBUTES_MAX:
        text = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_MAX}"
        causes.append(invalid(field, total, text))
    causes += _validate_map(attributes, f"{field}.attributes", validate_qualified_name, _validate_attribute)
    is_shared = bool(device.get("allowMultipleAllocations"))

    def capacity(found: Fields, where: str) -> Causes:
        return _validate_capacity(found, where, is_shared=is_shared)

    causes += _validate_map(capacities, f"{field}.capacity", validate_qualified_name, capacity)
    causes += validate_list(device.get("taints"), f"{field}.taints", _TAINTS_MAX, validate_taint)
    consumed = device.get("consumesCounters") or []
    causes += validate_list(consumed, f"{field}.consumesCounters", _CONSUMPTIONS_MAX, _validate_consumption)
    causes += _validate_unique(consumed, "counterSet", f"{field}.consumesCounters")
    return causes + _validate_device_place(device, field, is_per_device) + validate_bindings(device, field)


def _validate_device_place(device: Fields, field: str, is_per_device: bool) -> Causes:
    found = [name for name in ("nodeName", "nodeSelector", "allNodes") if device.get(name) is not None]
    if not is_per_device:
        return [invalid(field, None, _NO_PLACE_PER_DEVICE)] if found else []
    causes: Causes = []
    if device.get("nodeName") == "":
        causes.append(invalid(f"{field}.nodeName", "", "must not be empty"))
        found.remove("nodeName")
    elif name := device.get("nodeName"):
        causes += [invalid(f"{field}.nodeName", name, text) for text in nameformats.dns1123_subdomain(name)]
    if device.get("allNodes") is False:
        causes.append(invalid(f"{field}.allNodes", False, _TRUE_OR_UNSET))
        found.remove("allNodes")
    if not found:
        causes.append(required(field, _ONE_PLACE_PER_DEVICE))
    elif len(found) > 1:
        shown = ", ".join(f"`{name}`" for name in found)
        causes.append(invalid(field, f"{{{shown}}}", _ONE_PLACE_PER_DEVICE))
    return causes


def _validate_attribute(attribute: Fields, field: str) -> Causes:
    found = [name for name in _VALUES if attribute.get(name) is not None]
    causes: Causes = []
    version, text = attribute.get("version"), attribute.get("string")
    if version is not None and not _SEMVER.fullmatch(version):
        message = "must be a string compatible with semver.org spec 2.0.0"
        causes.append(invalid(f"{field}.version", version, message))
    for name, value in (("string", text), ("version", version)):
        if value is not None and len(value.encode()) > _VALUE_LENGTH_MAX:
            causes.append(too_long(f"{field}.{name}", _VALUE_LENGTH_MAX))
    if len(found) != 1:
        causes.append(invalid(field, dict(attribute) if found else "", "exactly one value must be specified"))
    return causes


def _validate_capacity(capacity: Fields, field: str, *, is_shared: bool) -> Causes:
    policy, at = capacity.get("requestPolicy"), f"{field}.requestPolicy"
    if policy is None:
        return []
    if not is_shared:
        return [forbidden(at, "allowMultipleAllocations must be true")]
    options, limits, default = policy.get("validValues") or [], policy.get("validRange"), policy.get("default")
    if options and limits is not None:
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        return [forbidden(at, text)]
    kind = "validValues" if options else "validRange"
    if not options and limits is None:
        return []
    if default is None:
        return [required(f"{at}.default", f"required when {kind} is defined")]
    try:
        largest = quantities.parse(capacity.get("value") or "0").nanos
        if options:
            return _validate_options(options, default, largest, capacity, f"{at}.validValues")
        return _validate_range(limits or {}, default, largest, capacity, f"{at}.validRange")
    except ValueError as error:  # a quantity that is too large to compute with
        return [invalid(at, "", str(error))]


def _validate_options(options: list[Any], default: Any, largest: int, capacity: Fields, field: str) -> Causes:
    if found := too_many(field, options, _OPTIONS_MAX):
        return found
    amounts = [quantities.parse(option).nanos for option in options]
    causes = [
        invalid(f"{field}[{index + 1}]", str(options[index + 1]), "values must be sorted in ascending order")
        for index in range(len(amounts) - 1)
        if amounts[index] > amounts[index + 1]
    ]
    text = f"option is larger than capacity value: {capacity.get('value')}"
    causes += [invalid(f"{field}[{i}]", str(options[i]), text) for i, amount in enumerate(amounts) if amount > largest]
    if quantities.parse(default).nanos not in amounts:
        causes.append(invalid(field, str(default), "default value is not valid according to the requestPolicy"))
    return causes


def _validate_range(limits: Fields, default: Any, largest: int, capacity: Fields, field: str) -> Causes:
    low, high, step = limits.get("min"), limits.get("max"), limits.get("step")
    if low is None:
        return [required(f"{field}.min", "required when validRange is defined")]
    minimum, wanted = quantities.parse(low), quantities.parse(default)
    whole = capacity.get("value")
    causes: Causes = []
    if minimum.nanos > largest:
        causes.append(invalid(f"{field}.min", str(low), f"min is larger than capacity value: {whole}"))
    if wanted < minimum:
        causes.append(invalid(f"{field}.min", str(default), f"default is less than min: {low}"))
    if high is not None:
        maximum = quantities.parse(high)
        if maximum < minimum:
            causes.append(invalid(f"{field}.max", str(low), f"min is larger than max: {high}"))
        if maximum.nanos > largest:
            causes.append(invalid(f"{field}.max", str(high), f"max is larger than capacity value: {whole}"))
        if maximum < wanted:
            causes.append(invalid(f"{field}.max", str(default), f"default is more than max: {high}"))
    if step is None:
        return causes
    if (one := minimum + quantities.parse(step)).nanos > largest:
        causes.append(invalid(f"{field}.step", str(step), f"one step {one} is larger than capacity value: {whole}"))
    size = quantities.parse(step).value
    for value in (default, high):
        if value is not None and (not size or (quantities.parse(value).value - minimum.value) % size):
            text = f"value is not a multiple of a given step ({step}) from ({low})"
            causes.append(invalid(f"{field}.step", str(value), text))
    return causes


def _validate_counter_set(counters: Fields, field: str) -> Causes:
    return validate_label(counters.get("name") or "", f"{field}.name") + _validate_counters(counters, field)


def _validate_consumption(consumption: Fields, field: str) -> Causes:
    causes = validate_label(consumption.get("counterSet") or "", f"{field}.counterSet")
    return causes + _validate_counters(consumption, field)


def _validate_counters(owner: Fields, field: str) -> Causes:
    counters = owner.get("counters") or {}
    if not counters:
        return [required(f"{field}.counters")]
    return too_many(f"{field}.counters", counters, _COUNTERS_MAX) or [
        problem for name in counters for problem in validate_label(name, f"{field}.counters")
    ]


def _validate_map(
    found: Fields, field: str, validate_key: Callable[[str, str], Causes], validate: Callable[[Any, str], Causes]
) -> Causes:
    causes: Causes = []
    for key, value in found.items():
        causes += validate_key(key, field) + validate(value or {}, f"{field}[{key}]")
    return causes


def _validate_unique(items: list[Fields], key: str, field: str) -> Causes:
    causes: Causes = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = item.get(key) or ""
        if name in seen:
            causes.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
    return causes
