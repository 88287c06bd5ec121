"""The simulated ReplicaSet controller: creates and deletes pods until there are `spec.replicas`, and writes the status.

Terminating pods do not count. Surplus pods are deleted in this order: unassigned before assigned, not ready before
ready, younger before older. Read `podlifecycle.py` for the pods themselves.
"""

import asyncio
import random

from federation.apimachinery.clock import Clock
from federation.apimachinery.conditions import is_true
from federation.apimachinery.errors import NotFound
from federation.apimachinery.ownerreferences import controller_of, controller_reference, controller_uids
from federation.apimachinery.resources import PODS, REPLICA_SETS, Object
from federation.client.client import Client
from federation.runtime.controller import Controller, Key, Result
from federation.runtime.informer import Informer
from federation.simulator.deployments import NAME_ALPHABET

_DONE = Result()
_BURST_REPLICAS = 50
"""Pods to create or delete in one reconcile; the next one continues."""


def _is_ready(pod: Object) -> bool:
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")


def _is_active(pod: Object) -> bool:
    """Return True if the pod counts for its owner: neither finished nor terminating."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


class ReplicaSetController:
    """Reconciles the ReplicaSets of one member; `rng` gives the suffixes of pod names."""

    def __init__(
        self, client: Client, replica_sets: Informer, pods: Informer, clock: Clock, workers: int, rng: random.Random
    ) -> None:
        self._client = client
        self._replica_sets = replica_sets
        self._pods = pods
        self._rng = rng
        self.controller = Controller("sim-replicaset", self._reconcile, workers=workers, clock=clock)
        pods.add_index("owner", controller_uids)
        replica_sets.add_handler(self._replica_set_changed)
        pods.add_handler(self._pod_changed)

    def _replica_set_changed(self, old: Object | None, new: Object | None) -> None:
        meta = (new or old or {})["metadata"]
        if old and new and old["metadata"].get("generation") == meta.get("generation"):
            return
        self.controller.enqueue(Key(meta["namespace"], meta["name"]))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        if old and new and _is_active(old) == _is_active(new) and _is_ready(old) == _is_ready(new):
            return
        owner = controller_of(pod)
        if owner is not None and owner["kind"] == "ReplicaSet":
            self.controller.enqueue(Key(pod["metadata"]["namespace"], owner["name"]))

    async def _reconcile(self, key: Key) -> Result:
        replica_set = self._replica_sets.get(key.namespace, key.name)
        if replica_set is None or "deletionTimestamp" in replica_set["metadata"]:
            return _DONE
        uid = replica_set["metadata"]["uid"]
        active = [pod for pod in self._pods.by_index("owner", uid) if _is_active(pod)]
        missing = int(replica_set["spec"].get("replicas", 1)) - len(active)
        if missing > 0:
            await self._create_pods(replica_set, min(missing, _BURST_REPLICAS))
        elif missing < 0:
            await self._delete_pods(active, min(-missing, _BURST_REPLICAS))
        active = [pod for pod in self._pods.by_index("owner", uid) if _is_active(pod)]
        await self._write_status(replica_set, active)
        if abs(missing) > _BURST_REPLICAS:
            self.controller.enqueue(key)
        return _DONE

    async def _create_pods(self, replica_set: Object, count: int) -> None:
        template = replica_set["spec"]["template"]
        reference = controller_reference(replica_set, "apps/v1", "ReplicaSet")
        meta = replica_set["metadata"]
        created = await asyncio.gather(
            *(
                self._client.create(
                    PODS,
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "metadata": {
                            **template["metadata"],
                            "name": f"{meta['name']}-{self._suffix()}",
                            "namespace": meta["namespace"],
                            "ownerReferences": [reference],
                        },
                        "spec": template["spec"],
                    },
                )
                for _ in range(count)
            )
        )
        await self._pods.wait_for(max((p["metadata"]["resourceVersion"] for p in created), key=int))

    def _suffix(self) -> str:
        return "".join(self._rng.choices(NAME_ALPHABET, k=5))

    async def _delete_pods(self, active: list[Object], count: int) -> None:
        ranked = sorted(
            active,
            key=lambda pod: (
                bool(pod["spec"].get("nodeName")),
                _is_ready(pod),
                _youngest_first(pod),
                pod["metadata"]["name"],
            ),
        )
        for pod in ranked[:count]:
            meta = pod["metadata"]
            try:
                await self._client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"])
            except NotFound:
                continue

    async def _write_status(self, replica_set: Object, active: list[Object]) -> None:
        meta = replica_set["metadata"]
        ready = sum(1 for pod in active if _is_ready(pod))
        counts = {"fullyLabeledReplicas": len(active), "readyReplicas": ready, "availableReplicas": ready}
        status: Object = {"replicas": len(active), "observedGeneration": meta.get("generation", 1)}
        status.update({key: count for key, count in counts.items() if count})
        live = replica_set.get("status") or {}
        if status == live:
            return
        try:
            written = await self._client.patch(
                REPLICA_SETS,
                meta["name"],
                {"status": {**{k: None for k in live if k not in status}, **status}},
                namespace=meta["namespace"],
                subresource="status",
            )
        except NotFound:
            return
        await self._replica_sets.wait_for(written["metadata"]["resourceVersion"])


def _youngest_first(pod: Object) -> tuple[int, ...]:
    """Return a sort key that puts younger pods first: RFC 3339 texts sort by time, so negate each character."""
    return tuple(-ord(char) for char in pod["metadata"]["creationTimestamp"])
