"""What the simulated kubelet reports for a pod, and what annotations say about its containers. Pure.

Annotations of a pod make its containers exit after a time, with an exit code, for a number of runs, or never be ready;
`api/names.py` defines them. All containers of a pod behave alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery.conditions import find
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object

JOB_RUN_S = 1.0
"""Seconds that a pod of a Job runs without an annotation."""
_RESTART_S, _RESTART_S_MAX = 10.0, 300.0
"""Pause before the first restart of a container; it doubles with each further one, as the kubelet's."""

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the containers of one pod behave."""

    run_s: float | None = None
    """Seconds from start to exit, None for containers that run until the pod is deleted."""
    exit_code: int = 0
    failures: int | None = None
    """Runs that fail before later ones succeed; None when the exit code is always the same."""
    becomes_ready: bool = True

    @classmethod
    def of(cls, pod: Pod) -> "Behaviour":
        """Return the behaviour that annotations and owner ask for; ConfigurationError for a malformed value."""
        notes = pod["metadata"].get("annotations") or {}
        is_of_job = any(each["kind"] == "Job" for each in pod["metadata"].get("ownerReferences") or ())
        run_s = JOB_RUN_S if is_of_job else None
        if text := notes.get(names.SIMULATOR_RUN_FOR):
            try:
                run_s = max(0.0, parse_duration(text))
            except ValueError as error:
                raise ConfigurationError(f"annotation {names.SIMULATOR_RUN_FOR}: {error}") from error
        failures = _number(notes, names.SIMULATOR_FAILURES)
        code = _number(notes, names.SIMULATOR_EXIT_CODE)
        if code is None:
            code = 0 if failures is None else 1
        return cls(run_s, code, failures, becomes_ready=notes.get(names.SIMULATOR_READY) != "false")

    def code_after(self, failed_runs: int) -> int:
        """Return the exit code of a run after that many failed ones."""
        return self.exit_code if self.failures is None or failed_runs < self.failures else 0


def _number(notes: Mapping[str, str], name: str) -> int | None:
    text = notes.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) > 255:
        raise ConfigurationError(f"annotation {name}: {text!r} is not a number from 0 to 255")
    return int(text)


def restarts_of(pod: Pod) -> int:
    """Return how often the containers were restarted."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return max((int(each["restartCount"]) for each in statuses), default=0)


def restart_pause_s(restarts: int) -> float:
    """Return the seconds before the restart with this number, from 1."""
    return min(_RESTART_S * 2.0 ** min(restarts - 1, 16), _RESTART_S_MAX)


def compute_running_status(pod: Pod, address: str, now: str, *, becomes_ready: bool = True) -> Object:
    """Return the status of a pod whose containers run."""
    status = pod.get("status") or {}
    return {
        "phase": "Running",
        "conditions": _conditions(pod, now, is_ready=becomes_ready),
        "hostIP": status.get("hostIP", "10.0.0.1"),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": status.get("startTime", now),
        "qosClass": status.get("qosClass", "BestEffort"),
        "containerStatuses": _containers(
            pod, {"running": {"startedAt": now}}, is_ready=becomes_ready, is_started=True, restarts=restarts_of(pod)
        ),
    }


def compute_ended_status(pod: Pod, code: int, now: str) -> Object:
    """Return the status of a pod whose containers have ended for good, with this exit code."""
    reason = "PodFailed" if code else "PodCompleted"
    state = {"terminated": _termination(pod, code, now)}
    return {
        "phase": "Failed" if code else "Succeeded",
        "conditions": _conditions(pod, now, is_ready=False, reason=reason),
        "containerStatuses": _containers(pod, state, is_ready=False, is_started=False, restarts=restarts_of(pod)),
    }


def compute_crash_status(pod: Pod, code: int, now: str) -> Object:
    """Return the status of a pod whose containers exited and wait for their restart."""
    restarts = restarts_of(pod) + 1
    pause_s = restart_pause_s(restarts)
    waiting = {"reason": "CrashLoopBackOff", "message": f"back-off {pause_s:g}s restarting failed container"}
    return {
        "conditions": _conditions(pod, now, is_ready=False, reason="ContainersNotReady"),
        "containerStatuses": _containers(
            pod,
            {"waiting": waiting},
            is_ready=False,
            is_started=False,
            restarts=restarts,
            last={"terminated": _termination(pod, code, now)},
        ),
    }


def compute_updating_status(pod: Pod, now: str) -> Object:
    """Return the status of a pod whose containers have ended because their images changed, and start again."""
    return {
        "conditions": _conditions(pod, now, is_ready=False, reason="ContainersNotReady"),
        "containerStatuses": _containers(
            pod,
            {"waiting": {"reason": "ContainerCreating"}},
            is_ready=False,
            is_started=False,
            restarts=restarts_of(pod) + 1,
            last={"terminated": _termination(pod, 0, now)},
        ),
    }


def compute_refused_status(pod: Pod, message: str, now: str) -> Object:
    """Return the status of a pod that cannot start because of its configuration."""
    state = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    return {
        "phase": "Pending",
        "conditions": _conditions(pod, now, is_ready=False, reason="ContainersNotReady"),
        "startTime": now,
        "containerStatuses": _containers(pod, state, is_ready=False, is_started=False, restarts=0),
    }


def _conditions(pod: Pod, now: str, *, is_ready: bool, reason: str = "") -> list[Object]:
    conditions: list[Object] = []
    for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        is_true = is_ready or type_ not in ("Ready", "ContainersReady")
        status = "True" if is_true else "False"
        old = find((pod.get("status") or {}).get("conditions"), type_)
        since = old["lastTransitionTime"] if old and old["status"] == status else now
        condition = {"type": type_, "status": status, "lastProbeTime": None, "lastTransitionTime": since}
        if not is_true:
            condition["reason"] = reason or "ContainersNotReady"
        conditions.append(condition)
    return conditions


def _containers(
    pod: Pod,
    state: Object,
    *,
    is_ready: bool,
    is_started: bool,
    restarts: int,
    last: Object | None = None,
) -> list[Object]:
    before = {each["name"]: each for each in (pod.get("status") or {}).get("containerStatuses") or ()}
    return [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "containerID": f"simulated://{pod['metadata']['uid']}/{container['name']}",
            "ready": is_ready,
            "started": is_started,
            "restartCount": restarts,
            "state": state,
            "lastState": last or before.get(container["name"], {}).get("lastState") or {},
        }
        for container in pod["spec"].get("containers", ())
    ]


def _termination(pod: Pod, code: int, now: str) -> Object:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    started = next((each["state"]["running"]["startedAt"] for each in statuses if "running" in each["state"]), now)
    return {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": started, "finishedAt": now}
