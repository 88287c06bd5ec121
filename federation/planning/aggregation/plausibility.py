"""Whether a member's status can be aggregated: a member can report anything. Pure.

The sums and conditions of a source object combine all members, so a malformed status must not stop the others. A
status that is not plausible counts as none.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery.objectshape import is_count
from federation.apimachinery.quantity import INT64_MAX

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
)
_TEXTS = ("phase", "startTime", "completionTime", "currentRevision", "updateRevision")
_CONTAINERS = ("containerStatuses", "initContainerStatuses")
_CONDITION_TEXTS = ("type", "status", "reason", "message")
_COUNT_MAX = 2**31 - 1
BYTES_MAX = 128 * 1024
"""The largest status, in bytes of JSON: it is copied to the host at each change."""


def with_plausible_status(member: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the member object, without its status if that is not plausible."""
    status = member.get("status")
    return member if not status or _is_plausible(status) else {**member, "status": {}}


def _is_plausible(status: Mapping[str, Any]) -> bool:
    balancer = status.get("loadBalancer")
    return (
        all(is_count(status[name], _COUNT_MAX) for name in _COUNTS if status.get(name) is not None)
        and is_count(status.get("observedGeneration") or 0, INT64_MAX)
        and all(isinstance(status.get(name), str | None) for name in _TEXTS)
        and _are_conditions(status.get("conditions"))
        and all(_are_named(status.get(name)) for name in _CONTAINERS)
        and (balancer is None or (isinstance(balancer, dict) and _are_objects(balancer.get("ingress"))))
        and len(orjson.dumps(status)) <= BYTES_MAX
    )


def _are_objects(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(entry, dict) for entry in value))


def _are_conditions(value: Any) -> bool:
    return _are_objects(value) and all(
        isinstance(entry.get(field), str | None) for entry in value or () for field in _CONDITION_TEXTS
    )


def _are_named(value: Any) -> bool:
    return _are_objects(value) and all(isinstance(entry.get("name"), str) for entry in value or ())
