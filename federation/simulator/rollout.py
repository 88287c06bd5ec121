"""The Deployment controller's arithmetic: how many replicas each ReplicaSet should have next, and the status.

Pure: a Deployment's numbers and its ReplicaSets' numbers in, numbers out. The rules are those of Kubernetes' rolling
update (maxSurge rounds up, maxUnavailable rounds down, both zero means one unavailable) and Recreate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplicaSetState:
    """What a ReplicaSet wants and has."""

    name: str
    replicas: int
    """spec.replicas"""
    current: int
    """status.replicas: pods that exist"""
    available: int


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """The room a rolling update has around `desired`, in pods."""

    desired: int
    surge: int
    unavailable: int


def _resolve(value: Any, total: int, *, round_up: bool) -> int:
    if value is None:
        value = "25%"
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * total
        return -(-share // 100) if round_up else share // 100
    return int(value)


def compute_limits(deployment: Mapping[str, Any]) -> RolloutLimits:
    """Return desired replicas, surge and unavailable pods of a Deployment."""
    spec = deployment["spec"]
    desired = int(spec.get("replicas", 1))
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    surge = _resolve(rolling.get("maxSurge"), desired, round_up=True)
    unavailable = _resolve(rolling.get("maxUnavailable"), desired, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return RolloutLimits(desired, surge, min(unavailable, desired))


def plan_rolling_update(limits: RolloutLimits, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> dict[str, int]:
    """Return the next spec.replicas by ReplicaSet name, for those that should change; `old` is oldest first."""
    active = [state for state in old if state.replicas > 0]
    if not active:
        return {new.name: limits.desired} if new.replicas != limits.desired else {}
    changes: dict[str, int] = {}
    grown = _grow_new(limits, new, active)
    if grown != new.replicas:
        changes[new.name] = grown
    changes.update(_shrink_old(limits, new, grown, active))
    return changes


def _grow_new(limits: RolloutLimits, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> int:
    if new.replicas >= limits.desired:
        return limits.desired
    total = new.replicas + sum(state.replicas for state in old)
    room = limits.desired + limits.surge - total
    return new.replicas + max(0, min(room, limits.desired - new.replicas))


def _shrink_old(
    limits: RolloutLimits, new: ReplicaSetState, grown: int, old: Sequence[ReplicaSetState]
) -> dict[str, int]:
    available_min = limits.desired - limits.unavailable
    total = grown + sum(state.replicas for state in old)
    budget = total - available_min - (grown - min(new.available, grown))
    remaining = {state.name: state.replicas for state in old}
    # Pods that are not available anyway go first: removing them costs no availability.
    for state in old:
        take = min(budget, max(0, state.replicas - state.available))
        if take > 0:
            remaining[state.name] -= take
            budget -= take
    available = min(new.available, grown) + sum(min(state.available, remaining[state.name]) for state in old)
    spare = min(budget, available - available_min)
    for state in old:
        take = min(spare, remaining[state.name])
        if take > 0:
            remaining[state.name] -= take
            spare -= take
    return {state.name: remaining[state.name] for state in old if remaining[state.name] != state.replicas}


def plan_recreate(desired: int, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> dict[str, int]:
    """Return the next spec.replicas: every old pod is gone before the first new one comes."""
    changes = {state.name: 0 for state in old if state.replicas > 0}
    if not changes and all(state.current == 0 for state in old) and new.replicas != desired:
        changes[new.name] = desired
    return changes


def compute_status(
    deployment: Mapping[str, Any], new: ReplicaSetState | None, states: Sequence[ReplicaSetState], ready: int, now: str
) -> dict[str, Any]:
    """Return the Deployment's status; `ready` counts ready pods of all ReplicaSets, `now` is RFC 3339 text."""
    limits = compute_limits(deployment)
    total = sum(state.current for state in states)
    available = sum(state.available for state in states)
    updated = new.current if new else 0
    counts = {
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": available,
        "unavailableReplicas": max(0, max(total, limits.desired) - available),
    }
    status: dict[str, Any] = {"observedGeneration": deployment["metadata"].get("generation", 1)}
    status.update({key: count for key, count in counts.items() if count})
    complete = updated == limits.desired == total == available
    previous = {c["type"]: c for c in (deployment.get("status") or {}).get("conditions", ())}
    name = deployment["metadata"]["name"]
    enough = available >= limits.desired - limits.unavailable
    set_name = new.name if new else f"{name}-0"
    status["conditions"] = [
        _condition(previous, "Available", enough, *_AVAILABLE[enough], now),
        _condition(previous, "Progressing", True, *_progress(complete, previous, set_name), now),
    ]
    return status


_AVAILABLE = {
    True: ("MinimumReplicasAvailable", "Deployment has minimum availability."),
    False: ("MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
}


def _progress(complete: bool, previous: Mapping[str, Any], set_name: str) -> tuple[str, str]:
    if complete:
        return "NewReplicaSetAvailable", f'ReplicaSet "{set_name}" has successfully progressed.'
    if "Progressing" not in previous:
        return "NewReplicaSetCreated", f'Created new replica set "{set_name}"'
    return "ReplicaSetUpdated", f'ReplicaSet "{set_name}" is progressing.'


def _condition(
    previous: Mapping[str, Any], kind: str, value: bool, reason: str, message: str, now: str
) -> dict[str, Any]:
    status = "True" if value else "False"
    old = previous.get(kind)
    if old and old["status"] == status and old["reason"] == reason and old["message"] == message:
        return dict(old)
    changed = old["lastTransitionTime"] if old and old["status"] == status else now
    return {
        "type": kind,
        "status": status,
        "lastUpdateTime": now,
        "lastTransitionTime": changed,
        "reason": reason,
        "message": message,
    }
