"""Migrations that the user asks for on one object: cap a cluster, or leave it until a moment (spec §5.6).

The user writes `migration-configuration`; what was understood is stored back as `applied-migration-configuration` in a
form of its own, which is what decisions are made from. A request that is wrong leaves the one before in force.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from federation.base.clock import from_rfc3339
from federation.scheduling.framework.types import CustomMigration


class MigrationError(ValueError):
    """The request is wrong; the message is what the user gets to read."""


def applied_form(config: Mapping[str, Any], *, has_replicas: bool) -> dict[str, Any]:
    """Return what a request means: {limitedCapacity?: {cluster: n}, unavailableClusters?: [{cluster, validUntil}]}.

    Raises MigrationError with KubeAdmiral's words when it is not acceptable.
    """
    replicas = config.get("replicasMigrations") or []
    workloads = config.get("workloadMigrations") or []
    if replicas and not has_replicas:
        raise MigrationError("workload does not support the replica migration configurations")
    seen: set[str] = set()
    limited = {_cluster(entry, seen): _capacity(entry) for entry in replicas}
    closed = [{"cluster": _cluster(entry, seen), "validUntil": _until(entry)} for entry in workloads]
    form: dict[str, Any] = {}
    if limited:
        form["limitedCapacity"] = {name: limited[name] for name in sorted(limited)}
    if closed:
        form["unavailableClusters"] = sorted(closed, key=lambda entry: str(entry["cluster"]))
    return form


def applied_annotation(text: str, *, has_replicas: bool) -> str:
    """Return the text to store for a request's text; MigrationError when it is no JSON object or not acceptable."""
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MigrationError(f"not JSON: {error}") from error
    if not isinstance(config, dict):
        raise MigrationError("not a JSON object")
    return orjson.dumps(applied_form(config, has_replicas=has_replicas)).decode()


def from_annotation(text: str | None) -> CustomMigration | None:
    """Return the migration in force; None when there is none or its text is not ours."""
    if not text:
        return None
    try:
        form = orjson.loads(text)
        until: dict[str, datetime] = {
            entry["cluster"]: from_rfc3339(entry["validUntil"]) for entry in form.get("unavailableClusters") or ()
        }
        return CustomMigration(form.get("limitedCapacity") or {}, until)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _cluster(entry: Mapping[str, Any], seen: set[str]) -> str:
    cluster = entry.get("cluster")
    if not cluster:
        raise MigrationError("cluster cannot be empty")
    if cluster in seen:
        raise MigrationError("multiple migration configurations cannot be configured for the same cluster")
    seen.add(cluster)
    return str(cluster)


def _capacity(entry: Mapping[str, Any]) -> int:
    capacity = entry.get("limitedCapacity")
    if capacity is None:
        raise MigrationError("limitedCapacity cannot be empty")
    if not isinstance(capacity, int):
        raise MigrationError("limitedCapacity must be a number")
    if capacity < 0:
        raise MigrationError("limitedCapacity cannot be less than zero")
    return capacity


def _until(entry: Mapping[str, Any]) -> Any:
    until = entry.get("validUntil")
    if not until:
        raise MigrationError("validUntil cannot be empty")
    return until
