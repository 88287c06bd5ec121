"""Validate DeviceClasses, ResourceClaims and ResourceClaimTemplates, with the status of claims.

`resourceslicevalidation.py` has the devices that a driver offers. The rules and limits are those of kube-apiserver. CEL
selectors are compiled with a `device` of any type: a field that devices do not have is found by the scheduler only.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import orjson

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import (
    Causes,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    one_of,
    required,
    too_long,
    too_many,
)
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.validation.addressvalidation import interface_problems
from federation.apiserver.semantics.validation.deviceselectors import selector_bytes_causes, validate_selector

REQUESTS_MAX: Final = 32
_SUBREQUESTS_MAX: Final = 8
_RESERVATIONS_MAX: Final = 256
_DATA_BYTES_MAX: Final = 10 * 1024
_CONDITIONS_MAX: Final = 8
_BINDING_CONDITIONS_MAX: Final = 4
_IPS_MAX: Final = 16
_DRIVER_LENGTH_MAX: Final = 63
_ID_LENGTH_MAX: Final = 32
_POOL_LENGTH_MAX: Final = 253
_MODES: Final = ("All", "ExactCount")
_EFFECTS: Final = ("None", "NoExecute", "NoSchedule")
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
Fields = Mapping[str, Any]
Device = tuple[str, str, str, str]
"""Driver, pool, device and share of an allocated device."""


def validate_device_class(obj: Object) -> Causes:
    """Validate a DeviceClass."""
    spec = obj.get("spec") or {}
    causes = validate_list(spec.get("selectors"), "spec.selectors", REQUESTS_MAX, validate_selector)
    causes += validate_list(spec.get("config"), "spec.config", REQUESTS_MAX, _validate_configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended_resource(name):
        causes.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return causes


def validate_claim(spec: Fields, field: str) -> Causes:
    """Validate the spec of a ResourceClaim."""
    devices, at = spec.get("devices") or {}, f"{field}.devices"
    names = request_names(spec)
    requests = devices.get("requests") or []
    if excess := selector_bytes_causes(requests, f"{at}.requests"):
        return excess
    causes = validate_list(requests, f"{at}.requests", REQUESTS_MAX, _validate_request)
    causes += _duplicates([found.get("name") or "" for found in requests], f"{at}.requests")

    def constraint(found: Fields, where: str) -> Causes:
        return _validate_references(found, where, names) + _validate_constraint(found, where)

    def configuration(found: Fields, where: str) -> Causes:
        return _validate_references(found, where, names) + _validate_configuration(found, where)

    causes += validate_list(devices.get("constraints"), f"{at}.constraints", REQUESTS_MAX, constraint)
    return causes + validate_list(devices.get("config"), f"{at}.config", REQUESTS_MAX, configuration)


def validate_claim_status(new: Object, old: Object) -> Causes:
    """Validate the status of a ResourceClaim that replaces the status of `old`."""
    status, before = new.get("status") or {}, old.get("status") or {}
    names = request_names(new.get("spec") or {})
    reservations, allocation = status.get("reservedFor") or [], status.get("allocation")
    causes = validate_list(reservations, "status.reservedFor", _RESERVATIONS_MAX, _validate_consumer)
    causes += _duplicates([found.get("uid") or "" for found in reservations], "status.reservedFor")
    allocated = set(allocated_devices(status))
    reported = status.get("devices") or []
    for index, device in enumerate(reported):
        causes += _validate_device_status(device, f"status.devices[{index}]", allocated)
    causes += _duplicates([identity(found) for found in reported], "status.devices")
    if reservations and allocation is None:
        causes.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif new["metadata"].get("deletionTimestamp"):
        known = before.get("reservedFor") or []
        if any(found not in known for found in reservations):
            text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            causes.append(forbidden("status.reservedFor", text))
    if allocation is None:
        return causes
    if before.get("allocation") is not None:
        return causes + immutable("status.allocation", allocation, before["allocation"])
    return causes + _validate_allocation(allocation, "status.allocation", names)


def request_names(spec: Fields) -> dict[str, set[str]]:
    """Return the names of a claim's requests, with those of their subrequests."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {
        found.get("name") or "": {part.get("name") or "" for part in found.get("firstAvailable") or ()}
        for found in requests
    }


def allocated_devices(status: Fields) -> list[Device]:
    """Return the devices of an allocation."""
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return [identity(result) for result in results]


def identity(device: Fields) -> Device:
    """Return what identifies a device in an allocation or status."""
    driver, pool, name, share = (device.get(part) or "" for part in ("driver", "pool", "device", "shareID"))
    return driver, pool, name, share


def validate_list(
    items: Sequence[Any] | None, field: str, items_max: int, validate: Callable[[Any, str], Causes]
) -> Causes:
    """Validate each item of a list that is not too long."""
    listed = items or ()
    return too_many(field, listed, items_max) or [
        problem for index, item in enumerate(listed) for problem in validate(item, f"{field}[{index}]")
    ]


def validate_label(name: str, field: str) -> Causes:
    """Validate a required DNS label."""
    if not name:
        return [required(field)]
    return [invalid(field, name, text) for text in nameformats.dns1123_label(name)]


def validate_driver(name: str, field: str) -> Causes:
    """Validate the name of a driver."""
    if not name:
        return [required(field)]
    causes = [too_long(field, _DRIVER_LENGTH_MAX)] if len(name) > _DRIVER_LENGTH_MAX else []
    return causes + [invalid(field, name, text) for text in nameformats.dns1123_subdomain(name.lower())]


def validate_pool(name: str, field: str) -> Causes:
    """Validate the name of a pool: subdomains separated by slashes."""
    if not name:
        return [required(field)]
    causes = [too_long(field, _POOL_LENGTH_MAX)] if len(name) > _POOL_LENGTH_MAX else []
    problems = [text for part in name.split("/") for text in nameformats.dns1123_subdomain(part)]
    return causes + [invalid(field, name, text) for text in problems]


def validate_qualified_name(name: str, field: str) -> Causes:
    """Validate the name of an attribute or capacity: a C identifier, with or without a domain."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _validate_identifier(name, field)
    if "/" in identifier:
        return []  # kube-apiserver accepts it, and says that this is a mistake it cannot correct
    causes = validate_driver(domain, field) if domain else [invalid(field, "", "the domain must not be empty")]
    if not identifier:
        return [*causes, invalid(field, "", "the name must not be empty")]
    return causes + _validate_identifier(identifier, field)


def validate_bindings(device: Fields, field: str) -> Causes:
    """Validate the conditions that a device must get before or must not get while a pod is bound."""
    causes: Causes = []
    found = {name: device.get(name) or [] for name in ("bindingConditions", "bindingFailureConditions")}
    for name, conditions in found.items():
        causes += validate_list(conditions, f"{field}.{name}", _BINDING_CONDITIONS_MAX, _validate_label_key)
        causes += _duplicates(conditions, f"{field}.{name}")
    good, bad = found.values()
    text = "bindingFailureConditions must not overlap with bindingConditions"
    causes += [
        invalid(f"{field}.bindingFailureConditions[{index}]", condition, text)
        for index, condition in enumerate(bad)
        if condition in good
    ]
    if bad and not good:
        text = "bindingConditions are required to use bindingFailureConditions"
        causes.append(invalid(f"{field}.bindingConditions", good, text))
    elif good and not bad:
        text = "bindingFailureConditions are required to use bindingConditions"
        causes.append(invalid(f"{field}.bindingFailureConditions", bad, text))
    return causes


def validate_taint(taint: Fields, field: str) -> Causes:
    """Validate the taint of a device."""
    key, value, effect = (taint.get(name) or "" for name in ("key", "value", "effect"))
    causes = _validate_label_key(key, f"{field}.key")
    causes += [invalid(f"{field}.value", value, text) for text in nameformats.label_value(value)]
    if not effect:
        return [*causes, required(f"{field}.effect")]
    return causes + one_of(f"{field}.effect", effect, _EFFECTS)


def _validate_label_key(key: str, field: str) -> Causes:
    return [invalid(field, key, text) for text in nameformats.qualified_name(key)]


def _validate_identifier(name: str, field: str) -> Causes:
    causes = [too_long(field, _ID_LENGTH_MAX)] if len(name) > _ID_LENGTH_MAX else []
    if not (name.isascii() and name.isidentifier()):
        text = (
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric"
            " characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is"
            " '[A-Za-z_][A-Za-z0-9_]*')"
        )
        causes.append(invalid(field, name, text))
    return causes


def _duplicates(keys: Iterable[Any], field: str) -> Causes:
    causes: Causes = []
    seen = set()
    for index, key in enumerate(keys):
        if key in seen:
            causes.append(duplicate(f"{field}[{index}]", list(key) if isinstance(key, tuple) else key))
        seen.add(key)
    return causes


def _validate_request(request: Fields, field: str) -> Causes:
    causes = validate_label(request.get("name") or "", f"{field}.name")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    text = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not alternatives:
        causes.append(required(field, text))
    elif exactly is not None and alternatives:
        causes.append(invalid(field, None, f"{text}, but multiple fields are set"))
    elif exactly is not None:
        causes += _validate_exact(exactly, f"{field}.exactly")
    else:
        at = f"{field}.firstAvailable"
        causes += validate_list(alternatives, at, _SUBREQUESTS_MAX, _validate_subrequest)
        causes += _duplicates([found.get("name") or "" for found in alternatives], at)
    return causes


def _validate_subrequest(request: Fields, field: str) -> Causes:
    return validate_label(request.get("name") or "", f"{field}.name") + _validate_exact(request, field)


def _validate_exact(request: Fields, field: str) -> Causes:
    name, mode, count = request.get("deviceClassName") or "", request.get("allocationMode"), request.get("count") or 0
    problems = nameformats.dns1123_subdomain(name) if name else []
    causes = [invalid(f"{field}.deviceClassName", name, text) for text in problems]
    if not name:
        causes.append(required(f"{field}.deviceClassName"))
    causes += validate_list(request.get("selectors"), f"{field}.selectors", REQUESTS_MAX, validate_selector)
    if mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        causes.append(invalid(f"{field}.count", count, text))
    elif mode == "ExactCount" and count <= 0:
        causes.append(invalid(f"{field}.count", count, "must be greater than zero"))
    elif mode not in _MODES:
        causes.append(not_supported(f"{field}.allocationMode", mode or "", _MODES))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        causes += _validate_toleration(toleration, f"{field}.tolerations[{index}]")
    return causes


def _validate_toleration(toleration: Fields, field: str) -> Causes:
    key, value, operator = (toleration.get(name) or "" for name in ("key", "value", "operator"))
    causes = _validate_label_key(key, f"{field}.key") if key else []
    if operator == "Exists":
        if value:
            causes.append(invalid(f"{field}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        causes += [invalid(f"{field}.value", value, text) for text in nameformats.label_value(value)]
    else:
        supported = not_supported(f"{field}.operator", operator, ("Equal", "Exists"))
        causes.append(supported if operator else required(f"{field}.operator"))
    return causes + one_of(f"{field}.effect", toleration.get("effect") or None, _EFFECTS)


def _validate_constraint(constraint: Fields, field: str) -> Causes:
    for name in ("matchAttribute", "distinctAttribute"):
        if (attribute := constraint.get(name)) is not None:
            causes = validate_qualified_name(attribute, f"{field}.{name}")
            if "/" not in attribute:
                text = "a fully qualified name must be a domain and a name separated by a slash"
                causes.append(invalid(f"{field}.{name}", attribute, text))
            return causes
    text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [required(field, text)]


def _validate_references(owner: Fields, field: str, names: Mapping[str, set[str]]) -> Causes:
    listed, at = owner.get("requests") or [], f"{field}.requests"
    causes = validate_list(listed, at, REQUESTS_MAX, lambda name, where: _validate_reference(name, where, names))
    return causes + _duplicates(listed, at)


def _validate_reference(name: str, field: str, names: Mapping[str, set[str]]) -> Causes:
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(field, name, _NOT_A_REQUEST)]
    causes = [problem for part in parts for problem in validate_label(part, field)]
    if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
        causes.append(invalid(field, name, _NOT_A_REQUEST))
    return causes


def _validate_configuration(config: Fields, field: str) -> Causes:
    opaque = config.get("opaque")
    if opaque is None:
        return [required(f"{field}.opaque")]
    causes = validate_driver(opaque.get("driver") or "", f"{field}.opaque.driver")
    return causes + _validate_json(opaque.get("parameters"), f"{field}.opaque.parameters")


def _validate_json(value: Any, field: str) -> Causes:
    if value is None:
        return [required(field)]
    if len(orjson.dumps(value)) > _DATA_BYTES_MAX:
        return [too_long(field, _DATA_BYTES_MAX)]
    return [] if isinstance(value, dict) else [invalid(field, "<value omitted>", "must be a valid JSON object")]


def _validate_consumer(consumer: Fields, field: str) -> Causes:
    return [required(f"{field}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)]


def _validate_allocation(allocation: Fields, field: str, names: Mapping[str, set[str]]) -> Causes:
    devices, at = allocation.get("devices") or {}, f"{field}.devices"

    def result(found: Fields, where: str) -> Causes:
        causes = _validate_reference(found.get("request") or "", f"{where}.request", names)
        return causes + _validate_identity(found, where) + validate_bindings(found, where)

    def configuration(found: Fields, where: str) -> Causes:
        source = found.get("source") or ""
        causes = one_of(f"{where}.source", source, ("FromClaim", "FromClass")) if source else []
        if not source:
            causes.append(required(f"{where}.source"))
        return causes + _validate_references(found, where, names) + _validate_configuration(found, where)

    causes = validate_list(devices.get("results"), f"{at}.results", REQUESTS_MAX, result)
    return causes + validate_list(devices.get("config"), f"{at}.config", 2 * REQUESTS_MAX, configuration)


def _validate_identity(device: Fields, field: str) -> Causes:
    causes = validate_driver(device.get("driver") or "", f"{field}.driver")
    causes += validate_pool(device.get("pool") or "", f"{field}.pool")
    causes += validate_label(device.get("device") or "", f"{field}.device")
    share = device.get("shareID")
    if share is not None and not _is_uid(share):
        text = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase"
        causes.append(invalid(f"{field}.shareID", share, f"{text} hexadecimal characters"))
    return causes


def _is_uid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _validate_device_status(device: Fields, field: str, allocated: set[Device]) -> Causes:
    causes = _validate_identity(device, field)
    if identity(device) not in allocated:
        shown = "/".join(filter(None, identity(device)))
        causes.append(invalid(field, shown, "must be an allocated device in the claim"))
    causes += too_many(f"{field}.conditions", device.get("conditions") or (), _CONDITIONS_MAX)
    if device.get("data") is not None:
        causes += _validate_json(device["data"], f"{field}.data")
    network, at = device.get("networkData") or {}, f"{field}.networkData"
    for name, bytes_max in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len((network.get(name) or "").encode()) > bytes_max:
            causes.append(too_long(f"{at}.{name}", bytes_max))
    addresses = network.get("ips") or []
    causes += validate_list(addresses, f"{at}.ips", _IPS_MAX, _validate_interface)
    return causes + _duplicates(addresses, f"{at}.ips")


def _validate_interface(address: str, field: str) -> Causes:
    return [invalid(field, address, text) for text in interface_problems(address)]


def _is_extended_resource(name: str) -> bool:
    """Return True for a resource of a domain that is not Kubernetes' own."""
    domain, slash, _ = name.partition("/")
    if not slash or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return bool(domain) and not nameformats.qualified_name(f"requests.{name}")
