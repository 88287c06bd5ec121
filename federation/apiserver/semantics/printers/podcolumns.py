"""Printers of Pods and Nodes."""

from datetime import datetime
from typing import Any

from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.printers.table import NONE, UNKNOWN, Printer, age, columns, name_of, part, since

_ROLE_LABEL = "node-role.kubernetes.io/"


def _pod(obj: Object, now: datetime) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    statuses = status.get("containerStatuses") or []
    ready = sum(bool(found.get("ready")) for found in statuses)
    addresses = status.get("podIPs") or []
    address = addresses[0].get("ip") if addresses else status.get("podIP")
    return [
        name_of(obj),
        f"{ready}/{len(spec.get('containers') or ())}",
        pod_state(obj),
        _restarts([*(status.get("initContainerStatuses") or ()), *statuses], now),
        age(obj, now),
        address or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def pod_state(pod: Object) -> str:
    """Return the STATUS cell of a pod: its phase or the reason of a pod or container state."""
    status = part(pod, "status")
    state = status.get("reason") or status.get("phase") or ""
    gates = part(pod, "spec").get("schedulingGates")
    if gates and not part(pod, "spec").get("nodeName"):
        state = "SchedulingGated"
    state = _init_state(pod) or _container_state(status, state)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in {"Failed", "Succeeded"}:
            return "Terminating"
    return state


def _init_state(pod: Object) -> str:
    found = part(pod, "status").get("initContainerStatuses") or []
    wanted = len(part(pod, "spec").get("initContainers") or ())
    for index, container in enumerate(found):
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting")
        if terminated and terminated.get("exitCode", 0) == 0:
            continue
        if container.get("started") and container.get("ready"):
            continue
        if terminated:
            return f"Init:{_termination_reason(terminated)}"
        if waiting and waiting.get("reason") not in {None, "", "PodInitializing"}:
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{wanted}"
    return ""


def _container_state(status: Any, state: str) -> str:
    is_running = False
    for container in reversed(status.get("containerStatuses") or []):
        found = container.get("state") or {}
        waiting, terminated = found.get("waiting"), found.get("terminated")
        if waiting and waiting.get("reason"):
            state = waiting["reason"]
        elif terminated:
            state = _termination_reason(terminated)
        elif container.get("ready") and found.get("running"):
            is_running = True
    if state == "Completed" and is_running:
        return "Running" if conditions.is_true(status.get("conditions"), "Ready") else "NotReady"
    return state


def _termination_reason(terminated: Any) -> str:
    if reason := terminated.get("reason"):
        return str(reason)
    if signal := terminated.get("signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(statuses: list[Any], now: datetime) -> str:
    count = sum(found.get("restartCount") or 0 for found in statuses)
    ends = [
        (found.get("lastState") or {}).get("terminated", {}).get("finishedAt")
        for found in statuses
        if (found.get("lastState") or {}).get("terminated")
    ]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({since(last, now)} ago)" if count and last else str(count)


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
