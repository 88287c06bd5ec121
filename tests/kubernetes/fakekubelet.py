"""A kubelet without containers: nodes that are Ready, and bound pods that run, complete and go.

A pod runs as soon as it is bound. A container with the argument `exit=N` ends with that exit code; a pod of a Job, which
restarts nothing, completes at once. A deleted pod goes after the `preStop` sleep of its containers. The work is done in a thread until the block ends.
"""

import contextlib
import json
import threading
from datetime import UTC, datetime
from typing import Any, Self

import httpx
from tests.support.rest import MERGE, Api, Object, Refused

from federation.apimachinery.connection import Connection

_RESOURCES = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "100Gi"}


class FakeKubelet:
    """All nodes of one cluster. They name `port` as that of the kubelet's server, unless it is 0."""

    def __init__(self, connection: Connection, nodes: int, port: int = 0) -> None:
        self._connection = connection
        self._port = port
        self._nodes = [f"node-{number}" for number in range(1, nodes + 1)]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-kubelet", daemon=True)
        self._addresses = 0
        self._stopping: set[str] = set()
        self._stopped_pods: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(30)

    def _run(self) -> None:
        api = Api(self._connection)
        api.http.timeout = httpx.Timeout(10, read=1)
        while not self._stopped.is_set():
            try:
                for name in self._nodes:
                    self._ensure_node(api, name)
                self._serve_pods(api)
            except (httpx.HTTPError, Refused, ValueError):
                self._stopped.wait(0.2)  # the server restarts, or is not ready yet
        api.close()

    def _serve_pods(self, api: Api) -> None:
        """List all pods, then watch them; returns when the watch ends."""
        page = api.send("GET", "/api/v1/pods").json()
        for pod in page["items"]:
            self._sync(api, pod)
        query = {"watch": "true", "resourceVersion": page["metadata"]["resourceVersion"], "timeoutSeconds": "300"}
        with api.http.stream("GET", "/api/v1/pods", params=query, timeout=httpx.Timeout(10, read=1)) as answer:
            lines = answer.iter_lines()
            while not self._stopped.is_set():
                try:
                    event = json.loads(next(lines))
                except (StopIteration, httpx.ReadTimeout):
                    return
                if event["type"] == "ERROR":
                    return
                if event["type"] != "DELETED":
                    self._sync(api, event["object"])

    def _sync(self, api: Api, pod: Object) -> None:
        """Bring one pod a step further."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        if pod["spec"].get("nodeName") not in self._nodes:
            return
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        try:
            if metadata.get("deletionTimestamp"):
                if self._is_stopping(pod):
                    return
                uid = {"preconditions": {"uid": metadata["uid"]}, "gracePeriodSeconds": 0}
                api.send("DELETE", path, uid)
            elif status.get("phase") in {None, "Pending"}:
                api.send("PATCH", f"{path}/status", {"status": self._status(pod)}, type_=MERGE)
        except Refused as error:
            if error.code not in {404, 409}:
                raise

    def _is_stopping(self, pod: Object) -> bool:
        """Return whether the `preStop` sleep of the pod has not ended; then its end deletes the pod."""
        hooks = ((each.get("lifecycle") or {}).get("preStop") or {} for each in pod["spec"]["containers"])
        seconds = max(((hook.get("sleep") or {}).get("seconds") or 0 for hook in hooks), default=0)
        uid = pod["metadata"]["uid"]
        if not seconds or uid in self._stopped_pods:
            return False
        if uid not in self._stopping:
            self._stopping.add(uid)
            timer = threading.Timer(seconds, self._stop, (pod,))
            timer.daemon = True
            timer.start()
        return True

    def _stop(self, pod: Object) -> None:
        self._stopped_pods.add(pod["metadata"]["uid"])
        api = Api(self._connection)
        with contextlib.suppress(httpx.HTTPError, Refused):
            self._sync(api, pod)
        api.close()

    def _status(self, pod: Object) -> Object:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._addresses += 1
        address = f"10.64.{self._addresses >> 8 & 255}.{self._addresses & 255}"
        code = _exit_code(pod)
        is_over = code is not None
        state: dict[str, Any] = {"running": {"startedAt": now}}
        if is_over:
            reason = "Error" if code else "Completed"
            state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
        ready = "False" if is_over else "True"
        kinds = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": ready, "Ready": ready}
        return {
            "phase": ("Failed" if code else "Succeeded") if is_over else "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "127.0.0.1",
            "conditions": [
                {"type": kind, "status": value, "lastTransitionTime": now, "lastProbeTime": None}
                for kind, value in kinds.items()
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": container["image"],
                    "containerID": f"fake://{container['name']}",
                    "ready": not is_over,
                    "started": not is_over,
                    "restartCount": 0,
                    "state": state,
                }
                for container in pod["spec"]["containers"]
            ],
        }

    def _ensure_node(self, api: Api, name: str) -> None:
        try:
            node = api.send("GET", f"/api/v1/nodes/{name}").json()
        except Refused as error:
            if error.code != 404:
                raise
            labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
            labels["topology.kubernetes.io/zone"] = f"zone-{name[-1]}"
            node = api.create("nodes", {"metadata": {"name": name, "labels": labels}})
        if (node.get("spec") or {}).get("taints"):
            api.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, type_=MERGE)
        if (node.get("status") or {}).get("conditions"):
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", **times}
        status: Object = {"conditions": [ready], "capacity": _RESOURCES, "allocatable": _RESOURCES}
        if self._port:
            status["addresses"] = [{"type": "InternalIP", "address": "127.0.0.1"}]
            status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": self._port}}
        api.send("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, type_=MERGE)


def _exit_code(pod: Object) -> int | None:
    """Return the exit code of a pod that ends, None for one that keeps running."""
    for container in pod["spec"]["containers"]:
        for argument in container.get("args") or ():
            if argument.startswith("exit="):
                return int(argument.removeprefix("exit="))
    owners = pod["metadata"].get("ownerReferences") or ()
    return 0 if any(owner["kind"] == "Job" for owner in owners) else None
