"""Say what is wrong with the pods of a workload that do not become ready. Pure.

Pods are read as a member's API server returns them, and nothing in them is trusted: fields that are missing or of a
wrong type are skipped, and messages are cut.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_STARTING = frozenset(("", "ContainerCreating", "PodInitializing"))
_MESSAGE_LENGTH_MAX = 256


class PodProblem(NamedTuple):
    """The problem of a pod; `is_broken`: its containers crash, or cannot start."""

    text: str
    is_broken: bool = False


def find_problem(pods: Iterable[Mapping[str, Any]]) -> PodProblem | None:
    """Return the problem of the newest pod that is broken, else of the newest that is not ready; None without any."""
    found = None
    for pod in sorted(pods, key=_age, reverse=True):
        problem = problem_of(pod)
        if problem is not None and problem.is_broken:
            return problem
        found = found or problem
    return found


def problem_of(pod: Mapping[str, Any]) -> PodProblem | None:
    """Return why a pod is not ready, None if it is, has ended, or is being deleted."""
    metadata, status = _mapping(pod, "metadata"), _mapping(pod, "status")
    if metadata.get("deletionTimestamp") or status.get("phase") in ("Succeeded", "Failed"):
        return None
    held = {str(each.get("type")): each for each in _items(status, "conditions")}
    if held.get("Ready", {}).get("status") == "True":
        return None
    name = f"pod {_text(metadata.get('name'))}"
    for container in (*_items(status, "initContainerStatuses"), *_items(status, "containerStatuses")):
        text = _describe_broken(container)
        if text:
            return PodProblem(f"{name}: container {_text(container.get('name'))} {text}", is_broken=True)
    scheduled = held.get("PodScheduled", {})
    if scheduled.get("status") == "False":
        why = _text(scheduled.get("message") or scheduled.get("reason"))
        return PodProblem(f"{name} is not scheduled: {why}" if why else f"{name} is not scheduled")
    return PodProblem(f"{name} runs and is not ready" if status.get("phase") == "Running" else f"{name} is starting")


def _describe_broken(container: Mapping[str, Any]) -> str:
    """Return the reason, exit code and message of a container that crashes or cannot start, "" for others."""
    state, last = _mapping(container, "state"), _mapping(_mapping(container, "lastState"), "terminated")
    waiting, ended = _mapping(state, "waiting"), _mapping(state, "terminated")
    if ended and ended.get("exitCode") != 0:
        return _describe_end("has ended", ended)
    reason = str(waiting.get("reason") or "")
    if reason in _STARTING:
        return ""
    told = ": ".join(filter(None, (f"is in {_text(reason)}", _text(waiting.get("message")))))
    return _describe_end(f"{told}; it ended", last) if last else told


def _describe_end(told: str, ended: Mapping[str, Any]) -> str:
    text = f"{told} with exit code {_text(ended.get('exitCode'))} ({_text(ended.get('reason')) or 'no reason'})"
    message = _text(ended.get("message"))
    return f"{text}: {message}" if message else text


def _age(pod: Mapping[str, Any]) -> tuple[str, str]:
    metadata = _mapping(pod, "metadata")
    return str(metadata.get("creationTimestamp") or ""), str(metadata.get("name") or "")


def _mapping(obj: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = obj.get(field)
    return value if isinstance(value, Mapping) else {}


def _items(obj: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    value = obj.get(field)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a value on one line, cut to a length for messages."""
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= _MESSAGE_LENGTH_MAX else f"{text[: _MESSAGE_LENGTH_MAX - 1]}…"
