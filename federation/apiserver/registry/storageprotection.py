"""The controllers of StorageObjectInUseProtection: claims stay while pods use them, and volumes while they are bound.

New claims and volumes get a finalizer (`semantics/strategies/storage.py`). When one is deleted, its finalizer is
removed as soon as nothing uses it. A claim is in use by a pod that has a node, also by one that has finished.
"""

import asyncio
import contextlib
from functools import partial

from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.registry.deletions import same_uid
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.strategies.storage import CLAIM_FINALIZER, VOLUME_FINALIZER
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.apiserver.verbs.writes import Writer, without_finalizer

_CLAIMS, _VOLUMES = "/core/persistentvolumeclaims/", "/core/persistentvolumes/"
_PAUSE_S = 0.2
"""Between looks at the pods of a namespace that change all the time."""


class StorageProtection:
    """Both controllers of one registry."""

    def __init__(self, context: VerbContext, writer: Writer) -> None:
        self._context = context
        self._writer = writer
        self._claims = context.kinds.lookup("", "v1", "persistentvolumeclaims")
        self._volumes = context.kinds.lookup("", "v1", "persistentvolumes")
        self._waiting: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Release deleted claims and volumes until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow(_CLAIMS))
                group.create_task(self._follow(_VOLUMES))
        finally:
            tasks = list(self._waiting.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, prefix: str) -> None:
        store = self._context.store
        page = await store.list(prefix)
        for entry in page.entries:
            await self._see(prefix, entry.value)
        revision = page.revision
        del page  # this loop never ends and must not keep these bytes in memory
        async for batch in store.watch(prefix, revision):
            for event in batch:
                if event.type is not EventType.DELETED:
                    await self._see(prefix, event.value)

    async def _see(self, prefix: str, value: bytes) -> None:
        if b'"deletionTimestamp":"' not in value:
            return
        obj = encoding.decode(value)
        metadata = obj["metadata"]
        finalizer = CLAIM_FINALIZER if prefix == _CLAIMS else VOLUME_FINALIZER
        if not metadata.get("deletionTimestamp") or finalizer not in (metadata.get("finalizers") or ()):
            return
        if prefix == _VOLUMES:
            if (obj.get("status") or {}).get("phase") != "Bound":
                await self._release(obj)
        elif metadata["uid"] not in self._waiting:
            task = asyncio.create_task(self._release_unused(obj), name=f"release claim {metadata['name']}")
            self._waiting[metadata["uid"]] = task
            task.add_done_callback(lambda _: self._waiting.pop(metadata["uid"], None))

    async def _release_unused(self, claim: Object) -> None:
        """Wait until no pod uses a claim, and release it."""
        store, prefix = self._context.store, f"/core/pods/{claim['metadata']['namespace']}/"
        while True:
            page = await store.list(prefix)
            if not any(map(partial(_is_used_by, claim), (entry.value for entry in page.entries))):
                break
            async with contextlib.aclosing(store.watch(prefix, page.revision)) as changes:
                async for _ in changes:
                    break
            await self._context.clock.sleep(_PAUSE_S)
        await self._release(claim)

    async def _release(self, obj: Object) -> None:
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "")
        info, finalizer = (self._claims, CLAIM_FINALIZER) if namespace else (self._volumes, VOLUME_FINALIZER)
        with contextlib.suppress(NotFound):
            change = same_uid(metadata["uid"], without_finalizer(finalizer))
            await self._writer.change(info, namespace, metadata["name"], change, WriteOptions())


def _is_used_by(claim: Object, value: bytes) -> bool:
    """Return True if a stored pod has a node and a volume of the claim, and its kubelet may not be done with it."""
    name = claim["metadata"]["name"]
    # The test of the text spares nearly every pod the parsing.
    if f'"{name}"'.encode() not in value and b'"ephemeral":{' not in value:
        return False
    pod = encoding.decode(value)
    metadata, spec = pod["metadata"], pod["spec"]
    if not spec.get("nodeName") or (metadata.get("deletionTimestamp") and not metadata["deletionGracePeriodSeconds"]):
        return False
    return any(
        (volume.get("persistentVolumeClaim") or {}).get("claimName") == name
        or ("ephemeral" in volume and f"{metadata['name']}-{volume['name']}" == name)
        for volume in spec.get("volumes") or ()
    )
