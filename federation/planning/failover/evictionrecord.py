"""The annotation `names.EVICTION` of a federated object: what left which cluster, what stays and why. Pure.

It is written with the placement. After a restart the moves of the last minute count against the rate again, and
replicas return to the clusters that they left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.clock import from_rfc3339, is_ahead, to_rfc3339
from federation.apimachinery.jsonobject import parse_object
from federation.planning.failover.pace import WINDOW_S

_MOVES_MAX = 64
_MESSAGE_LENGTH_MAX = 300


class StayReason(StrEnum):
    """Why replicas stay in a lost or drained cluster."""

    KEPT = "Kept"
    """Objects of the kind never leave: their data would be lost, or other objects with them."""
    STATE = "State"
    """The workload does not tolerate two copies, and its policy does not allow it to leave."""
    NEVER = "Never"
    """The policy says that it stays."""
    GRACE = "Grace"
    HALTED = "Halted"
    READY = "Ready"
    """The cluster is ready; its taint will be removed."""
    BUDGET = "ClusterDisruptionBudget"
    DISRUPTION = "PodDisruptionBudget"
    RATE = "Rate"
    NO_ROOM = "NoRoom"
    """No other cluster can hold them."""


@dataclass(frozen=True, slots=True)
class Stay:
    """Why replicas of an object stay; `until` is when that may end by time alone."""

    reason: StayReason
    message: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EvictionRecord:
    """Moves of the last minute (time, replicas); replicas that may return, by cluster; what stays, by cluster."""

    moves: tuple[tuple[datetime, int], ...] = ()
    left: Mapping[str, int] = field(default_factory=dict)
    stays: Mapping[str, Stay] = field(default_factory=dict)
    returned_at: datetime | None = None
    """When the last batch returned."""


NO_EVICTION = EvictionRecord()


def eviction_record(federated: Mapping[str, Any]) -> EvictionRecord:
    """Return the record of a federated object; an empty one without the annotation or for a malformed one."""
    text = ((federated.get("metadata") or {}).get("annotations") or {}).get(names.EVICTION)
    if not text:
        return NO_EVICTION
    found = parse_object(text) or {}
    try:
        return EvictionRecord(
            tuple((from_rfc3339(at), _positive(count)) for at, count in found.get("moves") or ()),
            {str(name): _positive(count) for name, count in (found.get("left") or {}).items()},
            {str(name): _to_stay(stay) for name, stay in (found.get("stays") or {}).items()},
            from_rfc3339(found["returnedAt"]) if found.get("returnedAt") else None,
        )
    except (ValueError, TypeError, AttributeError, KeyError):
        return NO_EVICTION


def eviction_text(record: EvictionRecord, now: datetime) -> str | None:
    """Return the annotation's value, None when there is nothing to record; moves before the last minute are dropped."""
    past = (move for move in record.moves if not is_ahead(move[0], now))
    recent = [move for move in past if move[0] > now - timedelta(seconds=WINDOW_S)][-_MOVES_MAX:]
    fields: dict[str, Any] = {
        "left": {name: count for name, count in record.left.items() if count > 0},
        "moves": [[to_rfc3339(at), count] for at, count in recent],
        "stays": {
            name: {"message": stay.message[:_MESSAGE_LENGTH_MAX], "reason": str(stay.reason)}
            for name, stay in record.stays.items()
        },
    }
    if record.returned_at is not None and fields["left"]:
        fields["returnedAt"] = to_rfc3339(record.returned_at)
    fields = {key: value for key, value in fields.items() if value}
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode() if fields else None


def _to_stay(value: Any) -> Stay:
    return Stay(StayReason(value["reason"]), str(value.get("message") or ""))


def _positive(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is not a number of replicas")
    return value
