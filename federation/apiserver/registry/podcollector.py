"""Ends the grace period of deleted pods that no kubelet stops: pods of nodes that this server does not have.

kube-controller-manager does the same for pods of nodes that are gone. A server without nodes, such as the host of a
federation, would otherwise keep a pod that names a node for ever, with its claims and its namespace. Finalizers still
hold the pod. Like the other controllers it runs in one process only.
"""

import asyncio
import contextlib
from datetime import timedelta

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.errors import NotFound
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.deletes import Deleter
from federation.apiserver.verbs.requestoptions import DeleteOptions

_PODS, _NODES = "/core/pods/", "/core/nodes/"
_SPARE = timedelta(seconds=10)
"""How long after its grace period a pod is removed: a kubelet whose node appears late may still stop it."""


class PodCollector:
    """The controller of one registry."""

    def __init__(self, context: VerbContext, deleter: Deleter) -> None:
        self._context = context
        self._deleter = deleter
        self._info = context.kinds.lookup("", "v1", "pods")
        self._waiting: set[str] = set()

    async def run(self) -> None:
        """Follow deleted pods until cancelled. A failure ends it: its supervisor repeats it, and it lists again."""
        store = self._context.store
        page = await store.list(_PODS)
        values = [entry.value for entry in page.entries if b'"deletionTimestamp":"' in entry.value]
        revision = page.revision
        del page  # this loop never ends and must not keep these bytes in memory
        async with asyncio.TaskGroup() as group:
            while values:
                self._see(values.pop(), group)
            async for batch in store.watch(_PODS, revision):
                for event in batch:
                    if event.type is not EventType.DELETED:
                        self._see(event.value, group)

    def _see(self, value: bytes, group: asyncio.TaskGroup) -> None:
        if b'"deletionTimestamp":"' not in value:
            return
        pod = encoding.decode(value)
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        uid = metadata["uid"]
        if not node or not metadata.get("deletionGracePeriodSeconds") or uid in self._waiting:
            return
        end = from_rfc3339(metadata["deletionTimestamp"]) + _SPARE
        wait_s = max((end - self._context.clock.now()).total_seconds(), 0.0)
        removal = self._remove(metadata["namespace"], metadata["name"], uid, node, wait_s)
        task = group.create_task(removal, name=f"remove pod {metadata['name']}")
        self._waiting.add(uid)
        task.add_done_callback(lambda _: self._waiting.discard(uid))

    async def _remove(self, namespace: str, name: str, uid: str, node: str, wait_s: float) -> None:
        await self._context.clock.sleep(wait_s)
        while await self._context.store.get(_NODES + node) is not None:
            if not await self._is_there(namespace, name, uid):
                return
            await self._context.clock.sleep(_SPARE.total_seconds())  # its kubelet stops the pod
        with contextlib.suppress(NotFound):
            await self._deleter.delete(self._info, namespace, name, DeleteOptions(grace_period_s=0, uid=uid))

    async def _is_there(self, namespace: str, name: str, uid: str) -> bool:
        entry = await self._context.store.get(f"{_PODS}{namespace}/{name}")
        return entry is not None and encoding.read_revision_and_uid(entry.value).uid == uid
