"""The annotation `names.EVICTION` of a federated object: what left which cluster, what stays and why. Pure.

It is written with the placement. After a restart the moves of the last minute count against the rate again, and
replicas return to the clusters that they left.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from federation.api import names
from federation.apimachinery.annotationrecords import AnnotationRecord, Count, Time, to_time
from federation.apimachinery.clock import is_ahead
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


class Stay(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why replicas of an object stay; `until` is when that may end by time alone, and is not recorded."""

    reason: StayReason
    message: str
    until: datetime | None = None


class EvictionRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Moves of the last minute (time, replicas); replicas that may return, by cluster; what stays, by cluster."""

    moves: tuple[tuple[Time, Count], ...] = ()
    left: Mapping[str, Count] = msgspec.field(default_factory=dict)
    stays: Mapping[str, Stay] = msgspec.field(default_factory=dict)
    returned_at: Time | None = None
    """When the last batch returned."""


NO_EVICTION = EvictionRecord()
_EVICTION = AnnotationRecord(names.EVICTION, EvictionRecord)


def eviction_record(federated: Mapping[str, Any]) -> EvictionRecord:
    """Return the record of a federated object, an empty one without any."""
    return _EVICTION.of(federated) or NO_EVICTION


def eviction_text(record: EvictionRecord, now: datetime) -> str | None:
    """Return the annotation's value, None when there is nothing to record; moves before the last minute are dropped."""
    past = (move for move in record.moves if not is_ahead(move[0], now))
    recent = [move for move in past if move[0] > now - timedelta(seconds=WINDOW_S)][-_MOVES_MAX:]
    left = {name: count for name, count in record.left.items() if count > 0}
    kept = EvictionRecord(
        tuple((to_time(at), count) for at, count in recent),
        left,
        {name: Stay(stay.reason, stay.message[:_MESSAGE_LENGTH_MAX]) for name, stay in record.stays.items()},
        to_time(record.returned_at) if record.returned_at is not None and left else None,
    )
    return _EVICTION.text(kept) if kept != NO_EVICTION else None
