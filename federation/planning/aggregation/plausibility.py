"""The parts of a member's status that can be aggregated: a member can report anything. Pure.

The sums and conditions of a source object combine all members, and its API server refuses a status with a wrong value.
So what cannot be is left out field by field, and named for the condition StatusAggregated; the rest counts. What the
checks here do not know, the host's answer names: `refusal.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from federation.apimachinery.objectshape import is_count
from federation.apimachinery.quantity import INT64_MAX
from federation.apimachinery.resources import Object
from federation.planning.aggregation.custom import is_custom

_COUNT_MAX = 2**31 - 1
BYTES_MAX = 128 * 1024
"""The largest status, in bytes of JSON: it is copied to the host at each change."""
_WHOLE = "status"
"""Names the status itself among the parts that do not count."""


def plausible(member: Mapping[str, Any], group: str, kind: str) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the member object without the parts of its status that are not plausible, and the names of these."""
    status = member.get("status")
    if not status:
        return member, ()
    if not isinstance(status, Mapping) or not _is_small(status):
        return {**member, "status": {}}, (_WHOLE,)
    checks = _CUSTOM_CHECKS if is_custom(group) else _OF_KIND.get((group, kind), _CHECKS)
    wrong = [
        field
        for field, value in status.items()
        if value is not None and (check := checks.get(field)) is not None and not check(value)
    ]
    kept: Object = {field: value for field, value in status.items() if field not in wrong} if wrong else dict(status)
    found = [*wrong, *_limit_conditions(kept), *(_limit_counts(kept) if group == "apps" else ())]
    return ({**member, "status": kept}, tuple(found)) if found else (member, ())


def _is_small(status: Mapping[str, Any]) -> bool:
    try:
        return len(orjson.dumps(status)) <= BYTES_MAX
    except TypeError:
        return False  # nested too deeply


def _limit_conditions(status: Object) -> Iterator[str]:
    """Remove conditions that no API server takes, and yield their names."""
    held = status.get("conditions") or ()
    wrong = {number: name for number, each in enumerate(held) if (name := _wrong_in(each))}
    if wrong:
        status["conditions"] = [each for number, each in enumerate(held) if number not in wrong]
        yield from dict.fromkeys(f"conditions.{name}" for name in wrong.values())


def _wrong_in(condition: Any) -> str:
    """Return the first wrong field of a condition, "" without one."""
    if not isinstance(condition, dict):
        return "*"
    for field in _CONDITION_TEXTS:
        if not isinstance(condition.get(field, ""), str | None):
            return field
    if condition.get("status", "Unknown") not in _CONDITION_STATUSES:
        return "status"
    return next((field for field in _CONDITION_TIMES if field in condition and not _is_time(condition[field])), "")


def _limit_counts(status: Object) -> Iterator[str]:
    """Lower the counts of a part that exceed the count of the whole, as API servers demand, and yield their names."""
    for part, whole in _AT_MOST:
        if (status.get(part) or 0) > (most := status.get(whole, _COUNT_MAX) or 0):
            status[part] = most
            yield part


def _is_replica_count(value: Any) -> bool:
    return is_count(value, _COUNT_MAX)


def _is_generation(value: Any) -> bool:
    return is_count(value, INT64_MAX)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_time(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _TIME.fullmatch(value) is not None)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _are_containers(value: Any) -> bool:
    return _are_objects(value) and all(isinstance(entry.get("name"), str) for entry in value)


def _is_load_balancer(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("ingress") is None or _are_objects(value["ingress"]))


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_CONDITION_TEXTS = ("type", "status", "reason", "message")
_CONDITION_TIMES = ("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime")
_CONDITION_STATUSES = ("True", "False", "Unknown", None)
_AT_MOST = (
    ("readyReplicas", "replicas"),
    ("updatedReplicas", "replicas"),
    ("currentReplicas", "replicas"),
    ("fullyLabeledReplicas", "replicas"),
    ("availableReplicas", "replicas"),
    ("availableReplicas", "readyReplicas"),
)
"""Counts of parts, and of the whole that they cannot exceed."""
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
_TEXTS = ("phase", "currentRevision", "updateRevision")
_TIMES = ("startTime", "completionTime", "lastScheduleTime", "lastSuccessfulTime", "lastScaleTime")
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_COUNTS, _is_replica_count),
    **dict.fromkeys(_TEXTS, _is_text),
    **dict.fromkeys(_TIMES, _is_time),
    "observedGeneration": _is_generation,
    "conditions": _is_list,
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
    "conditions": _is_list,
}
"""Other fields of a custom resource can have any type."""
