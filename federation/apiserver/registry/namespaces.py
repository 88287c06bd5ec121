"""The namespace controller: system namespaces, default objects of each namespace, and deletion of content.

A terminating namespace is emptied kind by kind, with retries while objects have finalizers; then its own finalizer is
removed. Content that was created while the namespace was being removed is deleted after its removal.

A namespace of the same name may be created at any time, for example while this process was stopped. So objects are
deleted by uid, and only if the old namespace is seen to be terminating or absent after they were listed.
"""

import asyncio
import contextlib

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ApiError, NotFound, ValueDamaged
from federation.apimachinery.finalizers import NAMESPACE_CONTENT
from federation.apimachinery.resources import NAMESPACES, Object
from federation.apiserver.registry.deletions import is_same, precondition, same_uid
from federation.apiserver.registry.namespaceconditions import RemainingContent
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.deletes import Deleter
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.apiserver.verbs.writes import Change, Writer

_PREFIX = "/core/namespaces/"
_PAUSE_S_MAX = 2.0


class NamespaceController:
    """The namespace controller of one registry."""

    def __init__(self, context: VerbContext, writer: Writer, deleter: Deleter) -> None:
        self._context = context
        self._writer = writer
        self._deleter = deleter
        self._deletions: set[str] = set()
        """The uids of the namespaces that are being emptied."""

    async def ensure_system_namespaces(self) -> None:
        """Create the namespaces that always exist."""
        info = self._context.kinds.lookup(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)

        async def ensure(name: str) -> None:
            if not await self._has(info.key("", name)):
                await self._create(info.resource.plural, "", {"metadata": {"name": name}})

        await asyncio.gather(*(ensure(name) for name in self._context.options.system_namespaces))

    async def run(self) -> None:
        """Reconcile every namespace until cancelled.

        A failure, such as a store that does not answer, ends it: its supervisor repeats it, and it lists again.
        """
        page = await self._context.store.list(_PREFIX)
        revision, found = page.revision, [encoding.decode(entry.value) for entry in page.entries]
        del page  # this loop never ends and must not keep these bytes in memory
        async with asyncio.TaskGroup() as group:
            while found:
                await self._reconcile(found.pop(), group)
            async for batch in self._context.store.watch(_PREFIX, revision):
                for event in batch:
                    if event.type is EventType.DELETED:
                        with contextlib.suppress(NotFound):
                            await self._delete_content(event.key.removeprefix(_PREFIX), "")
                    else:
                        await self._reconcile(encoding.decode(event.value), group)

    async def _reconcile(self, namespace: Object, group: asyncio.TaskGroup) -> None:
        name, uid = namespace["metadata"]["name"], namespace["metadata"]["uid"]
        if not namespace["metadata"].get("deletionTimestamp"):
            await self._ensure_default_objects(name)
        elif uid not in self._deletions:
            task = group.create_task(self._finalize(name, uid), name=f"empty namespace {name}")
            self._deletions.add(uid)
            task.add_done_callback(lambda _: self._deletions.discard(uid))

    async def _ensure_default_objects(self, name: str) -> None:
        """Create the default ServiceAccount. `capublisher.py` adds the ConfigMap with the root certificate."""
        if not await self._has(f"/core/serviceaccounts/{name}/default"):
            await self._create("serviceaccounts", name, {"metadata": {"name": "default"}})

    async def _has(self, key: str) -> bool:
        """Return whether the object exists; one that is damaged must not stop the work on the others."""
        try:
            return await self._context.store.get(key) is not None
        except ValueDamaged:
            return True

    async def _create(self, plural: str, namespace: str, obj: Object) -> None:
        info = self._context.kinds.lookup("", "v1", plural)
        try:
            await self._writer.create(info, namespace, obj, WriteOptions())
        except ApiError as error:
            # Another process created it first, or the namespace is terminating.
            if error.code not in {403, 404, 409}:
                raise

    async def _finalize(self, name: str, uid: str) -> None:
        """Delete the content of a terminating namespace until none is remaining, then remove its finalizer."""
        with contextlib.suppress(NotFound):
            await self._empty(name, uid)

    async def _empty(self, name: str, uid: str) -> None:
        pause_s = 0.02
        while (remaining := await self._delete_content(name, uid)).is_waiting:
            await self._report(name, uid, remaining)
            await self._context.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_S_MAX)

        def finalized(live: Object) -> tuple[Object, bool]:
            finalizers = (live.get("spec") or {}).get("finalizers") or []
            return {
                **live,
                "spec": {"finalizers": [entry for entry in finalizers if entry != NAMESPACE_CONTENT]},
            }, False

        entry = await self._context.store.get(_PREFIX + name)
        if entry is not None and len(_finalizers(encoding.decode(entry.value))) > 1:
            await self._report(name, uid, remaining)  # other finalizers keep it: report that it is empty
        await self._change(name, uid, finalized, "finalize")

    async def _delete_content(self, name: str, uid: str) -> RemainingContent:
        """Delete all objects of a namespace and return the remaining ones.

        `uid` is that of the terminating namespace, "" if it is absent. NotFound when another one has its name now.
        """
        remaining = RemainingContent()
        for info in self._context.kinds.stored():
            if not info.resource.namespaced or "delete" not in info.verbs:
                continue
            prefix = info.collection(name)
            entries = (await self._context.store.list(prefix)).entries
            # After the list: objects of a namespace that is created from now on are not in it.
            if entries and not await is_same(self._context.store, _PREFIX + name, uid):
                raise NotFound(f"namespace {name} is another one now")
            for entry in entries:
                try:
                    await self._deleter.delete(
                        info, name, entry.key[len(prefix) :], precondition(entry, propagation_policy="Background")
                    )
                except NotFound:
                    continue
                except ApiError as error:
                    remaining.failures.append(error.message)
            kept = (await self._context.store.list(prefix)).entries if entries else ()
            remaining.add(info, [encoding.decode_metadata(entry.value) for entry in kept])
        return remaining

    async def _report(self, name: str, uid: str, remaining: RemainingContent) -> None:
        """Write the remaining content into the namespace's conditions."""
        now = to_rfc3339(self._context.clock.now())

        def reported(live: Object) -> tuple[Object, bool]:
            status = dict(live.get("status") or {})
            status["conditions"] = remaining.to_conditions(status.get("conditions") or [], now)
            return {**live, "status": status}, False

        await self._change(name, uid, reported, "status")

    async def _change(self, name: str, uid: str, change: Change, subresource: str) -> None:
        """Change the namespace; NotFound when it is gone or another one has its name."""
        info = self._context.kinds.lookup(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)
        await self._writer.change(info, "", name, same_uid(uid, change), WriteOptions(), subresource=subresource)


def _finalizers(namespace: Object) -> list[str]:
    found: list[str] = (namespace.get("spec") or {}).get("finalizers") or []
    return found
