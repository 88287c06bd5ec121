"""The status that the simulated kubelet reports for a pod, and the annotations that steer its containers. Pure.

Annotations of a pod make its containers exit after a time, with an exit code, for a number of runs, or never be ready;
`names.py` defines them. All containers of a pod behave alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.conditions import find
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import Object
from federation.simulator.controllers import names

KILLED = 137
"""The exit code of containers that are killed."""
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
    ready_after_s: float = 0.0
    """Seconds from start until the probes of all containers can have succeeded."""
    evict_after_s: float | None = None
    init_code: int = 0
    """The exit code of init containers."""

    @classmethod
    def of(cls, pod: Pod) -> "Behaviour":
        """Return the behaviour that annotations and owner ask for; ConfigurationError for a malformed value."""
        notes = pod["metadata"].get("annotations") or {}
        is_of_job = any(each["kind"] == "Job" for each in pod["metadata"].get("ownerReferences") or ())
        run_s = _duration(notes, names.SIMULATOR_RUN_FOR)
        if run_s is None and is_of_job:
            run_s = JOB_RUN_S
        failures = _number(notes, names.SIMULATOR_FAILURES)
        code = _number(notes, names.SIMULATOR_EXIT_CODE)
        if code is None:
            code = 0 if failures is None else 1
        if notes.get(names.SIMULATOR_ALIVE) == "false" and (killed_s := _killed_after_s(pod["spec"])) is not None:
            run_s, code, failures = killed_s, KILLED, None
        return cls(
            run_s,
            code,
            failures,
            becomes_ready=notes.get(names.SIMULATOR_READY) != "false",
            ready_after_s=_ready_after_s(pod["spec"]),
            evict_after_s=_duration(notes, names.SIMULATOR_EVICT_AFTER),
            init_code=_number(notes, names.SIMULATOR_INIT_EXIT_CODE) or 0,
        )

    def code_after(self, failed_runs: int) -> int:
        """Return the exit code of a run after that many failed ones."""
        return self.exit_code if self.failures is None or failed_runs < self.failures else 0


def _ready_after_s(spec: Mapping[str, Any]) -> float:
    """Return the longest initial delays of a container's startup and readiness probes."""
    delays = (
        sum(
            int((each.get(probe) or {}).get("initialDelaySeconds") or 0) for probe in ("startupProbe", "readinessProbe")
        )
        for each in spec.get("containers") or ()
    )
    return float(max(delays, default=0))


def _killed_after_s(spec: Mapping[str, Any]) -> float | None:
    """Return when the first liveness probe has failed often enough, None without such a probe."""
    probes = [probe for each in spec.get("containers") or () if (probe := each.get("livenessProbe"))]
    times = (
        int(probe.get("initialDelaySeconds") or 0)
        + int(probe.get("periodSeconds") or 10) * int(probe.get("failureThreshold") or 3)
        for probe in probes
    )
    return min(map(float, times), default=None)


def _duration(notes: Mapping[str, str], name: str) -> float | None:
    text = notes.get(name)
    if not text:
        return None
    try:
        return max(0.0, parse_duration(text))
    except ValueError as error:
        raise ConfigurationError(f"annotation {name}: {error}") from error


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


def compute_running_status(
    pod: Pod, address: str, now: str, *, becomes_ready: bool = True, since: str | None = None
) -> Object:
    """Return the status of a pod whose containers run, `since` an earlier time or now."""
    status = pod.get("status") or {}
    return {
        "phase": "Running",
        "conditions": _conditions(pod, now, is_ready=becomes_ready),
        "hostIP": status.get("hostIP", "10.0.0.1"),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": status.get("startTime", now),
        "qosClass": status.get("qosClass", "BestEffort"),
        **_init_containers(pod, now),
        "containerStatuses": _containers(
            pod,
            {"running": {"startedAt": since or now}},
            is_ready=becomes_ready,
            is_started=True,
            restarts=restarts_of(pod),
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


def compute_init_crash_status(pod: Pod, code: int, now: str) -> Object:
    """Return the status of a pod whose first init container has failed and waits for its restart."""
    status = pod.get("status") or {}
    restarts = init_restarts_of(pod) + 1
    message = f"back-off {restart_pause_s(restarts):g}s restarting failed container"
    ended = {"exitCode": code, "reason": "Error", "startedAt": now, "finishedAt": now}
    crashed = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    waiting = {"waiting": {"reason": "PodInitializing"}}
    inits = [
        {
            **_container(pod, each, is_ready=False, is_started=False),
            "restartCount": 0 if number else restarts,
            "state": waiting if number else crashed,
            "lastState": {} if number else {"terminated": ended},
        }
        for number, each in enumerate(pod["spec"]["initContainers"])
    ]
    conditions = _conditions(pod, now, is_ready=False, reason="ContainersNotReady")
    for condition in conditions:
        if condition["type"] == "Initialized":
            condition.update(status="False", reason="ContainersNotInitialized")
    return {
        "phase": "Pending",
        "conditions": conditions,
        "startTime": status.get("startTime", now),
        "initContainerStatuses": inits,
        "containerStatuses": _containers(pod, waiting, is_ready=False, is_started=False, restarts=0),
    }


def has_init_containers(pod: Pod) -> bool:
    """Return whether containers have to end before the others start; sidecars do not."""
    return any(each.get("restartPolicy") != "Always" for each in pod["spec"].get("initContainers") or ())


def init_restarts_of(pod: Pod) -> int:
    """Return how often the first init container was restarted."""
    statuses = (pod.get("status") or {}).get("initContainerStatuses") or ()
    return int(statuses[0]["restartCount"]) if statuses else 0


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


def compute_waiting_status(pod: Pod, reason: str, message: str, now: str) -> Object:
    """Return the status of a pod whose containers cannot start, for the first time or again."""
    status = pod.get("status") or {}
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {
        "phase": status.get("phase") or "Pending",
        "conditions": _conditions(pod, now, is_ready=False, reason="ContainersNotReady"),
        "startTime": status.get("startTime", now),
        "containerStatuses": _containers(pod, state, is_ready=False, is_started=False, restarts=restarts_of(pod)),
    }


def compute_evicted_status(pod: Pod, now: str) -> Object:
    """Return the status of a pod that its kubelet has evicted."""
    ended = compute_ended_status(pod, KILLED, now)
    return {**ended, "reason": "Evicted", "message": "The node was low on resource: memory."}


def is_waiting_for(pod: Pod, reason: str, message: str) -> bool:
    """Return True if the status says already that all containers wait for this reason."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    waiting = [each["state"].get("waiting") or {} for each in statuses]
    return bool(waiting) and all((each.get("reason"), each.get("message", "")) == (reason, message) for each in waiting)


def started_at(pod: Pod) -> str | None:
    """Return when the containers started that run now, None if none does."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((each["state"]["running"]["startedAt"] for each in statuses if "running" in each["state"]), None)


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
            **_container(pod, container, is_ready=is_ready, is_started=is_started),
            "restartCount": restarts,
            "state": state,
            "lastState": last or before.get(container["name"], {}).get("lastState") or {},
        }
        for container in pod["spec"].get("containers", ())
    ]


def _init_containers(pod: Pod, now: str) -> Object:
    """Return the statuses of init containers beside running ones: they have ended, and sidecars run."""
    containers = pod["spec"].get("initContainers")
    if not containers:
        return {}
    before = {each["name"]: each for each in (pod.get("status") or {}).get("initContainerStatuses") or ()}
    found = []
    for each in containers:
        is_sidecar, old = each.get("restartPolicy") == "Always", before.get(each["name"], {})
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
        state = {"running": {"startedAt": now}} if is_sidecar else {"terminated": ended}
        is_same = old.get("state", {}).keys() == state.keys()
        found.append(
            {
                **_container(pod, each, is_ready=True, is_started=is_sidecar),
                "restartCount": old.get("restartCount", 0),
                "state": old["state"] if is_same else state,
                "lastState": old.get("lastState", {}),
            }
        )
    return {"initContainerStatuses": found}


def _container(pod: Pod, container: Mapping[str, Any], *, is_ready: bool, is_started: bool) -> Object:
    """Return the part of a container's status that does not depend on its state."""
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"simulated://{pod['metadata']['uid']}/{container['name']}",
        "ready": is_ready,
        "started": is_started,
    }


def _termination(pod: Pod, code: int, now: str) -> Object:
    started = started_at(pod) or now
    return {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": started, "finishedAt": now}
