"""Validation of APIServices, with the texts of k8s.io/kube-aggregator. Pure."""

import base64
import binascii
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import Causes, invalid, required, show
from federation.apimachinery.resources import Object

_GROUP_PRIORITY_MAX = 20_000
_VERSION_PRIORITY_MAX = 1_000
_STATES = ("True", "False", "Unknown")


def validate_api_service(obj: Object) -> Causes:
    """Return the causes of an invalid APIService; a local one names no service."""
    spec = obj.get("spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    causes: Causes = []
    name, expected = obj["metadata"].get("name") or "", f"{version}.{group}"
    if name != expected and not nameformats.path_segment(name):
        causes.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: {show(expected)}'))
    if not group and version != "v1":
        causes.append(required("spec.group", "only v1 may have an empty group and it better be legacy kube"))
    if group:
        causes += [invalid("spec.group", group, problem) for problem in nameformats.dns1123_subdomain(group)]
    causes += [invalid("spec.version", version, problem) for problem in nameformats.dns1035_label(version)]
    for field, priority_max in (
        ("groupPriorityMinimum", _GROUP_PRIORITY_MAX),
        ("versionPriority", _VERSION_PRIORITY_MAX),
    ):
        priority = spec.get(field) or 0
        if not 0 < priority <= priority_max:
            causes.append(invalid(f"spec.{field}", priority, f"must be positive and less than {priority_max}"))
    return causes + (_validate_remote(spec) if spec.get("service") is not None else _validate_local(spec))


def _validate_local(spec: dict[str, Any]) -> Causes:
    causes: Causes = []
    if spec.get("caBundle"):
        shown = f"{_size(spec['caBundle'])} bytes"
        causes.append(invalid("spec.caBundle", shown, "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        text = "local APIServices may not have insecureSkipTLSVerify"
        causes.append(invalid("spec.insecureSkipTLSVerify", value=True, message=text))
    return causes


def _validate_remote(spec: dict[str, Any]) -> Causes:
    service = spec["service"]
    causes = [required(f"spec.service.{part}") for part in ("namespace", "name") if not service.get(part)]
    port = service.get("port", 0)
    if not 0 < port < 65536:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        causes.append(invalid("spec.service.port", port, text))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        text = "may not be true if caBundle is present"
        causes.append(invalid("spec.insecureSkipTLSVerify", value=True, message=text))
    return causes


def validate_api_service_status(obj: Object) -> Causes:
    """Return the causes of an invalid status."""
    return [
        cause(
            "FieldValueNotSupported",
            f'Unsupported value: {show(condition.get("status") or "")}: supported values: "True", "False", "Unknown"',
            f"status.conditions[{index}].status",
        )
        for index, condition in enumerate((obj.get("status") or {}).get("conditions") or ())
        if condition.get("status") not in _STATES
    ]


def _size(encoded: str) -> int:
    try:
        return len(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        return len(encoded)
