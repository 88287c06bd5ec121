"""Migrations that the user requests for one object: limit a cluster, or leave it until a time.

The user writes `migration-configuration`; its compiled form is stored as `applied-migration-configuration`, which
decisions use. An invalid request leaves the previous one in force.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Collection, Mapping
from datetime import UTC
from typing import Any

import msgspec
import orjson

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.annotationrecords import AnnotationRecord, Time
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.quantity import INT64_MAX
from federation.scheduling.framework.migrations import CustomMigration


class MigrationError(InvalidInput):
    """The request is invalid; the message is shown to the user."""


class _Unavailable(msgspec.Struct, rename="camel"):
    cluster: str
    valid_until: Time


class _Applied(msgspec.Struct, rename="camel"):
    limited_capacity: dict[str, int] | None = None
    unavailable_clusters: list[_Unavailable] | None = None


_APPLIED = AnnotationRecord(names.APPLIED_MIGRATION_CONFIGURATION, _Applied)


def migration_entry(federated: Mapping[str, Any], federated_type: FederatedType) -> tuple[dict[str, str | None], str]:
    """Return the annotation of the user's migration in force, and the problem of an invalid request.

    Reference: docs/reference/scheduling.md and docs/reference/kinds.md.
    """
    present = federated["metadata"].get("annotations") or {}
    text = present.get(names.MIGRATION_CONFIGURATION)
    if text is None:
        has_old = names.APPLIED_MIGRATION_CONFIGURATION in present
        return ({names.APPLIED_MIGRATION_CONFIGURATION: None} if has_old else {}), ""
    has_replicas = federated_type.replicas(federated["spec"]["template"]) is not None
    try:
        return {names.APPLIED_MIGRATION_CONFIGURATION: applied_annotation(text, has_replicas=has_replicas)}, ""
    except MigrationError as error:
        return {}, str(error)


def applied_form(config: Mapping[str, Any], *, has_replicas: bool) -> dict[str, Any]:
    """Return the compiled request: {limitedCapacity?: {cluster: n}, unavailableClusters?: [{cluster, validUntil}]}.

    Raises MigrationError with KubeAdmiral's words when it is not acceptable.
    """
    replicas = config.get("replicasMigrations") or []
    workloads = config.get("workloadMigrations") or []
    if replicas and not has_replicas:
        raise MigrationError("workload does not support the replica migration configurations")
    limited: dict[str, int] = {}
    for entry in replicas:
        cluster, capacity = _cluster(entry), _capacity(entry)
        limited[_once(cluster, limited)] = capacity
    until: dict[str, Any] = {}
    for entry in workloads:
        cluster, valid_until = _cluster(entry), _until(entry)
        until[_once(cluster, limited.keys() | until)] = valid_until
    closed = [{"cluster": cluster, "validUntil": until[cluster]} for cluster in sorted(until)]
    form: dict[str, Any] = {}
    if limited:
        form["limitedCapacity"] = {name: limited[name] for name in sorted(limited)}
    if closed:
        form["unavailableClusters"] = closed
    return form


def applied_annotation(text: str, *, has_replicas: bool) -> str:
    """Return the annotation to store for a request; MigrationError when it is invalid.

    Times are stored in UTC.
    """
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MigrationError(f"not JSON: {error}") from error
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise MigrationError("not a JSON object")
    for field in ("replicasMigrations", "workloadMigrations"):
        entries = config.get(field) or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise MigrationError(f"{field} is not a list of objects")
    form = applied_form(config, has_replicas=has_replicas)
    for entry in form.get("unavailableClusters", ()):
        entry["validUntil"] = _in_utc(entry["validUntil"])
    return orjson.dumps(form).decode()


def from_annotation(text: str | None) -> CustomMigration | None:
    """Return the migration in force; None without one, or for a malformed text."""
    found = _APPLIED.read(text)
    if found is None:
        return None
    until = {entry.cluster: entry.valid_until for entry in found.unavailable_clusters or ()}
    return CustomMigration(found.limited_capacity or {}, until)


def _cluster(entry: Mapping[str, Any]) -> str:
    cluster = entry.get("cluster")
    if not cluster:
        raise MigrationError("cluster cannot be empty")
    if not isinstance(cluster, str):
        raise MigrationError("cluster must be a name")
    return cluster


def _once(cluster: str, seen: Collection[str]) -> str:
    if cluster in seen:
        raise MigrationError("multiple migration configurations cannot be configured for the same cluster")
    return cluster


def _capacity(entry: Mapping[str, Any]) -> int:
    capacity = entry.get("limitedCapacity")
    if capacity is None:
        raise MigrationError("limitedCapacity cannot be empty")
    if type(capacity) is not int or capacity > INT64_MAX:
        raise MigrationError("limitedCapacity must be a number")
    if capacity < 0:
        raise MigrationError("limitedCapacity cannot be less than zero")
    return capacity


def _until(entry: Mapping[str, Any]) -> Any:
    until = entry.get("validUntil")
    if until is None:
        raise MigrationError("validUntil cannot be empty")
    return until


def _in_utc(until: Any) -> str:
    try:
        return f"{from_rfc3339(until).astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
    except (TypeError, ValueError, OverflowError) as error:
        raise MigrationError(f"validUntil {until!r} is not a time such as 2026-01-31T12:00:00Z") from error
