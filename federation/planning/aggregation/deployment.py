"""The aggregated status of a Deployment: sums, and the conditions for `kubectl rollout status` and `kubectl wait`.

Available is True when it is True in every cluster of the placement that answers. Progressing is the worst of the
members': deadline exceeded, else updating, else complete. `observedGeneration` follows the source when all members have
observed its current spec. A Deployment for which no cluster is found exceeds its progress deadline, too, and so does
one whose rollout in waves has failed, so that `kubectl rollout status` ends. The conditions differ from KubeAdmiral's
on purpose (docs/reference/status.md).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import (
    Context,
    Members,
    keep_condition_times,
    observed_generation,
    status_of,
)
from federation.planning.aggregation.context import sums as sum_fields

_SUMMED = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
)
_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
_COMPLETE = "NewReplicaSetAvailable"


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the Deployment's status."""
    status: Object = dict(sum_fields(members, _SUMMED))
    if (generation := observed_generation(source, context)) is not None:
        status["observedGeneration"] = generation
    previous = status_of(source).get("conditions") or []
    progressing = _progressing(members, context)
    if not members and context.is_nowhere:
        status["observedGeneration"] = source["metadata"].get("generation", 0)
        progressing = _stuck(source, context)
    if context.rollout_failure:
        status["observedGeneration"] = source["metadata"].get("generation", 0)
        text = f"The rollout in waves has failed: {context.rollout_failure}"
        progressing = [_condition(names.DEPLOYMENT_PROGRESSING, "False", _DEADLINE_EXCEEDED, text)]
    wanted = [_available(members, context), *progressing, *_replica_failure(members)]
    kept = [c for c in previous if c.get("type") not in _OWNED]
    status["conditions"] = [*keep_condition_times(previous, wanted, context.now, update_field="lastUpdateTime"), *kept]
    return status


def deadline_in_s(source: Mapping[str, Any], unscheduled_since: datetime | None, now: datetime) -> float | None:
    """Return the seconds until a Deployment without clusters exceeds its progress deadline, None for other objects."""
    seconds = (source.get("spec") or {}).get("progressDeadlineSeconds")
    if unscheduled_since is None or not isinstance(seconds, int):
        return None
    return seconds - (now - unscheduled_since).total_seconds()


def is_stuck(source: Mapping[str, Any], context: Context) -> bool:
    """Return True if a Deployment that no cluster runs has exceeded its progress deadline."""
    return _is_late(source, context) and "observedGeneration" not in status_of(source)


def _is_late(source: Mapping[str, Any], context: Context) -> bool:
    remaining_s = deadline_in_s(source, context.unscheduled_since, context.now)
    return remaining_s is not None and remaining_s <= 0


def _stuck(source: Mapping[str, Any], context: Context) -> list[dict[str, Any]]:
    if not _is_late(source, context):
        return []
    return [
        _condition(names.DEPLOYMENT_PROGRESSING, "False", _DEADLINE_EXCEEDED, "Deployment is placed in no cluster.")
    ]


_OWNED = frozenset({names.DEPLOYMENT_AVAILABLE, names.DEPLOYMENT_PROGRESSING, names.DEPLOYMENT_REPLICA_FAILURE})


def _expected(members: Members, context: Context) -> list[str]:
    """Return the clusters of the placement, or those with a member object when it is empty."""
    return sorted(context.placed or members)


def _condition_in(members: Members, cluster: str, type_: str) -> Mapping[str, Any] | None:
    member = members.get(cluster)
    return conditions.find(status_of(member).get("conditions"), type_) if member is not None else None


def _available(members: Members, context: Context) -> dict[str, Any]:
    everywhere = _expected(members, context)
    expected = [cluster for cluster in everywhere if cluster not in context.stale]
    if everywhere and not expected:
        text = f"None of the clusters [{','.join(everywhere)}] answers."
        return _condition(names.DEPLOYMENT_AVAILABLE, "Unknown", names.REASON_CLUSTERS_DO_NOT_ANSWER, text)
    missing = [
        cluster
        for cluster in expected
        if (found := _condition_in(members, cluster, names.DEPLOYMENT_AVAILABLE)) is None
        or found.get("status") != "True"
    ]
    if expected and not missing:
        return _condition(
            names.DEPLOYMENT_AVAILABLE,
            "True",
            "MinimumReplicasAvailable",
            f"Deployment has minimum availability in clusters [{','.join(expected)}].",
        )
    where = f" in clusters [{','.join(missing)}]" if missing else ": it is placed in no cluster"
    return _condition(
        names.DEPLOYMENT_AVAILABLE,
        "False",
        "MinimumReplicasUnavailable",
        f"Deployment does not have minimum availability{where}.",
    )


def _progressing(members: Members, context: Context) -> list[dict[str, Any]]:
    expected = _expected(members, context)
    found = {cluster: _condition_in(members, cluster, names.DEPLOYMENT_PROGRESSING) for cluster in expected}
    late = [c for c, condition in found.items() if condition and condition.get("reason") == _DEADLINE_EXCEEDED]
    if late:
        text = f"Deployment has timed out progressing in clusters [{','.join(late)}]."
        return [_condition(names.DEPLOYMENT_PROGRESSING, "False", _DEADLINE_EXCEEDED, text)]
    if not expected:
        return []
    is_complete = context.is_observed and all(c and c.get("reason") == _COMPLETE for c in found.values())
    if is_complete:
        text = f"Deployment has successfully progressed in clusters [{','.join(expected)}]."
        return [_condition(names.DEPLOYMENT_PROGRESSING, "True", _COMPLETE, text)]
    waiting = [c for c, condition in found.items() if not condition or condition.get("reason") != _COMPLETE]
    where = f" in clusters [{','.join(waiting)}]" if waiting else ""
    return [_condition(names.DEPLOYMENT_PROGRESSING, "True", "ReplicaSetUpdated", f"Deployment is progressing{where}.")]


def _replica_failure(members: Members) -> list[dict[str, Any]]:
    """Return the ReplicaFailure condition with the first cluster's message, when any member reports one."""
    failing = [
        (cluster, condition)
        for cluster in sorted(members)
        if (condition := _condition_in(members, cluster, names.DEPLOYMENT_REPLICA_FAILURE)) is not None
        and condition.get("status") == "True"
    ]
    if not failing:
        return []
    clusters = ",".join(cluster for cluster, _ in failing)
    first = failing[0][1]
    text = f"[{clusters}]: {first.get('message', '')}"
    return [_condition(names.DEPLOYMENT_REPLICA_FAILURE, "True", str(first.get("reason", "")), text)]


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}
