"""The controllers of StorageObjectInUseProtection: claims stay while pods use them, and volumes while they are bound.

New claims and volumes get a finalizer (`semantics/strategies/storage.py`). When one is deleted, its finalizer is
removed as soon as nothing uses it. A claim is in use by a pod that has a node, also by one that has finished. A volume
is in use while it is bound and this server has the claim that it names. The phase alone does not tell: on a host it is
that of other clusters, and nobody corrects it once they have no such volume.
"""

import asyncio
import contextlib
from functools import partial

from federation.apimachinery.errors import NotFound, ValueDamaged
from federation.apimachinery.finalizers import CLAIM_PROTECTION, VOLUME_PROTECTION
from federation.apimachinery.resources import Object
from federation.apiserver.registry.deletions import same_uid
from federation.apiserver.semantics.encoding import encoding
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
        self._waiting: set[str] = set()
        """The uids of deleted claims that are in use."""
        self._bound: dict[str, tuple[str, str]] = {}
        """Deleted volumes that are in use, with the namespace and name of their claim."""

    async def run(self) -> None:
        """Release deleted claims and volumes until cancelled.

        A failure, such as a store that does not answer, ends it: its supervisor repeats it, and it lists again.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(_CLAIMS, group))
            group.create_task(self._follow(_VOLUMES, group))

    async def _follow(self, prefix: str, group: asyncio.TaskGroup) -> None:
        store = self._context.store
        page = await store.list(prefix)
        for entry in page.entries:
            await self._see(prefix, entry.value, group)
        revision = page.revision
        del page  # this loop never ends and must not keep these bytes in memory
        async for batch in store.watch(prefix, revision):
            for event in batch:
                if event.type is not EventType.DELETED:
                    await self._see(prefix, event.value, group)
                elif prefix == _CLAIMS:
                    await self._see_end(event.key)
                else:
                    self._bound.pop(event.key.removeprefix(_VOLUMES), None)

    async def _see(self, prefix: str, value: bytes, group: asyncio.TaskGroup) -> None:
        if b'"deletionTimestamp":"' not in value:
            return
        obj = encoding.decode(value)
        if prefix == _VOLUMES:
            await self._see_volume(obj)
            return
        metadata = obj["metadata"]
        if not _is_held(obj, CLAIM_PROTECTION):
            return
        if metadata["uid"] not in self._waiting:
            task = group.create_task(self._release_unused(obj), name=f"release claim {metadata['name']}")
            self._waiting.add(metadata["uid"])
            task.add_done_callback(lambda _: self._waiting.discard(metadata["uid"]))

    async def _see_end(self, key: str) -> None:
        """Look again at the deleted volumes that a claim used."""
        for name in [name for name, claim in self._bound.items() if _CLAIMS + "/".join(claim) == key]:
            self._bound.pop(name, None)
            if (entry := await self._context.store.get(_VOLUMES + name)) is not None:
                await self._see_volume(encoding.decode(entry.value))

    async def _see_volume(self, volume: Object) -> None:
        """Release a deleted volume that no claim of this server uses."""
        if not _is_held(volume, VOLUME_PROTECTION):
            return
        name, claim = volume["metadata"]["name"], volume["spec"].get("claimRef") or {}
        if (volume.get("status") or {}).get("phase") == "Bound" and claim:
            where = str(claim.get("namespace")), str(claim.get("name"))
            # Before the read: the claim may be removed right after it.
            self._bound[name] = where
            if await self._has_claim(_CLAIMS + "/".join(where), claim.get("uid")):
                return
        self._bound.pop(name, None)
        await self._release(volume)

    async def _has_claim(self, key: str, uid: str | None) -> bool:
        """Return whether the claim exists, with this uid if there is one; a damaged one does until it is removed."""
        try:
            entry = await self._context.store.get(key)
        except ValueDamaged:
            return True
        return entry is not None and uid in (None, "", encoding.read_revision_and_uid(entry.value).uid)

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
        info, finalizer = (self._claims, CLAIM_PROTECTION) if namespace else (self._volumes, VOLUME_PROTECTION)
        with contextlib.suppress(NotFound):
            change = same_uid(metadata["uid"], without_finalizer(finalizer))
            await self._writer.change(info, namespace, metadata["name"], change, WriteOptions())


def _is_held(obj: Object, finalizer: str) -> bool:
    """Return whether an object is being deleted and has the finalizer."""
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and finalizer in (metadata.get("finalizers") or ())


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
