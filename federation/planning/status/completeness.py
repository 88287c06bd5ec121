"""Whether a merged status is worth a write now, or a more complete one follows at once. Pure.

Each status that is not written saves the host a write: most rollouts then cost one.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.resources import Resource
from federation.planning.status.sourceconditions import is_undelivered


def has_first_status(federated: Mapping[str, Any], members: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if a member object has a status, or the object was not scheduled or not delivered.

    Zeros before that would be one host write more for every object.
    """
    return any(member.get("status") for member in members.values()) or is_undelivered(federated)


_REPLACING = frozenset(("CloneSet", "Deployment", "StatefulSet"))
_READY = ("readyReplicas", "availableReplicas", "numberReady", "numberAvailable", "ready")


def is_degraded(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if a workload's new status has fewer ready or available replicas than the old one."""
    return any(_count(new.get(field)) < _count(old[field]) for field in _READY if field in old)


def is_complete(workload: Mapping[str, Any]) -> bool:
    """Return True if a workload in a member has all replicas of its newest generation ready, and no others."""
    wanted, status = (workload.get("spec") or {}).get("replicas"), workload.get("status") or {}
    is_ready = isinstance(wanted, int) and _count(status.get("readyReplicas")) >= wanted
    return is_ready and not is_replacing_pods(workload)


def is_replacing_pods(workload: Mapping[str, Any]) -> bool:
    """Return True if a workload in a member has pods of an old revision, or may still get some replaced."""
    status = workload.get("status") or {}
    if status.get("observedGeneration") != (workload.get("metadata") or {}).get("generation"):
        return True
    return _count(status.get("updatedReplicas")) < _count(status.get("replicas"))


def may_run_earlier_pods(resource: Resource, workload: Mapping[str, Any]) -> bool:
    """Return True if a workload in a member that replaces its pods after a change may still have earlier ones.

    A new object has none.
    """
    is_new = (workload.get("metadata") or {}).get("generation") == 1
    return resource.kind in _REPLACING and not is_new and is_replacing_pods(workload)


def _count(value: Any) -> int:
    """Return a number of replicas; other kinds have booleans and texts in fields of these names."""
    return value if type(value) is int else 0


def is_worth_waiting(source: Mapping[str, Any], federated: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Return True if the status, about to be written, is the first one of a rollout that may end soon.

    A lost replica of a rollout is not held back.
    """
    present, generation = source.get("status") or {}, source["metadata"].get("generation")
    if present.get("observedGeneration") == generation or is_degraded(present, {**present, **status}):
        return False
    return is_in_progress(source, status, is_delivered=is_delivered(federated))


def is_delivered(federated: Mapping[str, Any]) -> bool:
    """Return True if sync has reported that every cluster has the object as it is now."""
    status = federated.get("status") or {}
    propagated = conditions.find(status.get("conditions"), names.PROPAGATED) or {}
    is_synced = status.get("syncedGeneration") == federated["metadata"].get("generation")
    return is_synced and propagated.get("status") == "True"


def is_dispatched(federated: Mapping[str, Any]) -> bool:
    """Return True if sync has reported that nothing is left to do: clusters have the object, or will not take it."""
    is_synced = (federated.get("status") or {}).get("syncedGeneration") == federated["metadata"].get("generation")
    return is_delivered(federated) or (is_synced and is_undelivered(federated))


def begins_rollout(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Return True if this change of a workload's federated object makes members start, stop or replace pods."""
    if type(((new["spec"].get("template") or {}).get("spec") or {}).get("replicas")) is not int:
        return False
    if old is None:
        return not is_delivered(new)
    return bool(old["metadata"].get("generation") != new["metadata"].get("generation"))


def is_rolling_out(source: Mapping[str, Any], federated: Mapping[str, Any], merged: Mapping[str, Any]) -> bool:
    """Return True if the merged status of a rollout that has begun lacks ready replicas, or the delivery."""
    status = {"readyReplicas": 0, **merged}
    return is_in_progress(source, status, is_delivered=is_dispatched(federated))


def replaces_pods_by_itself(source: Mapping[str, Any]) -> bool:
    """Return True for a Deployment that is not paused: its rollout ends only when its last old pod is gone.

    All of its replicas are ready meanwhile. Other workloads may keep old pods for as long as their users want.
    """
    spec = source.get("spec") or {}
    return "strategy" in spec and not spec.get("paused")  # only Deployments have this field


def is_in_progress(source: Mapping[str, Any], status: Mapping[str, Any], *, is_delivered: bool = True) -> bool:
    """Return True if the status, about to be written, lacks what may appear soon: ready replicas, or the delivery.

    An unscheduled object is not in progress: its status will not improve by itself.
    """
    scheduled = conditions.find(status.get("conditions"), names.SCHEDULED)
    if scheduled is not None and scheduled.get("status") != "True":
        return False
    wanted = (source.get("spec") or {}).get("replicas")
    ready = status.get("readyReplicas", (source.get("status") or {}).get("readyReplicas"))
    return isinstance(wanted, int) and (_count(ready) < wanted or not is_delivered)
