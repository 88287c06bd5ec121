"""How many pods a workload may have in addition, or without availability, while it is updated. Pure.

The fields, defaults and rounding are those of Kubernetes and OpenKruise, per kind. Fields with a wrong type count as
0. A strategy resolves percentages for any number of replicas: those of the whole workload, and those of one cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api.resources import ADVANCED_STATEFUL_SETS, CLONE_SETS
from federation.apimachinery import dotpaths
from federation.apimachinery.resources import DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS, Object, Resource

ORDERED = frozenset((STATEFUL_SETS, ADVANCED_STATEFUL_SETS))
"""The kinds that are scaled down from their highest ordinal, whether that pod is available or not."""

_ROLLING: Mapping[Resource, dotpaths.Path] = {
    DEPLOYMENTS: ("spec", "strategy", "rollingUpdate"),
    STATEFUL_SETS: ("spec", "updateStrategy", "rollingUpdate"),
    CLONE_SETS: ("spec", "updateStrategy"),
    ADVANCED_STATEFUL_SETS: ("spec", "updateStrategy", "rollingUpdate"),
    DAEMON_SETS: ("spec", "updateStrategy", "rollingUpdate"),
}
_PAUSED: Mapping[Resource, dotpaths.Path] = {
    DEPLOYMENTS: ("spec", "paused"),
    CLONE_SETS: ("spec", "updateStrategy", "paused"),
    ADVANCED_STATEFUL_SETS: ("spec", "updateStrategy", "rollingUpdate", "paused"),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Pods beyond the replicas, and replicas without an available pod."""

    surge: int
    unavailable: int


@dataclass(frozen=True, slots=True)
class Strategy:
    """The limits of a workload's updates, each a number or a percentage of its replicas."""

    surge: Any = 0
    unavailable: Any = 1
    rounds_up: bool = False
    """Whether a percentage of unavailable pods rounds up."""
    recreates: bool = False
    """Whether an update deletes all old pods before it creates new ones (strategy Recreate of Deployments)."""
    is_rolling: bool = True
    """Whether an update replaces pods by itself; False with OnDelete."""

    def limits(self, replicas: int) -> Limits:
        """Return the limits of an update of a workload with this number of replicas. One of them is not 0."""
        if self.recreates:
            return Limits(0, max(1, replicas))
        surge = _resolved(self.surge, replicas, rounds_up=True)
        unavailable = _resolved(self.unavailable, replicas, rounds_up=self.rounds_up)
        return Limits(surge, unavailable or (0 if surge else 1))

    def budget(self, replicas: int) -> Limits:
        """Return the limits of moves over all clusters. Recreate concerns updates only: its moves have the default."""
        return Strategy("25%", "25%").limits(replicas) if self.recreates else self.limits(replicas)


def has_strategy(resource: Resource) -> bool:
    """Return whether the kind replaces its pods within limits."""
    return resource in _ROLLING


def strategy_of(resource: Resource, workload: Mapping[str, Any]) -> Strategy:
    """Return the strategy of a Deployment, StatefulSet, DaemonSet or CloneSet."""
    rolling = dotpaths.get(workload, _ROLLING[resource])
    fields: Mapping[str, Any] = rolling if isinstance(rolling, Mapping) else {}
    surge, unavailable = fields.get("maxSurge"), fields.get("maxUnavailable")
    if resource == DEPLOYMENTS:
        is_recreate = dotpaths.get(workload, ("spec", "strategy", "type")) == "Recreate"
        return Strategy(_or(surge, "25%"), _or(unavailable, "25%"), recreates=is_recreate)
    is_rolling = dotpaths.get(workload, ("spec", "updateStrategy", "type")) != "OnDelete"
    if resource == CLONE_SETS:
        has_surge = bool(_resolved(surge, 100, rounds_up=True))
        return Strategy(_or(surge, 0), _or(unavailable, "20%"), rounds_up=not has_surge)
    return Strategy(0, _or(unavailable, 1), is_rolling=is_rolling)


def within(strategy: Strategy, replicas: int, unavailable_max: int) -> Strategy:
    """Return the strategy for moves of a workload that leaves no more pods unavailable than the number."""
    limits = strategy.budget(replicas)
    return Strategy(limits.surge, min(limits.unavailable, unavailable_max))


def can_surge(resource: Resource, workload: Mapping[str, Any], replicas: int) -> bool:
    """Return whether replicas of the workload that move are replaced before they are removed."""
    return has_strategy(resource) and strategy_of(resource, workload).budget(replicas).surge > 0


def with_limits(resource: Resource, workload: Object, limits: Limits) -> Object:
    """Return a copy of the workload with these limits as numbers, sharing everything else."""
    fields: Object = {"maxUnavailable": limits.unavailable}
    if resource not in ORDERED:
        fields["maxSurge"] = limits.surge
    return _merged(workload, _ROLLING[resource], fields)


def with_strategy_of(resource: Resource, workload: Object, live: Mapping[str, Any]) -> Object:
    """Return a copy of the workload with the update strategy of the live object."""
    field = _ROLLING[resource][1]
    spec = {key: value for key, value in workload["spec"].items() if key != field}
    present = (live.get("spec") or {}).get(field)
    return {**workload, "spec": {**spec, field: present} if present is not None else spec}


def is_paused(resource: Resource, workload: Mapping[str, Any]) -> bool:
    """Return whether the user has paused the updates of the workload."""
    path = _PAUSED.get(resource)
    return path is not None and dotpaths.get(workload, path) is True


def pause_patch(resource: Resource, *, is_paused: bool) -> Object | None:
    """Return the merge patch that pauses or resumes the updates of a workload, None for kinds without a pause."""
    path = _PAUSED.get(resource)
    return None if path is None else _merged({}, path[:-1], {path[-1]: is_paused})


def old_pods_kept(resource: Resource, workload: Mapping[str, Any], replicas: int) -> int:
    """Return how many pods the partition leaves on the old revision."""
    if resource == DEPLOYMENTS:
        return 0
    partition = dotpaths.get(workload, (*_ROLLING[resource], "partition"))
    return min(replicas, _resolved(partition, replicas, rounds_up=True))


def _or(value: Any, default: int | str) -> Any:
    return default if value is None else value


def _resolved(value: Any, replicas: int, *, rounds_up: bool) -> int:
    if type(value) is int:
        return max(0, value)
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdecimal() and len(value) <= 6:
        share = int(value[:-1]) * replicas
        return -(-share // 100) if rounds_up else share // 100
    return 0


def _merged(obj: Object, path: dotpaths.Path, fields: Object) -> Object:
    if not path:
        return {**obj, **fields}
    inner = obj.get(path[0])
    return {**obj, path[0]: _merged(inner if isinstance(inner, dict) else {}, path[1:], fields)}
