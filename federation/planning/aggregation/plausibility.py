"""Whether a member's status can be aggregated: a member can report anything. Pure.

The sums and conditions of a source object combine all members, so a malformed status must not stop the others. A
status that is not plausible counts as none.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from federation.apimachinery.objectshape import is_count
from federation.apimachinery.quantity import INT64_MAX
from federation.planning.aggregation.custom import is_custom

_COUNT_MAX = 2**31 - 1
BYTES_MAX = 128 * 1024
"""The largest status, in bytes of JSON: it is copied to the host at each change."""


def with_plausible_status(member: Mapping[str, Any], group: str = "apps", kind: str = "") -> Mapping[str, Any]:
    """Return the member object of the kind, without its status if that is not plausible."""
    status = member.get("status")
    if not status:
        return member
    checks = _CUSTOM_CHECKS if is_custom(group) else _OF_KIND.get((group, kind), _CHECKS)
    return member if isinstance(status, Mapping) and _is_plausible(status, checks) else {**member, "status": {}}


def _is_plausible(status: Mapping[str, Any], checks: Mapping[str, Callable[[Any], bool]]) -> bool:
    for field, value in status.items():
        check = checks.get(field)
        if check is not None and value is not None and not check(value):
            return False
    try:
        return len(orjson.dumps(status)) <= BYTES_MAX
    except TypeError:
        return False  # nested too deeply


def _is_replica_count(value: Any) -> bool:
    return is_count(value, _COUNT_MAX)


def _is_generation(value: Any) -> bool:
    return is_count(value, INT64_MAX)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _are_conditions(value: Any) -> bool:
    return _are_objects(value) and all(
        entry.get(field) is None or isinstance(entry[field], str) for entry in value for field in _CONDITION_TEXTS
    )


def _are_containers(value: Any) -> bool:
    return _are_objects(value) and all(isinstance(entry.get("name"), str) for entry in value)


def _is_load_balancer(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("ingress") is None or _are_objects(value["ingress"]))


_CONDITION_TEXTS = ("type", "status", "reason", "message")
_COUNTS = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "fullyLabeledReplicas",
    "currentReplicas",
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "active",
    "succeeded",
    "failed",
    "ready",
    "desiredReplicas",
    "currentHealthy",
    "desiredHealthy",
    "disruptionsAllowed",
    "expectedPods",
)
_TEXTS = (
    "phase",
    "startTime",
    "completionTime",
    "currentRevision",
    "updateRevision",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastScaleTime",
)
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_COUNTS, _is_replica_count),
    **dict.fromkeys(_TEXTS, _is_text),
    "observedGeneration": _is_generation,
    "conditions": _are_conditions,
    "containerStatuses": _are_containers,
    "initContainerStatuses": _are_containers,
    "loadBalancer": _is_load_balancer,
    "accessModes": _are_texts,
    "capacity": _is_mapping,
    "currentMetrics": _are_objects,
}
"""The fields that aggregation reads. A missing field and null are plausible."""
_OF_KIND: Mapping[tuple[str, str], Mapping[str, Callable[[Any], bool]]] = {
    ("batch", "CronJob"): {**_CHECKS, "active": _are_objects},
}
_CUSTOM_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "observedGeneration": _is_generation,
    "conditions": _are_conditions,
}
"""Other fields of a custom resource can have any type."""
