"""The garbage collector: deletes objects whose owners are gone, as kube-controller-manager's does.

Background: dependents of an absent owner are deleted. Foreground: an owner with the finalizer `foregroundDeletion` is
removed after the dependents that block it. Orphan: its references are removed from the dependents first. An owner with
another uid is absent. While an owner's kind is not served, nothing is deleted and the object is retried later. One
watch feeds `OwnerIndex` (`ownerindex.py`); each decision reads the store, because the index may lag behind it.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ApiError, NotFound, StoreError
from federation.apimachinery.ownerreferences import Reference, owner_references
from federation.apimachinery.resources import Object
from federation.apiserver.registry.deletions import same_uid
from federation.apiserver.registry.ownerindex import OwnerIndex
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.deletes import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, Deleter
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions
from federation.apiserver.verbs.writes import Change, Writer, without_finalizer

_REASON_INVALID_NAMESPACE = "OwnerRefInvalidNamespace"
_WORKERS = 4
_RETRY_S = 0.2
_SLICE = 100
"""Objects to index before the event loop runs other tasks."""


class _OwnerState(StrEnum):
    """The current state of an owner, in the terms of kube-controller-manager."""

    SOLID = "solid"
    WAITING = "waiting"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class GarbageCollector:
    """One per registry. It runs in every process: each step is harmless when another process did it before."""

    def __init__(self, context: VerbContext, writer: Writer, deleter: Deleter) -> None:
        self._context = context
        self._writer = writer
        self._deleter = deleter
        self._index = OwnerIndex()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._unresolved: set[str] = set()
        self._failed: set[str] = set()
        self._retry_needed = asyncio.Event()
        context.kinds.on_change(self._retry_needed.set)
        self._by_prefix: dict[str, KindInfo] = {}
        self._generation = 0

    async def run(self) -> None:
        """Collect until cancelled."""
        self._index = OwnerIndex()
        self._queue, self._queued = asyncio.Queue(), set()
        page = await self._context.store.list("/")
        for number, entry in enumerate(page.entries):
            self._enqueue(self._index.record(entry.key, entry.value))
            if number % _SLICE == 0:  # at a start, requests and caches come first
                await asyncio.sleep(0)
        revision = page.revision
        del page  # this loop never ends and must not keep all stored bytes in memory
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(), name=f"gc worker {number}")
            group.create_task(self._retry_failed(), name="gc retries")
            group.create_task(self._retry_unresolved(), name="gc unresolved")
            async for batch in self._context.store.watch("/", revision):
                for event in batch:
                    if event.type is EventType.DELETED:
                        self._enqueue(self._index.remove(event.key, event.value))
                    else:
                        self._enqueue(self._index.record(event.key, event.value))

    def _enqueue(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key not in self._queued:
                self._queued.add(key)
                self._queue.put_nowait(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            self._queued.discard(key)
            await asyncio.sleep(0)  # at a start every dependent is queued, and reading them never waits
            try:
                await self.process(key)
            except NotFound:
                continue
            except (ApiError, StoreError):
                # A conflict, or a store that is unavailable for a moment: the retry starts from the newest state.
                self._failed.add(key)
                self._retry_needed.set()

    async def _retry_failed(self) -> None:
        """Requeue failed keys after a short pause, and unresolved ones when the served kinds change."""
        generation = self._context.kinds.generation
        while True:
            await self._retry_needed.wait()
            self._retry_needed.clear()
            await self._context.clock.sleep(_RETRY_S)
            keys, self._failed = self._failed, set()
            if generation != self._context.kinds.generation:
                generation = self._context.kinds.generation
                keys |= self._take_unresolved()
            self._enqueue(keys)

    async def _retry_unresolved(self) -> None:
        """Requeue unresolved keys at an interval."""
        while True:
            await self._context.clock.sleep(self._context.options.gc_interval_s)
            self._enqueue(self._take_unresolved())

    def _take_unresolved(self) -> set[str]:
        keys, self._unresolved = self._unresolved, set()
        return keys

    async def process(self, key: str) -> None:
        """Act on an object's finalizers if it is terminating, otherwise on its owner references."""
        info = self._info(key)
        entry = await self._context.store.get(key)
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
        if owners := owner_references(metadata):
            await self._process_owners(info, obj, owners)

    async def _process_owners(self, info: KindInfo, obj: Object, owners: Sequence[Reference]) -> None:
        namespace = obj["metadata"].get("namespace", "")
        states = {owner["uid"]: await self._owner_state(namespace, owner) for owner in owners}
        found = set(states.values())
        if _OwnerState.UNKNOWN in found:
            await self._report_invalid_namespace(info, obj)
            self._unresolved.add(info.key(namespace, obj["metadata"]["name"]))
            return
        if _OwnerState.SOLID in found:
            if len(found) > 1:
                lost = {uid for uid, state in states.items() if state is not _OwnerState.SOLID}
                await self._remove_owners(info, obj, lost)
            return
        has_dependents = bool(self._index.dependents(obj["metadata"]["uid"]))
        if _OwnerState.WAITING in found and has_dependents:
            policy = "Foreground"
            if await self._has_cycle(obj["metadata"]["uid"]):
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

    async def _owner_state(self, namespace: str, owner: dict[str, Any]) -> _OwnerState:
        group, _, version = owner["apiVersion"].rpartition("/")
        try:
            info = self._context.kinds.by_kind(group, version, owner["kind"])
        except NotFound:
            return _OwnerState.UNKNOWN
        if info.resource.namespaced and not namespace:
            return _OwnerState.UNKNOWN
        entry = await self._context.store.get(info.key(namespace, owner["name"]))
        if entry is None or encoding.read_revision_and_uid(entry.value).uid != owner["uid"]:
            return _OwnerState.ABSENT
        return _OwnerState.WAITING if _is_waiting(entry.value) else _OwnerState.SOLID

    async def _has_cycle(self, uid: str) -> bool:
        """Return whether a dependent of `uid` is itself in foreground deletion, so that each would wait for the other.

        It reads the store, because the index may not have received that deletion yet.
        """
        for key in self._index.dependents(uid):
            entry = await self._context.store.get(key)
            if entry is not None and _is_waiting(entry.value):
                return True
        return False

    async def _report_invalid_namespace(self, info: KindInfo, obj: Object) -> None:
        """Emit an Event when a cluster-scoped object names a namespaced owner."""
        metadata, kinds = obj["metadata"], self._context.kinds
        if info.resource.namespaced:
            return
        for owner in owner_references(metadata):
            group, _, version = owner["apiVersion"].rpartition("/")
            if (found := kinds.served(group, version, owner["kind"])) is None or not found.resource.namespaced:
                continue
            event = _invalid_owner_event(obj, owner, to_rfc3339(self._context.clock.now()))
            with contextlib.suppress(ApiError):  # the Event exists already
                await self._writer.create(kinds.lookup("", "v1", "events"), "default", event, WriteOptions())

    async def _finish_foreground(self, info: KindInfo, owner: Object) -> None:
        """Delete the dependents of a waiting owner, and remove its finalizer when none of them blocks it."""
        uid = owner["metadata"]["uid"]
        is_blocked = False
        for key in self._index.dependents(uid):
            entry = await self._context.store.get(key)
            if entry is None:
                continue
            metadata = encoding.decode_metadata(entry.value)
            references = [ref for ref in owner_references(metadata) if ref["uid"] == uid]
            if not references:
                continue
            is_blocked |= any(reference.get("blockOwnerDeletion") for reference in references)
            if not metadata.get("deletionTimestamp"):
                self._enqueue([key])
        if not is_blocked:
            await self._remove_finalizer(info, owner, FOREGROUND_FINALIZER)

    async def _orphan_dependents(self, info: KindInfo, owner: Object) -> None:
        """Remove the references to the owner from all dependents, then the finalizer from the owner."""
        uid = owner["metadata"]["uid"]
        for key in self._index.dependents(uid):
            dependent_info = self._info(key)
            entry = await self._context.store.get(key)
            if dependent_info is not None and entry is not None:
                await self._remove_owners(
                    dependent_info, encoding.decode(dependent_info.to_version(entry.value)), {uid}
                )
        await self._remove_finalizer(info, owner, ORPHAN_FINALIZER)

    async def _remove_owners(self, info: KindInfo, obj: Object, uids: set[str]) -> None:
        def dropped(live: Object) -> tuple[Object, bool]:
            owners = owner_references(live["metadata"])
            kept = [owner for owner in owners if owner["uid"] not in uids]
            live["metadata"]["ownerReferences"] = kept or None
            return live, False

        await self._change(info, obj, dropped)

    async def _unblock_owners(self, info: KindInfo, obj: Object) -> Object:
        """Break a cycle: stop `obj` from blocking the deletion of its owners; return its newest state."""

        def unblocked(live: Object) -> tuple[Object, bool]:
            for owner in owner_references(live["metadata"]):
                owner["blockOwnerDeletion"] = False
            return live, False

        await self._change(info, obj, unblocked)
        metadata = obj["metadata"]
        key = info.key(metadata.get("namespace", ""), metadata["name"])
        self._enqueue(self._index.waiting_owners(key))
        entry = await self._context.store.get(key)
        if entry is None:
            raise NotFound(f"{metadata['name']} is gone")
        return encoding.decode(info.to_version(entry.value))

    async def _remove_finalizer(self, info: KindInfo, obj: Object, finalizer: str) -> None:
        await self._change(info, obj, without_finalizer(finalizer))

    async def _change(self, info: KindInfo, obj: Object, change: Change) -> None:
        metadata = obj["metadata"]
        await self._writer.change(
            info,
            metadata.get("namespace", ""),
            metadata["name"],
            same_uid(metadata["uid"], change),
            WriteOptions(user_agent="garbage-collector"),
        )

    async def _delete(self, info: KindInfo, obj: Object, policy: str) -> None:
        metadata = obj["metadata"]
        options = DeleteOptions(
            propagation_policy=policy, uid=metadata["uid"], resource_version=metadata["resourceVersion"]
        )
        await self._deleter.delete(info, metadata.get("namespace", ""), metadata["name"], options)

    def _info(self, key: str) -> KindInfo | None:
        if self._generation != self._context.kinds.generation:
            self._generation = self._context.kinds.generation
            self._by_prefix = {info.prefix: info for info in self._context.kinds.stored()}
        group_end = key.index("/", 1)
        return self._by_prefix.get(key[: key.index("/", group_end + 1) + 1])


def _is_waiting(value: bytes) -> bool:
    """Return whether an object is in foreground deletion."""
    if b'"foregroundDeletion"' not in value:
        return False
    metadata = encoding.decode_metadata(value)
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND_FINALIZER in (metadata.get("finalizers") or ())


def _invalid_owner_event(obj: Object, owner: dict[str, Any], now: str) -> Object:
    """Return kube-controller-manager's Event about such an owner, with one name per object and owner."""
    metadata = obj["metadata"]
    shown = f"[{owner['apiVersion']}/{owner['kind']}, namespace: , name: {owner['name']}, uid: {owner['uid']}]"
    about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][:200]}.{metadata['uid'][:8]}{owner['uid'][:8]}".lower()},
        "involvedObject": about,
        "type": "Warning",
        "reason": _REASON_INVALID_NAMESPACE,
        "message": f'ownerRef {shown} does not exist in namespace ""',
        "source": {"component": "garbage-collector-controller"},
        "reportingComponent": "garbage-collector-controller",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
