"""Why the pods of a workload do not run in a cluster, from its own object and its pods there. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery import conditions

_UNNAMED = "its pods cannot be created"
_LENGTH_MAX = 300


def why_not_running(workload: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]]) -> str:
    """Return the first reason that Kubernetes gives, "" if it gives none: pods cannot be created, scheduled, started or
    made ready.
    """
    if workload is None:
        return "it is not there yet"
    stated = (workload.get("status") or {}).get("conditions")
    failure = conditions.find(stated, "ReplicaFailure") or {}
    if failure.get("status") == "True":
        return _shortened(str(failure.get("message") or failure.get("reason") or _UNNAMED))
    for pod in pods:
        if reason := _of_pod(pod):
            return _shortened(f"pod {pod['metadata']['name']}: {reason}")
    progressing = conditions.find(stated, "Progressing") or {}
    if progressing.get("status") == "False":
        return _shortened(str(progressing.get("message") or progressing.get("reason") or _UNNAMED))
    return ""


def _of_pod(pod: Mapping[str, Any]) -> str:
    """Return why a pod does not run or is not ready, "" if it is."""
    status = pod.get("status") or {}
    scheduled = conditions.find(status.get("conditions"), "PodScheduled") or {}
    if scheduled.get("status") == "False":
        return str(scheduled.get("message") or scheduled.get("reason") or "it is not scheduled")
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if reason := waiting.get("reason"):
            return ": ".join(filter(None, (f"container {container.get('name')}: {reason}", waiting.get("message"))))
    ready = conditions.find(status.get("conditions"), "Ready") or {}
    if ready.get("status") == "False":
        return str(ready.get("message") or ready.get("reason") or "it is not ready")
    return ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"
