"""Whether a workload in a member runs its present template with all replicas ready. Pure.

Member objects are not validated: counts that are missing, negative or of a wrong type are 0.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from federation.apimachinery import conditions

_FINAL = "ProgressDeadlineExceeded"


class Readiness(NamedTuple):
    """Why a workload is not ready, "" when it is; and whether its own controller has given up."""

    problem: str = ""
    has_failed: bool = False


class Counts(NamedTuple):
    """The pods of a workload: wanted ones, all present ones, those of the present template, and ready ones of it."""

    wanted: int
    present: int
    updated: int
    ready: int


def count_pods(obj: Mapping[str, Any], kind: str) -> Counts:
    """Return the pods of a Deployment, StatefulSet, DaemonSet or CloneSet as its status reports them.

    Items of lists have no kind of their own, so it is an argument.
    """
    spec, status = _mapping(obj, "spec"), _mapping(obj, "status")
    if kind == "DaemonSet":
        wanted = _number(status, "desiredNumberScheduled")
        present = _number(status, "currentNumberScheduled")
        return Counts(wanted, present, _number(status, "updatedNumberScheduled"), _number(status, "numberAvailable"))
    replicas = _number(spec, "replicas") if spec.get("replicas") is not None else 1
    ready = next(
        (field for field in ("updatedReadyReplicas", "availableReplicas") if status.get(field) is not None),
        "readyReplicas",
    )
    return Counts(
        replicas,
        _number(status, "replicas"),
        _number(status, "updatedReplicas"),
        _number(status, ready),
    )


def assess_readiness(obj: Mapping[str, Any], kind: str) -> Readiness:
    """Return whether the workload's status is about its present spec, and all its pods are updated and ready."""
    status = _mapping(obj, "status")
    if _number(status, "observedGeneration") < _number(_mapping(obj, "metadata"), "generation"):
        return Readiness("its controller has not observed the change yet")
    progressing = conditions.find(status.get("conditions"), "Progressing") or {}
    if progressing.get("reason") == _FINAL and progressing.get("status") == "False":
        return Readiness("its progress deadline is exceeded", has_failed=True)
    counts = count_pods(obj, kind)
    if counts.updated < counts.wanted:
        return Readiness(f"{counts.updated} of {counts.wanted} replicas are updated")
    if counts.present > counts.wanted:
        return Readiness(f"{counts.present - counts.wanted} old replicas are being removed")
    if counts.ready < counts.wanted:
        return Readiness(f"{counts.ready} of {counts.wanted} replicas are ready")
    return Readiness()


def _mapping(obj: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = obj.get(field)
    return value if isinstance(value, Mapping) else {}


def _number(fields: Mapping[str, Any], field: str) -> int:
    value = fields.get(field)
    return max(0, value) if type(value) is int else 0
