"""The arithmetic of the simulated Deployment controller: the next replicas of each ReplicaSet, and the status. Pure.

The rules are those of Kubernetes: a rolling update rounds maxSurge up and maxUnavailable down, and if both are zero
one pod may be unavailable; Recreate scales down all old ReplicaSets first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api.names import DEPLOYMENT_REPLICA_FAILURE


@dataclass(frozen=True, slots=True)
class ReplicaSetState:
    """The replica counts of a ReplicaSet."""

    name: str
    replicas: int
    """spec.replicas"""
    current: int
    """status.replicas: pods that exist"""
    available: int


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """Desired pods of a Deployment, and how many more or fewer available ones a rolling update may have."""

    desired: int
    surge: int
    unavailable: int


def resolve_percentage(value: Any, total: int, *, round_up: bool) -> int:
    """Return an int-or-percentage of the total; None is 25 %."""
    if value is None:
        value = "25%"
    if isinstance(value, str) and value.endswith("%"):
        share = int(value[:-1]) * total
        return -(-share // 100) if round_up else share // 100
    return int(value)


def compute_limits(deployment: Mapping[str, Any]) -> RolloutLimits:
    """Return the limits of a Deployment's rolling update."""
    spec = deployment["spec"]
    desired = int(spec.get("replicas", 1))
    rolling = (spec.get("strategy") or {}).get("rollingUpdate") or {}
    surge = resolve_percentage(rolling.get("maxSurge"), desired, round_up=True)
    unavailable = resolve_percentage(rolling.get("maxUnavailable"), desired, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return RolloutLimits(desired, surge, min(unavailable, desired))


def plan_rolling_update(limits: RolloutLimits, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> dict[str, int]:
    """Return the next spec.replicas by name, for ReplicaSets that have to change; `old` is sorted oldest first."""
    active = [state for state in old if state.replicas > 0]
    if not active:
        return {new.name: limits.desired} if new.replicas != limits.desired else {}
    changes: dict[str, int] = {}
    new_replicas = _scale_up_new(limits, new, active)
    if new_replicas != new.replicas:
        changes[new.name] = new_replicas
    changes.update(_scale_down_old(limits, new, new_replicas, active))
    return changes


def _scale_up_new(limits: RolloutLimits, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> int:
    if new.replicas >= limits.desired:
        return limits.desired
    total = new.replicas + sum(state.replicas for state in old)
    surge_left = limits.desired + limits.surge - total
    return new.replicas + max(0, min(surge_left, limits.desired - new.replicas))


def _scale_down_old(
    limits: RolloutLimits, new: ReplicaSetState, new_replicas: int, old: Sequence[ReplicaSetState]
) -> dict[str, int]:
    available_min = limits.desired - limits.unavailable
    total = new_replicas + sum(state.replicas for state in old)
    budget = total - available_min - (new_replicas - min(new.available, new_replicas))
    remaining = {state.name: state.replicas for state in old}
    # Unavailable pods are deleted first: that costs no availability.
    for state in old:
        removed = min(budget, max(0, state.replicas - state.available))
        if removed > 0:
            remaining[state.name] -= removed
            budget -= removed
    available = min(new.available, new_replicas) + sum(min(state.available, remaining[state.name]) for state in old)
    spare = min(budget, available - available_min)
    for state in old:
        removed = min(spare, remaining[state.name])
        if removed > 0:
            remaining[state.name] -= removed
            spare -= removed
    return {state.name: remaining[state.name] for state in old if remaining[state.name] != state.replicas}


def plan_recreate(desired: int, new: ReplicaSetState, old: Sequence[ReplicaSetState]) -> dict[str, int]:
    """Return the next spec.replicas; the new ReplicaSet is scaled up when no old pod exists any more."""
    changes = {state.name: 0 for state in old if state.replicas > 0}
    if not changes and all(state.current == 0 for state in old) and new.replicas != desired:
        changes[new.name] = desired
    return changes


def compute_status(
    deployment: Mapping[str, Any],
    new: ReplicaSetState | None,
    states: Sequence[ReplicaSetState],
    ready: int,
    now: str,
    failure: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the Deployment's status.

    `ready` counts ready pods of all ReplicaSets, `now` is RFC 3339 text. `failure` is the condition of a ReplicaSet
    whose pods are refused.
    """
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
    if failure is not None:
        text = str(failure["reason"]), str(failure["message"])
        status["conditions"].append(_condition(previous, DEPLOYMENT_REPLICA_FAILURE, True, *text, now))
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
