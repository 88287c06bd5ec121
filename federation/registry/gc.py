"""The garbage collector: what an object's owner references mean for its life.

Background: dependents of an absent owner are deleted. Foreground: an owner that waits (`foregroundDeletion`) goes after
the dependents that block it. Orphan: the references are taken away first (`orphan`). An owner with another uid is
absent. An owner whose kind is not served cannot be judged: nothing is deleted, and it is looked at again later. Works
from an index by owner uid, fed by one watch; every verdict reads the store. Read `ownership.py` for the index.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

from federation.api.names import REASON_OWNER_REF_INVALID_NAMESPACE
from federation.api.resources import Object
from federation.base.clock import to_rfc3339
from federation.base.errors import ApiError, NotFound, StoreError
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.deletes import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Deleter
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.ownership import OwnershipIndex
from federation.registry.writes import Writer
from federation.store.interface import EventType

_WORKERS = 4
_RETRY_S = 0.2


class _Verdict(StrEnum):
    """What an owner reference stands for now."""

    SOLID = "solid"
    WAITING = "waiting"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class GarbageCollector:
    """One per registry; runs in every process, each step being harmless when another did it already."""

    def __init__(self, access: Access, writer: Writer, deleter: Deleter) -> None:
        self._access = access
        self._writer = writer
        self._deleter = deleter
        self._index = OwnershipIndex()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._unsure: set[str] = set()
        self._again: set[str] = set()
        self._stir = asyncio.Event()
        access.kinds.on_change(self._stir.set)
        self._by_prefix: dict[str, KindInfo] = {}
        self._generation = 0

    async def run(self) -> None:
        """Collect until cancelled."""
        self._index = OwnershipIndex()
        self._queue, self._queued = asyncio.Queue(), set()
        page = await self._access.store.list("/")
        for entry in page.entries:
            self._enqueue(self._index.note(entry.key, entry.value))
        revision = page.revision
        del page  # a loop that never ends must not hold on to what the world once was
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(), name=f"gc worker {number}")
            group.create_task(self._look_again(), name="gc retries")
            group.create_task(self._judge_unsure(), name="gc unsure")
            async for batch in self._access.store.watch("/", revision):
                for event in batch:
                    if event.type is EventType.DELETED:
                        self._enqueue(self._index.forget(event.key, event.value))
                    else:
                        self._enqueue(self._index.note(event.key, event.value))

    def _enqueue(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key not in self._queued:
                self._queued.add(key)
                self._queue.put_nowait(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            try:
                await self.process(key)
            except NotFound:
                continue
            except (ApiError, StoreError):
                # A conflict or a store that is away for a moment: the object is looked at again, from its new state.
                self._again.add(key)
                self._stir.set()

    async def _look_again(self) -> None:
        """Return to what failed after a short pause, and to what could not be judged when other kinds are served."""
        generation = self._access.kinds.generation
        while True:
            await self._stir.wait()
            self._stir.clear()
            await self._access.clock.sleep(_RETRY_S)
            keys, self._again = self._again, set()
            if generation != self._access.kinds.generation:
                generation = self._access.kinds.generation
                keys |= self._take_unsure()
            self._enqueue(keys)

    async def _judge_unsure(self) -> None:
        """Return to what could not be judged at the interval: its owner's kind may be known to it by now."""
        while True:
            await self._access.clock.sleep(self._access.options.gc_interval_s)
            self._enqueue(self._take_unsure())

    def _take_unsure(self) -> set[str]:
        keys, self._unsure = self._unsure, set()
        return keys

    async def process(self, key: str) -> None:
        """Do what an object's owner references and finalizers ask for now."""
        info = self._info(key)
        entry = await self._access.store.get(key)
        if info is None or entry is None:
            return
        obj = encoding.decode(info.to_version(entry.value))
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            finalizers = metadata.get("finalizers") or ()
            if ORPHAN_FINALIZER in finalizers:
                await self._orphan_dependents(info, obj)
            elif FOREGROUND_FINALIZER in finalizers:
                await self._finish_foreground(info, obj)
            return
        if owners := metadata.get("ownerReferences"):
            await self._judge(info, obj, owners)

    async def _judge(self, info: KindInfo, obj: Object, owners: list[dict[str, Any]]) -> None:
        namespace = obj["metadata"].get("namespace", "")
        verdicts = {owner["uid"]: await self._verdict(namespace, owner) for owner in owners}
        found = set(verdicts.values())
        if _Verdict.UNKNOWN in found:
            await self._report_unreachable(info, obj)
            self._unsure.add(info.key(namespace, obj["metadata"]["name"]))
            return
        if _Verdict.SOLID in found:
            if len(found) > 1:
                lost = {uid for uid, verdict in verdicts.items() if verdict is not _Verdict.SOLID}
                await self._drop_owners(info, obj, lost)
            return
        has_dependents = bool(self._index.dependents(obj["metadata"]["uid"]))
        if _Verdict.WAITING in found and has_dependents:
            policy = "Foreground"
            if await self._is_in_circle(obj["metadata"]["uid"]):
                obj = await self._unblock_owners(info, obj)
        else:
            present = obj["metadata"].get("finalizers") or ()
            policy = (
                "Orphan"
                if ORPHAN_FINALIZER in present
                else "Foreground"
                if FOREGROUND_FINALIZER in present
                else "Background"
            )
        await self._delete(info, obj, policy)

    async def _verdict(self, namespace: str, owner: dict[str, Any]) -> _Verdict:
        group, _, version = owner["apiVersion"].rpartition("/")
        try:
            info = self._access.kinds.by_kind(group, version, owner["kind"])
        except NotFound:
            return _Verdict.UNKNOWN
        if info.resource.namespaced and not namespace:
            return _Verdict.UNKNOWN
        entry = await self._access.store.get(info.key(namespace, owner["name"]))
        if entry is None or encoding.position(entry.value).uid != owner["uid"]:
            return _Verdict.ABSENT
        return _Verdict.WAITING if _is_waiting(entry.value) else _Verdict.SOLID

    async def _is_in_circle(self, uid: str) -> bool:
        """Return whether a dependent of `uid` is itself in foreground deletion, so each may wait for the other.

        The index may not have heard of that deletion yet, although the owner's verdict has seen it: the store knows.
        """
        for key in self._index.dependents(uid):
            entry = await self._access.store.get(key)
            if entry is not None and _is_waiting(entry.value):
                return True
        return False

    async def _report_unreachable(self, info: KindInfo, obj: Object) -> None:
        """Tell about owners that cannot be found, because they have a namespace and the object has none."""
        metadata, kinds = obj["metadata"], self._access.kinds
        if info.resource.namespaced:
            return
        for owner in metadata.get("ownerReferences") or ():
            group, _, version = owner["apiVersion"].rpartition("/")
            if (found := kinds.served(group, version, owner["kind"])) is None or not found.resource.namespaced:
                continue
            event = _invalid_owner_event(obj, owner, to_rfc3339(self._access.clock.now()))
            with contextlib.suppress(ApiError):  # it stands there already
                await self._writer.create(kinds.lookup("", "v1", "events"), "default", event, WriteOptions())

    async def _finish_foreground(self, info: KindInfo, owner: Object) -> None:
        """Delete the dependents of a waiting owner and let it go when none of them blocks it any more."""
        uid = owner["metadata"]["uid"]
        is_blocked = False
        for key in self._index.dependents(uid):
            entry = await self._access.store.get(key)
            if entry is None:
                continue
            metadata = encoding.metadata_of(entry.value)
            references = [ref for ref in metadata.get("ownerReferences") or () if ref["uid"] == uid]
            if not references:
                continue
            is_blocked |= any(reference.get("blockOwnerDeletion") for reference in references)
            if not metadata.get("deletionTimestamp"):
                self._enqueue([key])
        if not is_blocked:
            await self._take_finalizer(info, owner, FOREGROUND_FINALIZER)

    async def _orphan_dependents(self, info: KindInfo, owner: Object) -> None:
        """Take the owner's references from all dependents, then the finalizer from the owner."""
        uid = owner["metadata"]["uid"]
        for key in self._index.dependents(uid):
            dependent_info = self._info(key)
            entry = await self._access.store.get(key)
            if dependent_info is not None and entry is not None:
                await self._drop_owners(dependent_info, encoding.decode(dependent_info.to_version(entry.value)), {uid})
        await self._take_finalizer(info, owner, ORPHAN_FINALIZER)

    async def _drop_owners(self, info: KindInfo, obj: Object, uids: set[str]) -> None:
        def dropped(live: Object) -> tuple[Object, bool]:
            owners = live["metadata"].get("ownerReferences") or []
            kept = [owner for owner in owners if owner["uid"] not in uids]
            live["metadata"]["ownerReferences"] = kept or None
            return live, False

        await self._change(info, obj, dropped)

    async def _unblock_owners(self, info: KindInfo, obj: Object) -> Object:
        """Let owners go before `obj`, as each would wait for the other; return the object as it is now."""

        def unblocked(live: Object) -> tuple[Object, bool]:
            for owner in live["metadata"].get("ownerReferences") or ():
                owner["blockOwnerDeletion"] = False
            return live, False

        await self._change(info, obj, unblocked)
        metadata = obj["metadata"]
        key = info.key(metadata.get("namespace", ""), metadata["name"])
        self._enqueue(self._index.waiting_owners(key))
        entry = await self._access.store.get(key)
        if entry is None:
            raise NotFound(f"{metadata['name']} is gone")
        return encoding.decode(info.to_version(entry.value))

    async def _take_finalizer(self, info: KindInfo, obj: Object, finalizer: str) -> None:
        def taken(live: Object) -> tuple[Object, bool]:
            kept = [name for name in live["metadata"].get("finalizers") or () if name != finalizer]
            live["metadata"]["finalizers"] = kept or None
            return live, False

        await self._change(info, obj, taken)

    async def _change(self, info: KindInfo, obj: Object, change: Callable[[Object], tuple[Object, bool]]) -> None:
        metadata = obj["metadata"]

        def same_life(live: Object) -> tuple[Object, bool]:
            if live["metadata"]["uid"] != metadata["uid"]:
                raise NotFound(f"{metadata['name']} is another object now")
            return change(live)

        await self._writer.change(
            info,
            metadata.get("namespace", ""),
            metadata["name"],
            same_life,
            WriteOptions(user_agent="garbage-collector"),
        )

    async def _delete(self, info: KindInfo, obj: Object, policy: str) -> None:
        metadata = obj["metadata"]
        options = DeleteOptions(
            propagation_policy=policy, uid=metadata["uid"], resource_version=metadata["resourceVersion"]
        )
        await self._deleter.delete(info, metadata.get("namespace", ""), metadata["name"], options)

    def _info(self, key: str) -> KindInfo | None:
        if self._generation != self._access.kinds.generation:
            self._generation = self._access.kinds.generation
            self._by_prefix = {info.prefix: info for info in self._access.kinds.stored()}
        group_end = key.index("/", 1)
        return self._by_prefix.get(key[: key.index("/", group_end + 1) + 1])


def _is_waiting(value: bytes) -> bool:
    """Return whether an object is in foreground deletion."""
    if b'"foregroundDeletion"' not in value:
        return False
    metadata = encoding.metadata_of(value)
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND_FINALIZER in (metadata.get("finalizers") or ())


def _invalid_owner_event(obj: Object, owner: dict[str, Any], now: str) -> Object:
    """Return the Event that kube-controller-manager writes about such an owner, one per object and owner."""
    metadata = obj["metadata"]
    shown = f"[{owner['apiVersion']}/{owner['kind']}, namespace: , name: {owner['name']}, uid: {owner['uid']}]"
    about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][:200]}.{metadata['uid'][:8]}{owner['uid'][:8]}".lower()},
        "involvedObject": about,
        "type": "Warning",
        "reason": REASON_OWNER_REF_INVALID_NAMESPACE,
        "message": f'ownerRef {shown} does not exist in namespace ""',
        "source": {"component": "garbage-collector-controller"},
        "reportingComponent": "garbage-collector-controller",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
