"""The simulated kube-scheduler: binds the pods of one member that have no node.

It selects a node with `podplacement` and writes the binding, or the condition `PodScheduled=False` with reason
Unschedulable; it retries unschedulable pods when a pod ends or a node changes, and those that wait for claims when one
of these changes. Pods with scheduling gates wait for their removal. Read `kubelet.py` for bound pods.
"""

from collections.abc import Awaitable, Callable

from federation.apimachinery.clock import Clock, to_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.errors import ApiError, Conflict, NotFound
from federation.apimachinery.resources import PODS, Object
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, Result, key_of
from federation.runtime.informer import Informer
from federation.simulator.controllers.deviceallocator import DeviceAllocator
from federation.simulator.controllers.podneeds import claim_problem, claims_of
from federation.simulator.controllers.podplacement import SchedulerCache, compute_pod_request
from federation.simulator.controllers.pods import is_finished
from federation.simulator.controllers.podspread import spreading_owner

_DONE = Result()
_CLAIM_WAIT_S = 1.0
"""After this time a pod that waits for a claim says so."""
Bind = Callable[[str, str, str], Awaitable[None]]
"""Writes the binding of (namespace, pod, node)."""


class PodScheduler:
    """Binds the pods of one member that have no node."""

    def __init__(
        self,
        client: Client,
        pods: Informer,
        nodes: Informer,
        claims: Informer,
        classes: Informer,
        clock: Clock,
        bind: Bind,
        devices: DeviceAllocator,
    ) -> None:
        self._client = client
        self._pods = pods
        self._claims = claims
        self._classes = classes
        self._clock = clock
        self._bind = bind
        self._devices = devices
        self._cache = SchedulerCache()
        self._unschedulable: set[Key] = set()
        self._waiting: dict[Key, set[Key]] = {}
        """The pods that wait for each claim."""
        # One worker: each scheduling cycle must see the pods assumed by all earlier ones.
        self.controller = Controller("sim-scheduler", self._reconcile, workers=1, clock=clock)
        nodes.add_handler(self._node_changed)
        pods.add_handler(self._pod_changed)
        claims.add_handler(self._claim_changed)
        for informer in (devices.slices, devices.claims, devices.templates):
            informer.add_handler(self._devices_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._cache.set_node(new)
        elif old is not None:
            self._cache.remove_node(old["metadata"]["name"])
        self._retry_unschedulable()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        meta = pod["metadata"]
        if new is None or is_finished(new):
            self._unschedulable.discard(Key(meta["namespace"], meta["name"]))
            if new is not None and new["spec"].get("resourceClaims"):
                self.controller.enqueue(Key(meta["namespace"], meta["name"]))
            for name in claims_of(pod):
                self._stop_waiting(Key(meta["namespace"], meta["name"]), Key(meta["namespace"], name))
            if self._cache.remove_pod(meta["uid"]):
                self._retry_unschedulable()
        elif node := new["spec"].get("nodeName"):
            self._cache.add_pod(meta["uid"], node, compute_pod_request(new["spec"]), meta, new["spec"])
        elif old is None or (old["spec"].get("schedulingGates") and not new["spec"].get("schedulingGates")):
            self.controller.enqueue(Key(meta["namespace"], meta["name"]))

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        for key in tuple(self._waiting.get(key_of(new or old or {}), ())):
            self.controller.enqueue(key)

    def _devices_changed(self, old: Object | None, new: Object | None) -> None:
        del old, new
        self._retry_unschedulable()

    def _retry_unschedulable(self) -> None:
        for key in self._unschedulable:
            self.controller.enqueue(key)

    async def _reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            self._unschedulable.discard(key)
            if pod is not None and is_finished(pod):
                await self._devices.release(pod)
            return _DONE
        if pod["spec"].get("schedulingGates"):
            return _DONE
        if (result := await self._wait_for_claims(key, pod)) is not None:
            return result
        has_claims = bool(pod["spec"].get("resourceClaims"))
        if has_claims and (problem := await self._devices.prepare(pod)):
            self._unschedulable.add(key)
            await self._report_unschedulable(pod, f"0/{self._cache.size} nodes are available: {problem}.")
            return _DONE
        request = compute_pod_request(pod["spec"])
        lacking = {name for name in self._cache.names if self._devices.plan(pod, name) is None} if has_claims else ()
        labels = pod["metadata"].get("labels") or {}
        owner = spreading_owner(pod["metadata"])
        node, reason = self._cache.select_node(pod["spec"], request, key.namespace, labels, lacking, owner)
        if not node:
            self._unschedulable.add(key)
            await self._report_unschedulable(pod, reason)
            return _DONE
        if has_claims:
            await self._devices.allocate(pod, self._devices.plan(pod, node) or [])
        uid = pod["metadata"]["uid"]
        # Assume the pod before the binding is in the informer.
        self._cache.add_pod(uid, node, request, pod["metadata"], pod["spec"])
        try:
            await self._bind(key.namespace, key.name, node)
        except ApiError as error:
            self._cache.remove_pod(uid)
            if isinstance(error, NotFound | Conflict):
                return _DONE
            raise
        self._unschedulable.discard(key)
        return _DONE

    async def _wait_for_claims(self, key: Key, pod: Object) -> Result | None:
        """Return None if all claims of the pod are there; a pod that waits for a moment only is not reported."""
        for name in claims_of(pod):
            claim_key = Key(key.namespace, name)
            claim = self._claims.get(*claim_key)
            storage_class = self._classes.get("", (claim or {"spec": {}})["spec"].get("storageClassName") or "")
            if text := claim_problem(name, claim, storage_class):
                waiting = self._waiting.setdefault(claim_key, set())
                if key not in waiting:
                    waiting.add(key)
                    return Result(requeue_after_s=_CLAIM_WAIT_S)
                await self._report_unschedulable(pod, f"0/{self._cache.size} nodes are available: {text}.")
                return _DONE
            self._stop_waiting(key, claim_key)
        return None

    def _stop_waiting(self, key: Key, claim: Key) -> None:
        waiting = self._waiting.get(claim)
        if waiting is not None:
            waiting.discard(key)
            if not waiting:
                del self._waiting[claim]

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
