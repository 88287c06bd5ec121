"""ReplicaSet → Pod: keeps as many pods as the ReplicaSet wants and writes its status.

Pods that exist but are on their way out do not count. When there are too many, those that matter least go first:
unassigned before assigned, not ready before ready, younger before older. Read `pods.py` for what happens to a pod.
"""

import asyncio
import random

from federation.api.resources import PODS, REPLICA_SETS, Object
from federation.base.clock import Clock
from federation.base.errors import NotFound
from federation.client.protocol import Client, PatchType
from federation.runtime.controller import Controller, Key, Result
from federation.runtime.informer import Informer
from federation.simulator.deployments import owner_reference, owner_uid

_DONE = Result()
_BURST = 50
"""Pods created or deleted in one reconcile; the rest follows in the next."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def is_ready(pod: Object) -> bool:
    """Tell whether a pod has the condition Ready=True."""
    conditions = (pod.get("status") or {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def is_active(pod: Object) -> bool:
    """Tell whether a pod counts for its owner: neither finished nor on its way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


class ReplicaSetController:
    """Runs the ReplicaSets of one member; `rng` names the pods."""

    def __init__(
        self, client: Client, replica_sets: Informer, pods: Informer, clock: Clock, workers: int, rng: random.Random
    ) -> None:
        self._client = client
        self._sets = replica_sets
        self._pods = pods
        self._rng = rng
        self.controller = Controller("sim-replicaset", self._reconcile, workers=workers, clock=clock)
        pods.add_index("owner", owner_uid)
        replica_sets.add_handler(self._set_changed)
        pods.add_handler(self._pod_changed)

    def _set_changed(self, old: Object | None, new: Object | None) -> None:
        meta = (new or old or {})["metadata"]
        if old and new and old["metadata"].get("generation") == meta.get("generation"):
            return
        self.controller.enqueue(Key(meta["namespace"], meta["name"]))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        if old and new and is_active(old) == is_active(new) and is_ready(old) == is_ready(new):
            return
        for owner in pod["metadata"].get("ownerReferences", ()):
            if owner.get("controller") and owner["kind"] == "ReplicaSet":
                self.controller.enqueue(Key(pod["metadata"]["namespace"], owner["name"]))

    async def _reconcile(self, key: Key) -> Result:
        replica_set = self._sets.get(key.namespace, key.name)
        if replica_set is None or "deletionTimestamp" in replica_set["metadata"]:
            return _DONE
        uid = replica_set["metadata"]["uid"]
        active = [pod for pod in self._pods.by_index("owner", uid) if is_active(pod)]
        missing = int(replica_set["spec"].get("replicas", 1)) - len(active)
        if missing > 0:
            await self._create_pods(replica_set, min(missing, _BURST))
        elif missing < 0:
            await self._delete_pods(active, min(-missing, _BURST))
        active = [pod for pod in self._pods.by_index("owner", uid) if is_active(pod)]
        await self._write_status(replica_set, active)
        if abs(missing) > _BURST:
            self.controller.enqueue(key)
        return _DONE

    async def _create_pods(self, replica_set: Object, count: int) -> None:
        template = replica_set["spec"]["template"]
        reference = owner_reference(replica_set, "apps/v1", "ReplicaSet")
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
        return "".join(self._rng.choices(_ALPHABET, k=5))

    async def _delete_pods(self, active: list[Object], count: int) -> None:
        ranked = sorted(
            active,
            key=lambda pod: (
                bool(pod["spec"].get("nodeName")),
                is_ready(pod),
                _negated_age(pod),
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
        ready = sum(1 for pod in active if is_ready(pod))
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
                patch_type=PatchType.MERGE,
                namespace=meta["namespace"],
                subresource="status",
            )
        except NotFound:
            return
        await self._sets.wait_for(written["metadata"]["resourceVersion"])


def _negated_age(pod: Object) -> tuple[int, ...]:
    """Younger first: RFC 3339 text in UTC sorts by time, so its negated characters sort the other way."""
    return tuple(-ord(char) for char in pod["metadata"]["creationTimestamp"])
