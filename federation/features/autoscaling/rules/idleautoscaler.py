"""The condition ScalingActive=False of an autoscaler on the host that targets a federated workload.

The host runs no pods, so such an autoscaler does nothing unless it is delivered to members. A kube-controller-manager
that runs on the host writes the same condition every 15 seconds, and may even act, for example on external metrics. Its
word counts: a condition that does not have our reason is never replaced, so the two do not take turns. Pure.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.conditions import Condition
from federation.features.autoscaling.names import REASON_FEDERATED_WORKLOAD


def target_of(scaler: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return group, kind, namespace and name of the workload that the autoscaler targets, "" for what is missing."""
    target = (scaler.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(target.get("apiVersion") or "").rpartition("/")[0]
    namespace = scaler["metadata"].get("namespace", "")
    return group, str(target.get("kind") or ""), namespace, str(target.get("name") or "")


def plan_conditions(scaler: Mapping[str, Any], *, is_idle: bool, now: datetime) -> list[Condition] | None:
    """Return the autoscaler's next conditions, None when they stay as they are."""
    present: list[Condition] = (scaler.get("status") or {}).get("conditions") or []
    held = conditions.find(present, names.SCALING_ACTIVE)
    if held is not None and held.get("reason") != REASON_FEDERATED_WORKLOAD:
        return None
    if is_idle:
        _, kind, _, name = target_of(scaler)
        message = (
            f"{kind} {name} is federated and runs no pods on the host; to scale its total from here, let its policy"
            " divide it (schedulingMode: Divide); to scale it in each member, select this autoscaler in a propagation"
            f" policy or list it in the workload's annotation {names.FOLLOWERS}"
        )
        wanted = conditions.set_condition(
            present,
            type_=names.SCALING_ACTIVE,
            status="False",
            reason=REASON_FEDERATED_WORKLOAD,
            message=message,
            now=now,
        )
    else:
        wanted = conditions.remove(present, names.SCALING_ACTIVE)
    return None if wanted is present else wanted
