"""Why the pods of a workload do not run in a cluster, from its own object and its pods there. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery import conditions
from federation.planning.status.podproblems import find_problem

_UNNAMED = "its pods cannot be created"
_LENGTH_MAX = 300


def why_not_running(workload: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]]) -> str:
    """Return the first reason that Kubernetes gives, "" if it gives none: pods cannot be created, do not run, or are
    late.
    """
    if workload is None:
        return "it is not there yet"
    stated = (workload.get("status") or {}).get("conditions")
    problem = find_problem(pods)
    text = (
        _message(stated, "ReplicaFailure", "True")
        or (problem.text if problem is not None else "")
        or _message(stated, "Progressing", "False")
    )
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}…"


def _message(stated: Any, type_: str, status: str) -> str:
    """Return what a condition says if it has this status, "" otherwise."""
    found = conditions.find(stated, type_) or {}
    return str(found.get("message") or found.get("reason") or _UNNAMED) if found.get("status") == status else ""
