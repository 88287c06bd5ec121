"""The health that Argo CD shows for an object: its rules for built-in kinds, and for conditions, in our own words."""

from typing import Any

from federation.apimachinery import conditions

HEALTHY, PROGRESSING, DEGRADED, SUSPENDED = "Healthy", "Progressing", "Degraded", "Suspended"


def health_of(obj: dict[str, Any]) -> str:
    """Return the health of an object; kinds without a rule are healthy."""
    rule = _RULES.get(obj["kind"], _by_condition)
    return rule(obj, obj.get("spec") or {}, obj.get("status") or {})


def _is_unobserved(obj: dict[str, Any], status: dict[str, Any]) -> bool:
    return obj["metadata"].get("generation", 0) > status.get("observedGeneration", 0)


def _deployment(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    if spec.get("paused"):
        return SUSPENDED
    progressing = conditions.find(status.get("conditions"), "Progressing") or {}
    if not _is_unobserved(obj, status) and progressing.get("reason") == "ProgressDeadlineExceeded":
        return DEGRADED
    updated = status.get("updatedReplicas", 0)
    is_waiting = (
        _is_unobserved(obj, status)
        or updated < spec.get("replicas", 1)
        or status.get("replicas", 0) > updated
        or status.get("availableReplicas", 0) < updated
    )
    return PROGRESSING if is_waiting else HEALTHY


def _stateful_set(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    is_waiting = (
        not status.get("observedGeneration")
        or _is_unobserved(obj, status)
        or status.get("readyReplicas", 0) < spec.get("replicas", 1)
        or status.get("updateRevision") != status.get("currentRevision")
    )
    return PROGRESSING if is_waiting else HEALTHY


def _daemon_set(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    wanted = status.get("desiredNumberScheduled", 0)
    is_waiting = (
        _is_unobserved(obj, status)
        or status.get("updatedNumberScheduled", 0) < wanted
        or status.get("numberAvailable", 0) < wanted
    )
    return PROGRESSING if is_waiting else HEALTHY


def _job(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    held = status.get("conditions")
    if conditions.is_true(held, "Failed"):
        return DEGRADED
    return HEALTHY if conditions.is_true(held, "Complete") else PROGRESSING


def _claim(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    return {"Bound": HEALTHY, "Lost": DEGRADED}.get(status.get("phase", ""), PROGRESSING)


def _balanced(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    if obj["kind"] == "Service" and spec.get("type") != "LoadBalancer":
        return HEALTHY
    return HEALTHY if (status.get("loadBalancer") or {}).get("ingress") else PROGRESSING


def _by_condition(obj: dict[str, Any], spec: dict[str, Any], status: dict[str, Any]) -> str:
    ready = conditions.find(status.get("conditions"), "Ready")
    return HEALTHY if ready is None or ready.get("status") == "True" else PROGRESSING


_RULES = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "PersistentVolumeClaim": _claim,
    "Service": _balanced,
    "Ingress": _balanced,
}
