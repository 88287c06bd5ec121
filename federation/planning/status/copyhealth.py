"""The health of one copy by the status that its member reports. Pure.

A kind whose FederatedTypeConfig has a health expression is judged by that. Kinds with replicas are healthy with as many
available ones as they want, Jobs with a ready pod for each active one. Other kinds, DaemonSets among them, have no
health: what runs on every node of a cluster has no other place.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import DAEMON_SETS
from federation.planning.aggregation.rules import RuleError
from federation.planning.automigration.podanalysis import waits_for_node

Compile = Callable[[str], Callable[[Mapping[str, Any]], bool]]
"""Compiles an expression to a function of a member object; both raise RuleError."""
IsWaiting = Callable[[], bool | None]
"""Returns whether a pod of the copy waits for a node and auto-migration moves it, None if that is not known."""
_BYTES_MAX = 64 * 1024
"""Of a member object in an expression: the memory of an evaluation grows with it."""
_METADATA = ("name", "namespace", "labels", "annotations", "generation")


class Health(StrEnum):
    """The known state of a copy."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"
    """Nothing follows: the member's controller lags, pods wait for a node, or the kind has no health."""


class Observed(NamedTuple):
    """The health of a copy, why it is bad, and a number that grows while it becomes better."""

    health: Health
    reason: str = ""
    progress: int = 0


UNKNOWN = Observed(Health.UNKNOWN)
_HEALTHY = Observed(Health.HEALTHY)


def health_of(type_: FederatedType, member: Mapping[str, Any], compile_: Compile, is_waiting: IsWaiting) -> Observed:
    """Return the health of a member object."""
    metadata, status = member["metadata"], _mapping(member.get("status"))
    if metadata.get("deletionTimestamp"):
        return UNKNOWN
    if type_.health_expression:
        found = _by_expression(type_.health_expression, member, compile_)
    elif type_.resource == DAEMON_SETS:
        return UNKNOWN
    elif (type_.resource.group, type_.resource.kind) == ("batch", "Job"):
        found = _of_job(status)
    elif type_.paths.replicas_spec and (type_.paths.available_replicas_status or type_.paths.ready_replicas_status):
        observed, generation = _number(status.get("observedGeneration")), _number(metadata.get("generation"))
        if "observedGeneration" in status and observed < generation:
            return UNKNOWN
        found = _of_replicas(type_, member)
    else:
        return UNKNOWN
    # A pod without a node is the business of auto-migration: another cluster may have room, this one is not bad.
    return UNKNOWN if found.health is Health.UNHEALTHY and is_waiting() is not False else found


def waits_for(pod: Mapping[str, Any], name: str) -> bool:
    """Return whether a pod of the namespace has no node and may be of the workload.

    Its controller has the name of the workload, or one that begins with it, as ReplicaSets and Jobs of operators have.
    Another workload may share that; then nothing moves while its pods wait.
    """
    if not waits_for_node(pod):
        return False
    owners: Iterable[Any] = pod["metadata"].get("ownerReferences") or ()
    return any(str(each.get("name")) == name or str(each.get("name")).startswith(f"{name}-") for each in owners)


def _of_replicas(type_: FederatedType, member: Mapping[str, Any]) -> Observed:
    wanted = _number(dotpaths.get(member, type_.paths.replicas_spec), 1)
    available = _number(dotpaths.get(member, type_.paths.available_replicas_status))
    ready = _number(dotpaths.get(member, type_.paths.ready_replicas_status))
    good = available if type_.paths.available_replicas_status else ready
    if good >= wanted:
        return _HEALTHY
    return Observed(Health.UNHEALTHY, f"{good} of {wanted} replicas are available", max(good, ready))


def _of_job(status: Mapping[str, Any]) -> Observed:
    active, ready, succeeded = (_number(status.get(key)) for key in ("active", "ready", "succeeded"))
    if ready >= active:
        return _HEALTHY if active or succeeded else UNKNOWN
    return Observed(Health.UNHEALTHY, f"{ready} of {active} active pods are ready", succeeded + ready)


def _by_expression(expression: str, member: Mapping[str, Any], compile_: Compile) -> Observed:
    shown = {key: member.get(key) for key in ("apiVersion", "kind")}
    shown |= {key: _mapping(member.get(key)) for key in ("spec", "status")}
    shown["metadata"] = {key: value for key, value in member["metadata"].items() if key in _METADATA}
    try:
        if len(orjson.dumps(shown)) > _BYTES_MAX:
            return UNKNOWN
        value = compile_(expression)(shown)
    except (RuleError, TypeError):
        return UNKNOWN  # such as a field that the member has not reported yet
    return _HEALTHY if value is True else Observed(Health.UNHEALTHY, "the health expression of its kind is false")


def _number(value: Any, default: int = 0) -> int:
    return value if type(value) is int else default


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
