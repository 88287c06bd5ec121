"""The Scheduled condition of a source object: one line about the outcome of scheduling. Pure.

`sourceconditions.py` puts it into the source's status.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.planning.federatedobject.schedulingfeedback import last_placement

_CLUSTERS_NAMED_MAX = 20


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
    placement = last_placement(federated)
    if not placement:
        return None
    summary = annotations.get(names.SCHEDULING_SUMMARY)
    return {
        "type": names.SCHEDULED,
        "status": "True",
        "reason": names.REASON_SCHEDULED,
        "message": "; ".join(filter(None, (summary, describe_placement(placement)))),
    }


def describe_placement(placement: Mapping[str, int | None]) -> str:
    """Return the placement for people: "east 4, north 2", or only names in Duplicate mode."""
    named = sorted(placement)[:_CLUSTERS_NAMED_MAX]
    parts = [name if (count := placement[name]) is None else f"{name} {count}" for name in named]
    if len(placement) > len(parts):
        parts.append(f"and {len(placement) - len(parts)} more clusters")
    return ", ".join(parts)


def describe_move(before: Mapping[str, int | None], after: Mapping[str, int | None]) -> str:
    """Return the difference for people: "east 2 → 5, +west 1, -north"; the whole first placement."""
    if not before:
        return describe_placement(after)
    parts = []
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if name not in after:
            parts.append(f"-{name}")
        elif name not in before:
            parts.append(f"+{name}" if new is None else f"+{name} {new}")
        elif old != new:
            parts.append(f"{name} {'all' if old is None else old} → {'all' if new is None else new}")
    return ", ".join(parts)
