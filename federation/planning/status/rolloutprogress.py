"""The rollout of a workload in one cluster, from its member object: pods and what is missing; and its budget. Pure.

This is what `fedctl rollout status` shows of a workload without waves. One with waves has a FederatedRollout.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api.federatedtype import FederatedType
from federation.planning.rendering.memberobject import divided_replicas
from federation.planning.status.readiness import assess_readiness, count_pods
from federation.planning.steps.memberstate import has_old_template, replicas_of
from federation.planning.steps.strategy import strategy_of
from federation.planning.waves.rolloutpart import replaces_pods


@dataclass(frozen=True, slots=True)
class Progress:
    """The pods of a workload in one cluster, and why its update is not complete there, "" when it is."""

    wanted: int
    updated: int
    ready: int
    available: int
    problem: str = ""


def progress_of(
    type_: FederatedType, wanted: Mapping[str, Any] | None, live: Mapping[str, Any] | None
) -> Progress | None:
    """Return the progress in a cluster, None for kinds that do not replace their pods one by one.

    `wanted` is the rendered object, None when the object is to leave the cluster; `live` is the member object, None
    without one. Pods of an earlier template do not count as updated.
    """
    kind = type_.resource.kind
    if not replaces_pods({"apiVersion": type_.resource.api_version, "kind": kind}):
        return None
    if live is None:
        return Progress(0 if wanted is None else replicas_of(wanted), 0, 0, 0, "it has no object yet")
    counts, status, is_daemon_set = count_pods(live, kind), live.get("status"), kind == "DaemonSet"
    fields = ("numberReady", "numberAvailable") if is_daemon_set else ("readyReplicas", "availableReplicas")
    ready, available = (_number(status, field) for field in fields)
    if wanted is None:
        return Progress(0, counts.updated, ready, available, "it is being removed")
    count = counts.wanted if is_daemon_set else replicas_of(wanted)
    if has_old_template(wanted, live):
        return Progress(count, 0, ready, available, "it has an earlier pod template")
    problem = assess_readiness(live, kind).problem
    if not problem and counts.wanted != count:
        problem = f"it has {counts.wanted} of {count} wanted replicas"
    return Progress(count, counts.updated, ready, available, problem)


def budget_of(federated: Mapping[str, Any], type_: FederatedType) -> dict[str, int] | None:
    """Return the replicas, surge and unavailability over all clusters; None for a workload that is not divided."""
    if not divided_replicas(federated, type_):
        return None
    template = federated["spec"]["template"]
    replicas = replicas_of(template)
    limits = strategy_of(type_.resource, template).budget(replicas)
    return {"replicas": replicas, "maxSurge": limits.surge, "maxUnavailable": limits.unavailable}


def _number(status: Any, field: str) -> int:
    value = status.get(field) if isinstance(status, Mapping) else None
    return max(0, value) if type(value) is int else 0
