"""How many pods of a workload may be unavailable over all clusters while a cluster is drained. Pure.

Each member guards its own pods against evictions, but nothing evicts the pods of a drained cluster: the control plane
scales its workloads down there. So it keeps the PodDisruptionBudgets of the host itself, over all clusters.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery.selectors import SelectorError, compile_label_selector


def is_changed(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return whether an event of a federated object changes a PodDisruptionBudget."""
    before, after = (_budget_in(federated) for federated in (old, new))
    return bool(before != after)


def _budget_in(federated: Mapping[str, Any] | None) -> Any:
    """Return the spec of the PodDisruptionBudget in a federated object, None for another kind."""
    template = ((federated or {}).get("spec") or {}).get("template") or {}
    return template.get("spec") if template.get("kind") == "PodDisruptionBudget" else None


def unavailable_max(budgets: Iterable[Mapping[str, Any]], workload: Mapping[str, Any], replicas: int) -> int | None:
    """Return how many of `replicas` pods may be unavailable; None if no budget selects the pods of the workload.

    `budgets` are the PodDisruptionBudgets of its namespace. Percentages are rounded up, as Kubernetes rounds them. A
    budget with a malformed selector selects nothing, one with a malformed limit allows nothing.
    """
    labels = _labels(workload)
    limits = [_limit(budget.get("spec") or {}, replicas) for budget in budgets if _is_selected(budget, labels)]
    return min(limits, default=None)


def _labels(workload: Mapping[str, Any]) -> Mapping[str, str]:
    pod = workload if workload.get("kind") == "Pod" else (workload.get("spec") or {}).get("template") or {}
    return (pod.get("metadata") or {}).get("labels") or {}


def _is_selected(budget: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    try:
        return compile_label_selector((budget.get("spec") or {}).get("selector")).matches(labels)
    except (SelectorError, TypeError, AttributeError):
        return False


def _limit(spec: Mapping[str, Any], replicas: int) -> int:
    try:
        if spec.get("maxUnavailable") is not None:
            return min(replicas, _resolve(spec["maxUnavailable"], replicas))
        least = spec.get("minAvailable")
        return max(0, replicas - _resolve(1 if least is None else least, replicas))
    except ValueError:
        return 0


def _resolve(value: Any, replicas: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value.removesuffix("%")) * replicas // 100)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError(f"{value!r} is neither a number nor a percentage")
