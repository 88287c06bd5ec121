"""The Scheduled condition of a source object: one line about the outcome of scheduling. Pure.

It goes into the status of kinds whose condition list is open. The federated object's own condition is more detailed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import keep_condition_times

_CLUSTERS_NAMED_MAX = 20
_KINDS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
        ("", "Pod"),
    }
)


def takes_scheduled_condition(group: str, kind: str) -> bool:
    """Return True if the kind's condition list accepts types that Kubernetes does not define."""
    return (group, kind) in _KINDS


def scheduled_condition(federated: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the source's Scheduled condition without times, None before the first decision."""
    condition = conditions.find((federated.get("status") or {}).get("conditions"), names.SCHEDULED)
    if condition is not None and condition.get("status") != "True":
        return {
            "type": names.SCHEDULED,
            "status": str(condition.get("status")),
            "reason": str(condition.get("reason", "")),
            "message": str(condition.get("message", "")),
        }
    annotations = federated["metadata"].get("annotations") or {}
    try:
        text = annotations.get(names.SCHEDULING)
        placement = orjson.loads(text)["placement"] if text else {}
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(placement, dict) or not placement:
        return None
    summary = annotations.get(names.SCHEDULING_SUMMARY)
    return {
        "type": names.SCHEDULED,
        "status": "True",
        "reason": names.REASON_SCHEDULED,
        "message": "; ".join(filter(None, (summary, describe_placement(placement)))),
    }


def is_unscheduled(federated: Mapping[str, Any]) -> bool:
    """Return True if the last scheduling attempt failed."""
    condition = scheduled_condition(federated)
    return condition is not None and condition["status"] != "True"


def with_scheduled_condition(
    status: Object, present: Mapping[str, Any], federated: Mapping[str, Any], now: datetime
) -> Object:
    """Return the status with the Scheduled condition; it keeps its times from the `present` status."""
    kept = [c for c in status.get("conditions") or () if c.get("type") != names.SCHEDULED]
    wanted = scheduled_condition(federated)
    if wanted is not None:
        kept += keep_condition_times(present.get("conditions"), [wanted], now)
    return {**status, "conditions": kept} if kept else status


def describe_placement(placement: Mapping[str, int | None]) -> str:
    """Return the placement for people: "east 4, north 2", or only names in Duplicate mode."""
    named = sorted(placement)[:_CLUSTERS_NAMED_MAX]
    parts = [name if (count := placement[name]) is None else f"{name} {count}" for name in named]
    if len(placement) > len(parts):
        parts.append(f"and {len(placement) - len(parts)} more clusters")
    return ", ".join(parts)
