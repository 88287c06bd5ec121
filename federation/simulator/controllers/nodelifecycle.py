"""The simulated node lifecycle controller: taint-based eviction and garbage collection of pods on deleted nodes.

Pods on a deleted node are deleted at once. A NoExecute taint evicts pods that do not tolerate it, and pods that
tolerate it for a limited time after `tolerationSeconds`. `replicasets.py` creates the replacements.
"""

from collections.abc import Mapping
from typing import Any

from federation.api.selectors import tolerates
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import NODES, PODS, Object
from federation.runtime.controller import Key, Result
from federation.simulator.controllers.memberparts import Member

_BY_NODE = "node"
_DONE = Result()


class NodeLifecycleController:
    """Evicts pods of one member; its keys are pods."""

    def __init__(self, member: Member) -> None:
        self._client = member.client
        self._pods = pods = member.cache(PODS)
        self._nodes = nodes = member.cache(NODES)
        self._clock = member.clock
        self._evicted_at_s: dict[Key, float] = {}
        self.controller = member.controller("sim-node-lifecycle", self._reconcile)
        pods.add_index(_BY_NODE, lambda pod: [node] if (node := pod["spec"].get("nodeName")) else [])
        nodes.add_handler(self._node_changed)
        pods.add_handler(self._pod_changed)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and new is not None and old["spec"].get("taints") == new["spec"].get("taints"):
            return
        for pod in self._pods.by_index(_BY_NODE, (new or old or {})["metadata"]["name"]):
            self.controller.enqueue(Key(pod["metadata"]["namespace"], pod["metadata"]["name"]))

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and new["spec"].get("nodeName") and (old is None or not old["spec"].get("nodeName")):
            self.controller.enqueue(Key(new["metadata"]["namespace"], new["metadata"]["name"]))

    async def _reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key.namespace, key.name)
        if pod is None or not self._nodes.has_synced:
            return _DONE
        node = self._nodes.get("", pod["spec"].get("nodeName", ""))
        if node is None:
            await self._delete(pod, grace_period_s=0)
            return _DONE
        delay_s = compute_eviction_delay_s(pod["spec"], node)
        if delay_s is None or "deletionTimestamp" in pod["metadata"]:
            self._evicted_at_s.pop(key, None)
            return _DONE
        now_s = self._clock.monotonic()
        wait_s = self._evicted_at_s.setdefault(key, now_s + delay_s) - now_s
        if wait_s > 0:
            return Result(requeue_after_s=wait_s)
        self._evicted_at_s.pop(key)
        await self._delete(pod)
        return _DONE

    async def _delete(self, pod: Object, *, grace_period_s: int | None = None) -> None:
        meta = pod["metadata"]
        try:
            await self._client.delete(
                PODS, meta["name"], meta["namespace"], uid=meta["uid"], grace_period_s=grace_period_s
            )
        except NotFound:
            return


def compute_eviction_delay_s(spec: Mapping[str, Any], node: Mapping[str, Any]) -> float | None:
    """Return the seconds between a node's tainting and the pod's eviction, None when the pod may stay."""
    delays: list[float] = []
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint.get("effect") != "NoExecute":
            continue
        matching = [toleration for toleration in spec.get("tolerations") or () if tolerates(toleration, taint)]
        if not matching:
            return 0.0
        delays += [float(t["tolerationSeconds"]) for t in matching if t.get("tolerationSeconds") is not None]
    return min(delays, default=None)
