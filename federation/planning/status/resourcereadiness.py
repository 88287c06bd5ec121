"""Whether a custom resource in a member is well with its present content, and its pods. Pure.

The health expression of its FederatedTypeConfig decides. Without one, its replicas have to be available, and of the
conditions that many controllers share `Ready` must not be False, `Reconciling` and `Stalled` not True. A kind that
reports none of these is ready as soon as it is written. Member objects are not validated.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions, dotpaths
from federation.planning.status.copyhealth import Compile, Health, health_of
from federation.planning.status.readiness import Counts, Readiness

_MESSAGE_LENGTH_MAX = 256
_CONDITIONS_MAX = 50
_BAD = {"Stalled": "True", "Reconciling": "True", "Ready": "False"}
"""The status of a condition with which a resource is not ready; the first one is final."""
_NOT_OBSERVED = Readiness("its controller has not observed the change yet")


def assess_resource(type_: FederatedType, member: Mapping[str, Any], compile_: Compile) -> Readiness:
    """Return why the resource is not ready."""
    if member["metadata"].get("deletionTimestamp"):
        return Readiness("it is being deleted")
    if not _is_observed(member):
        return _NOT_OBSERVED
    seen = health_of(type_, member, compile_, lambda: False)
    if seen.health is Health.UNHEALTHY:
        return Readiness(seen.reason)
    if type_.health_expression:
        return Readiness() if seen.health is Health.HEALTHY else Readiness("its health is not known yet")
    return next(_bad_conditions(member), Readiness())


def count_replicas(type_: FederatedType, member: Mapping[str, Any]) -> Counts:
    """Return the pods of a resource as far as its FederatedTypeConfig says where their numbers are."""
    paths = type_.paths
    if not paths.replicas_spec:
        return Counts(0, 0, 0, 0)
    wanted, present = _number(member, paths.replicas_spec), _number(member, paths.replicas_status)
    updated = _number(member, ("status", "updatedReplicas"), default=present)
    return Counts(
        wanted, present, updated, _number(member, paths.available_replicas_status or paths.ready_replicas_status)
    )


def _is_observed(member: Mapping[str, Any]) -> bool:
    """Return whether what the status says is about the present content, as far as it tells."""
    generation, status = member["metadata"].get("generation"), member.get("status")
    if type(generation) is not int or not isinstance(status, Mapping):
        return True
    observed = (status.get("observedGeneration"), *(each.get("observedGeneration") for each in _conditions(member)))
    return all(each >= generation for each in observed if type(each) is int)


def _bad_conditions(member: Mapping[str, Any]) -> Iterator[Readiness]:
    found = list(_conditions(member))
    for type_, status in _BAD.items():
        each = conditions.find(found, type_)
        if each is not None and each.get("status") == status:
            text = str(each.get("message") or each.get("reason") or "")[:_MESSAGE_LENGTH_MAX]
            why = f"its condition {type_} is {status}"
            yield Readiness(f"{why}: {text}" if text else why, has_failed=type_ == "Stalled")


def _conditions(member: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = dotpaths.get(member, ("status", "conditions"))
    for each in found[:_CONDITIONS_MAX] if isinstance(found, list) else ():
        if isinstance(each, Mapping):
            yield each


def _number(member: Mapping[str, Any], path: dotpaths.Path, *, default: int = 0) -> int:
    value = dotpaths.get(member, path) if path else None
    return max(0, value) if type(value) is int else default
