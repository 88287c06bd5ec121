"""The conditions of delivery of a source object: whether it is placed, and whether the clusters have it.

They are Scheduled, Propagated and, while a cluster refuses a follower of the object, FollowersDelivered. They go into
the status of kinds whose condition list is open, in the same write as the merged status. The federated object has the
same conditions in more detail. Pure.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery import conditions
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import keep_condition_times
from federation.planning.status.schedulingsummary import describe_placement, scheduled_condition

_MESSAGE_LENGTH_MAX = 4096
_OWNED = frozenset((names.SCHEDULED, names.PROPAGATED, names.FOLLOWERS_DELIVERED))
_KINDS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("", "ReplicationController"),
        (KRUISE_GROUP, "CloneSet"),
        (KRUISE_GROUP, "StatefulSet"),
        ("batch", "Job"),
        ("", "Pod"),
    }
)
_TRANSIENT = frozenset(
    (
        "OK",
        "Finished",
        "Kept",
        "PendingCreate",
        "CachedRetrievalFailed",
        "WaitingForRemoval",
        "WaitingForReplicas",
        "WaitingForUpdate",
    )
)
"""Statuses in a cluster that end by themselves, at once or step by step."""
_UNDELIVERED = frozenset((names.REASON_NO_POLICY, names.REASON_NO_SOURCE))


def takes_source_conditions(group: str, kind: str) -> bool:
    """Return True if the kind's condition list accepts types that Kubernetes does not define."""
    return (group, kind) in _KINDS


def describe_missing_policy(namespace: str) -> str:
    """Return what to do about an object in the namespace ("": cluster-scoped) that no policy selects."""
    kind = "PropagationPolicy or ClusterPropagationPolicy" if namespace else "ClusterPropagationPolicy"
    label = names.PROPAGATION_POLICY_LABEL if namespace else names.CLUSTER_PROPAGATION_POLICY_LABEL
    return f"no {kind} selects it: add the label {label}=NAME to it, or a selector for it to a policy"


def source_conditions(federated: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions without times; each is absent before its first decision or delivery."""
    delivered = conditions.find((federated.get("status") or {}).get("conditions"), names.PROPAGATED)
    reason = "" if delivered is None else str(delivered.get("reason") or "")
    scheduled = scheduled_condition(federated)
    if reason == names.REASON_NO_POLICY and (scheduled is None or scheduled["status"] == "True"):
        scheduled = _condition(names.SCHEDULED, "False", reason, str((delivered or {}).get("message", "")))
    found = [] if scheduled is None else [scheduled]
    if refusal := refused_followers(federated):
        found.append(_condition(names.FOLLOWERS_DELIVERED, "False", names.REASON_CHECK_FOLLOWERS, refusal))
    if delivered is None:
        return found
    if delivered.get("status") == "True":
        clusters = (federated.get("status") or {}).get("clusters") or ()
        names_only = dict.fromkeys((str(entry.get("cluster")) for entry in clusters), None)
        text = f"in {describe_placement(names_only)}"
        return [*found, _condition(names.PROPAGATED, "True", names.PROPAGATED, text)]
    message = str(delivered.get("message", ""))[:_MESSAGE_LENGTH_MAX]
    return [*found, _condition(names.PROPAGATED, "False", reason, message)]


def refused_followers(federated: Mapping[str, Any]) -> str:
    """Return what the object's condition says about followers that its clusters refuse, "" for none."""
    condition = conditions.find((federated.get("status") or {}).get("conditions"), names.FOLLOWERS_DELIVERED) or {}
    return str(condition.get("message") or "")[:_MESSAGE_LENGTH_MAX] if condition.get("status") == "False" else ""


def is_unselected(federated: Mapping[str, Any]) -> bool:
    """Return True if no policy selects the object."""
    delivered = conditions.find((federated.get("status") or {}).get("conditions"), names.PROPAGATED)
    return delivered is not None and delivered.get("reason") == names.REASON_NO_POLICY


def is_undelivered(federated: Mapping[str, Any]) -> bool:
    """Return True if the object could not be scheduled, or if a cluster does not take it: waiting does not help."""
    status = federated.get("status") or {}
    held = status.get("conditions")
    scheduled, delivered = conditions.find(held, names.SCHEDULED), conditions.find(held, names.PROPAGATED)
    if scheduled is not None and scheduled.get("status") != "True":
        return True
    if delivered is None or delivered.get("status") == "True":
        return False
    return delivered.get("reason") in _UNDELIVERED or any(
        entry.get("status") not in _TRANSIENT for entry in status.get("clusters") or ()
    )


def unscheduled_since(present: Mapping[str, Any], federated: Mapping[str, Any], now: datetime) -> datetime | None:
    """Return since when the source's `present` status says that no cluster is found, None if one is.

    `now` when the status does not say so yet.
    """
    if all(each["type"] != names.SCHEDULED or each["status"] == "True" for each in source_conditions(federated)):
        return None
    known = conditions.find(present.get("conditions"), names.SCHEDULED) or {}
    try:
        return from_rfc3339(known["lastTransitionTime"]) if known.get("status") == "False" else now
    except (KeyError, TypeError, ValueError):
        return now


def with_source_conditions(
    status: Object, present: Mapping[str, Any], federated: Mapping[str, Any], now: datetime
) -> Object:
    """Return the status with the conditions; they keep their times from the `present` status."""
    kept = [condition for condition in status.get("conditions") or () if condition.get("type") not in _OWNED]
    kept += keep_condition_times(present.get("conditions"), source_conditions(federated), now)
    return {**status, "conditions": kept} if kept else status


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}
