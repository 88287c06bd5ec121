"""Printers of Pods and Nodes."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.printers.table import NONE, UNKNOWN, Printer, age, columns, name_of, part, since

_ROLE_LABEL = "node-role.kubernetes.io/"


@dataclass(slots=True)
class _PodState:
    """The values of the READY, STATUS and RESTARTS cells."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def add_restarts(self, container: Any) -> None:
        """Count the restarts of a container."""
        self.restarts += container.get("restartCount") or 0
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last_restart = max(self.last_restart, ended)


def _pod(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    state = _state_of(obj)
    restarts = str(state.restarts)
    if state.restarts and state.last_restart:
        restarts += f" ({since(state.last_restart, now)} ago)"
    addresses = status.get("podIPs") or []
    address = addresses[0].get("ip") if addresses else status.get("podIP")
    return [
        name_of(obj),
        f"{state.ready}/{len(spec.get('containers') or ()) + len(_sidecars(spec))}",
        _with_deletion(obj, state.reason),
        restarts,
        age(obj, now),
        address or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _state_of(pod: Object) -> _PodState:
    """Return the state that init containers and containers add up to, without regard to a deletion."""
    spec, status = part(pod, "spec"), part(pod, "status")
    state = _PodState(status.get("reason") or status.get("phase") or "")
    if spec.get("schedulingGates") and not spec.get("nodeName"):
        state.reason = "SchedulingGated"
    is_initializing = _add_init_containers(state, spec, status)
    if is_initializing and not conditions.is_true(status.get("conditions"), "Initialized"):
        return state
    found = _PodState(state.reason, state.ready)
    sidecars = _sidecars(spec)
    for container in status.get("initContainerStatuses") or ():
        if container.get("name") in sidecars:
            found.add_restarts(container)
    _add_containers(found, status)
    return found


def _with_deletion(pod: Object, reason: str) -> str:
    status = part(pod, "status")
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in {"Failed", "Succeeded"}:
            return "Terminating"
    return reason


def _sidecars(spec: Any) -> set[Any]:
    """Return the names of the init containers that keep running."""
    return {
        container.get("name")
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }


def _add_init_containers(state: _PodState, spec: Any, status: Any) -> bool:
    """Add the init containers up to the first that has not finished; return whether there is such a one."""
    wanted, sidecars = len(spec.get("initContainers") or ()), _sidecars(spec)
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        state.add_restarts(container)
        found = container.get("state") or {}
        terminated, waiting = found.get("terminated"), found.get("waiting")
        if terminated and terminated.get("exitCode", 0) == 0:
            continue
        if container.get("name") in sidecars and container.get("started"):
            state.ready += bool(container.get("ready"))
            continue
        if terminated:
            state.reason = f"Init:{_termination_reason(terminated)}"
        elif waiting and waiting.get("reason") not in {None, "", "PodInitializing"}:
            state.reason = f"Init:{waiting['reason']}"
        else:
            state.reason = f"Init:{index}/{wanted}"
        return True
    return False


def _add_containers(state: _PodState, status: Any) -> None:
    is_running, failure = False, ""
    for container in reversed(status.get("containerStatuses") or []):
        state.add_restarts(container)
        found = container.get("state") or {}
        waiting, terminated = found.get("waiting"), found.get("terminated")
        if waiting and waiting.get("reason"):
            state.reason = waiting["reason"]
        elif terminated is not None:
            state.reason = _termination_reason(terminated)
            failure = state.reason if terminated.get("exitCode") else failure
        elif container.get("ready") and found.get("running") is not None:
            is_running = True
            state.ready += 1
    if state.reason != "Completed":
        return
    # A container that has completed does not hide one that is still running or has failed.
    if is_running and conditions.is_true(status.get("conditions"), "Ready"):
        state.reason = "Running"
    elif failure or is_running:
        state.reason = failure or "NotReady"


def _termination_reason(terminated: Any) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _gates(spec: Any, status: Any) -> str:
    gates = spec.get("readinessGates") or []
    if not gates:
        return NONE
    found = status.get("conditions") or ()
    met = {condition.get("type") for condition in found if condition.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in met for gate in gates)}/{len(gates)}"


def _node(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    info = status.get("nodeInfo") or {}
    ready = conditions.find(status.get("conditions"), "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    addresses = {found.get("type"): found.get("address") or NONE for found in reversed(status.get("addresses") or [])}
    return [
        name_of(obj),
        ",".join(words),
        _roles(obj["metadata"].get("labels") or {}),
        age(obj, now),
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", NONE),
        addresses.get("ExternalIP", NONE),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(labels: dict[str, str]) -> str:
    roles = {label.removeprefix(_ROLE_LABEL) for label in labels if label.startswith(_ROLE_LABEL)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return ",".join(sorted(role for role in roles if role)) or NONE


PRINTERS = {
    ("", "pods"): Printer(columns("Name|Ready|Status|Restarts|Age", "IP|Node|Nominated Node|Readiness Gates"), _pod),
    ("", "nodes"): Printer(
        columns(
            "Name|Status|Roles|Age|Version",
            "Internal-IP|External-IP|OS-Image|Kernel-Version|Container-Runtime",
        ),
        _node,
    ),
}
