"""Printers of kinds that components of a cluster use: APIs, certificates, flow control, addresses and devices."""

from datetime import datetime
from typing import Any

from federation.apimachinery.conditions import find
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.printers.table import (
    AGE,
    NAME,
    NONE,
    Column,
    Printer,
    age,
    columns,
    human_duration,
    name_of,
    part,
)


def _certificate_request(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    duration_s = spec.get("expirationSeconds")
    return [
        name_of(obj),
        age(obj, now),
        spec.get("signerName") or NONE,
        spec.get("username") or "",
        NONE if duration_s is None else human_duration(duration_s),
        _certificate_state(part(obj, "status")),
    ]


def _certificate_state(status: Any) -> str:
    found = {condition.get("type") for condition in status.get("conditions") or ()}
    states = ["Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"]
    if "Failed" in found:
        states.append("Failed")
    if status.get("certificate"):
        states.append("Issued")
    return ",".join(states)


def _flow_schema(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    conditions = part(obj, "status").get("conditions") or ()
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name") or "",
        spec.get("matchingPrecedence") or 0,
        (spec.get("distinguisherMethod") or {}).get("type") or NONE,
        age(obj, now),
        next((found.get("status") or "" for found in conditions if found.get("type") == "Dangling"), "?"),
    ]


def _priority_level(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    limited = spec.get("limited")
    shares: Any = NONE if limited is None else limited.get("nominalConcurrencyShares") or 0
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    sizes = [NONE if queuing is None else queuing.get(name) or 0 for name in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(obj), spec.get("type") or "", shares, *sizes, age(obj, now)]


def _service_cidr(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), ",".join(part(obj, "spec").get("cidrs") or ()), age(obj, now)]


def _ip_address(obj: Object, now: datetime) -> list[Any]:
    parent = part(obj, "spec").get("parentRef")
    text = NONE
    if parent is not None:
        group, plural = parent.get("group") or "", parent.get("resource") or ""
        resource = f"{plural}.{group}" if group else plural
        text = "/".join(filter(None, (resource.lower(), parent.get("namespace"), parent.get("name") or "")))
    return [name_of(obj), text, age(obj, now)]


def _attributes_class(obj: Object, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("driverName") or "", age(obj, now)]


def _resource_claim(obj: Object, now: datetime) -> list[Any]:
    status = part(obj, "status")
    is_deleted, is_allocated = bool(obj["metadata"].get("deletionTimestamp")), status.get("allocation") is not None
    states = ["deleted"] if is_deleted else []
    if is_allocated:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [name_of(obj), ",".join(states), age(obj, now)]


def _resource_slice(obj: Object, now: datetime) -> list[Any]:
    spec = part(obj, "spec")
    pool = (spec.get("pool") or {}).get("name") or ""
    return [name_of(obj), spec.get("nodeName") or "", spec.get("driver") or "", pool, age(obj, now)]


def _api_service(obj: Object, now: datetime) -> list[Any]:
    service = part(obj, "spec").get("service")
    condition = find(part(obj, "status").get("conditions"), "Available") or {}
    state, reason = condition.get("status") or "Unknown", condition.get("reason")
    return [
        name_of(obj),
        "Local" if service is None else f"{service.get('namespace') or ''}/{service.get('name') or ''}",
        f"{state} ({reason})" if reason and state != "True" else state,
        age(obj, now),
    ]


_API_SERVICE_COLUMNS = (
    NAME,
    Column("Service", description="The service that hosts the API, or Local."),
    Column("Available", description="Whether the API is available, and why not."),
    AGE,
)
PRINTERS = {
    ("apiregistration.k8s.io", "apiservices"): Printer(_API_SERVICE_COLUMNS, _api_service),
    ("certificates.k8s.io", "certificatesigningrequests"): Printer(
        columns("Name|Age|SignerName|Requestor|RequestedDuration|Condition"), _certificate_request
    ),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): Printer(
        columns("Name|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL"), _flow_schema
    ),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): Printer(
        columns("Name|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age"), _priority_level
    ),
    ("networking.k8s.io", "servicecidrs"): Printer(columns("Name|CIDRs|Age"), _service_cidr),
    ("networking.k8s.io", "ipaddresses"): Printer(columns("Name|ParentRef|Age"), _ip_address),
    ("storage.k8s.io", "volumeattributesclasses"): Printer(columns("Name|DriverName|Age"), _attributes_class),
    ("resource.k8s.io", "resourceclaims"): Printer(columns("Name|State|Age"), _resource_claim),
    ("resource.k8s.io", "resourceslices"): Printer(columns("Name|Node|Driver|Pool|Age"), _resource_slice),
}
