"""The pod lifecycle in a simulated member: the pod scheduler binds pods, the kubelet starts and stops them.

The scheduler selects a node with `podplacement` and writes the binding, or the condition `PodScheduled=False` with
reason Unschedulable; it retries unschedulable pods when a pod ends or a node changes. The kubelet makes bound pods
Running and Ready after `pod_start_s` and deletes terminating ones after `pod_stop_s`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.errors import ApiError, Conflict, NotFound
from federation.apimachinery.resources import PODS, Object
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, Result
from federation.runtime.informer import Informer
from federation.simulator.podplacement import SchedulerCache, compute_pod_request

_DONE = Result()
Bind = Callable[[str, str, str], Awaitable[None]]
"""Writes the binding of (namespace, pod, node)."""


def _is_finished(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


class PodScheduler:
    """Binds the pods of one member that have no node."""

    def __init__(self, client: Client, pods: Informer, nodes: Informer, clock: Clock, bind: Bind) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._bind = bind
        self._cache = SchedulerCache()
        self._unschedulable: set[Key] = set()
        # One worker: each scheduling cycle must see the pods assumed by all earlier ones.
        self.controller = Controller("sim-scheduler", self._reconcile, workers=1, clock=clock)
        nodes.add_handler(self._node_changed)
        pods.add_handler(self._pod_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._cache.set_node(new)
        elif old is not None:
            self._cache.remove_node(old["metadata"]["name"])
        self._retry_unschedulable()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        meta = pod["metadata"]
        if new is None or _is_finished(new):
            self._unschedulable.discard(Key(meta["namespace"], meta["name"]))
            if self._cache.remove_pod(meta["uid"]):
                self._retry_unschedulable()
        elif node := new["spec"].get("nodeName"):
            self._cache.add_pod(meta["uid"], node, compute_pod_request(new["spec"]))
        elif old is None:
            self.controller.enqueue(Key(meta["namespace"], meta["name"]))

    def _retry_unschedulable(self) -> None:
        for key in self._unschedulable:
            self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            self._unschedulable.discard(key)
            return _DONE
        request = compute_pod_request(pod["spec"])
        node, reason = self._cache.select_node(pod["spec"], request)
        if not node:
            self._unschedulable.add(key)
            await self._report_unschedulable(pod, reason)
            return _DONE
        uid = pod["metadata"]["uid"]
        self._cache.add_pod(uid, node, request)  # assume the pod before the binding is in the informer
        try:
            await self._bind(key.namespace, key.name, node)
        except ApiError as error:
            self._cache.remove_pod(uid)
            if isinstance(error, NotFound | Conflict):
                return _DONE
            raise
        self._unschedulable.discard(key)
        return _DONE

    async def _report_unschedulable(self, pod: Object, reason: str) -> None:
        meta = pod["metadata"]
        conditions = (pod.get("status") or {}).get("conditions", ())
        now = to_rfc3339(self._clock.now())
        old = find(conditions, "PodScheduled")
        if old and old.get("message") == reason:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": reason,
            "lastProbeTime": None,
            "lastTransitionTime": old["lastTransitionTime"] if old and old["status"] == "False" else now,
        }
        try:
            await self._client.patch(
                PODS,
                meta["name"],
                {"status": {"phase": "Pending", "conditions": [condition]}},
                namespace=meta["namespace"],
                subresource="status",
            )
        except NotFound:
            return


class Kubelet:
    """Starts and stops the pods of every node of one member."""

    def __init__(
        self, client: Client, pods: Informer, clock: Clock, *, start_s: float, stop_s: float, workers: int
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._start_s = start_s
        self._stop_s = stop_s
        self._addresses = 0
        self.controller = Controller("sim-kubelet", self._reconcile, workers=workers, clock=clock)
        pods.add_handler(self._pod_changed)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None or not new["spec"].get("nodeName"):
            return
        key = Key(new["metadata"]["namespace"], new["metadata"]["name"])
        if "deletionTimestamp" in new["metadata"]:
            if old is None or "deletionTimestamp" not in old["metadata"]:
                self.controller.queue.add_after(key, self._stop_s)
        elif old is None or not old["spec"].get("nodeName"):
            self.controller.queue.add_after(key, self._start_s)

    async def _reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or not pod["spec"].get("nodeName"):
            return _DONE
        try:
            if "deletionTimestamp" in pod["metadata"]:
                await self._client.delete(PODS, key.name, key.namespace, grace_period_s=0, uid=pod["metadata"]["uid"])
            elif (pod.get("status") or {}).get("phase") in (None, "Pending"):
                await self._start(pod)
        except NotFound:
            return _DONE
        return _DONE

    async def _start(self, pod: Object) -> None:
        meta = pod["metadata"]
        self._addresses += 1
        address = f"10.{self._addresses >> 16 & 255}.{self._addresses >> 8 & 255}.{self._addresses & 255}"
        status = compute_running_status(pod, address, to_rfc3339(self._clock.now()))
        await self._client.patch(
            PODS, meta["name"], {"status": status}, namespace=meta["namespace"], subresource="status"
        )


def compute_running_status(pod: Mapping[str, Any], address: str, now: str) -> Object:
    """Return the status that the kubelet reports when all containers run and are ready."""
    conditions = []
    for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        old = find((pod.get("status") or {}).get("conditions"), type_)
        since = old["lastTransitionTime"] if old and old["status"] == "True" else now
        conditions.append({"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": since})
    return {
        "phase": "Running",
        "conditions": conditions,
        "hostIP": "10.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "qosClass": (pod.get("status") or {}).get("qosClass", "BestEffort"),
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": "",
                "containerID": f"simulated://{pod['metadata']['uid']}/{container['name']}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
                "lastState": {},
            }
            for container in pod["spec"].get("containers", ())
        ],
    }
