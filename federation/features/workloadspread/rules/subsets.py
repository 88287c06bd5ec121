"""Read the spec of a WorkloadSpread: its subsets, their limits as numbers, its strategy. Pure.

A limit is an integer or an integer percentage of the workload's replicas. Percentages round up, so limits may add up
to more than the replicas. Objects are in the v1beta1 form (`hub.py`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.resources import Object

UNLIMITED = -1
"""`missingReplicas` of a subset without a limit."""
ADAPTIVE = "Adaptive"
_PERCENTAGE = re.compile(r"([+-]?[0-9]{1,18})%", re.ASCII)


def subsets_of(spread: Mapping[str, Any]) -> Sequence[Object]:
    """Return `spec.subsets`, highest priority first."""
    return (spread.get("spec") or {}).get("subsets") or ()


def name_of(subset: Mapping[str, Any]) -> str:
    """Return the name of a subset or of its status."""
    return str(subset.get("name") or "")


def find_subset(spread: Mapping[str, Any], name: str) -> Object | None:
    """Return the subset with that name, None when there is none."""
    return next((subset for subset in subsets_of(spread) if name_of(subset) == name), None)


def target_of(spread: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `spec.targetRef`, {} when it is absent."""
    return (spread.get("spec") or {}).get("targetRef") or {}


def is_stateful(spread: Mapping[str, Any]) -> bool:
    """Return True if the target is a StatefulSet of either group: ordinals decide, and nothing is recorded."""
    return bool(target_of(spread).get("kind") == "StatefulSet")


def is_unrestricted(spread: Mapping[str, Any]) -> bool:
    """Return True for a single subset without a limit: it takes every pod, and nothing is recorded."""
    subsets = subsets_of(spread)
    return len(subsets) == 1 and subsets[0].get("maxReplicas") is None


def uses_percentages(subsets: Iterable[Mapping[str, Any]]) -> bool:
    """Return True if a limit is a percentage, so that limits depend on the workload's replicas."""
    return any(isinstance(subset.get("maxReplicas"), str) for subset in subsets)


def parse_percentage(value: Any) -> int | None:
    """Return the number of "<integer>%", None for anything else."""
    found = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found else None


def resolve_limit(value: Any, total: int) -> int | None:
    """Return a `maxReplicas` as a number of pods, at least 0; None for no limit.

    `total` is the workload's replicas; a negative one is unknown and counts as 0. Percentages round up. InvalidInput
    for a value that is neither an integer nor an integer percentage.
    """
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    percentage = parse_percentage(value)
    if percentage is None:
        raise InvalidInput(f"maxReplicas: {value!r} is neither an integer nor a percentage such as 20%")
    return max(0, -(-max(0, total) * percentage // 100))


def strategy_of(spread: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `spec.scheduleStrategy`, {} when it is absent."""
    return (spread.get("spec") or {}).get("scheduleStrategy") or {}


def is_federated(spread: Mapping[str, Any]) -> bool:
    """Return True for an object in a member that the federation delivers: other clusters may take its pods."""
    return bool(((spread.get("metadata") or {}).get("labels") or {}).get(names.MANAGED_LABEL) == "true")


def critical_s(spread: Mapping[str, Any]) -> int:
    """Return how many seconds a pod may be unschedulable before it is moved; 0 when pods are never moved."""
    strategy = strategy_of(spread)
    if strategy.get("type") != ADAPTIVE:
        return 0
    return max(0, (strategy.get("adaptive") or {}).get("rescheduleCriticalSeconds") or 0)


def has_simulation(spread: Mapping[str, Any]) -> bool:
    """Return True if admission checks that a node fits the pod before it chooses a subset."""
    strategy = strategy_of(spread)
    adaptive = strategy.get("adaptive") or {}
    return strategy.get("type") == ADAPTIVE and not adaptive.get("disableSimulationSchedule")
