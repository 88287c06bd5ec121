"""The life of a namespace: the ones that always exist, what each is born with, and emptying before it goes.

A terminating namespace is emptied kind by kind; objects with finalizers keep it until they let go. Only terminating
namespaces cost anything while they wait. Content that slipped in while a namespace ended is swept after its end.
"""

import asyncio

from federation.api.resources import NAMESPACES, Object
from federation.base.clock import to_rfc3339
from federation.base.errors import ApiError, NotFound
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.deletes import Deleter
from federation.registry.namespaceconditions import Remaining
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.strategies.core import NAMESPACE_FINALIZER
from federation.registry.writes import Writer
from federation.store.interface import EventType

_PREFIX = "/core/namespaces/"
_PAUSE_S_MAX = 2.0


class Namespaces:
    """The namespace controller of one registry."""

    def __init__(self, access: Access, writer: Writer, deleter: Deleter) -> None:
        self._access = access
        self._writer = writer
        self._deleter = deleter
        self._emptying: dict[str, asyncio.Task[None]] = {}

    async def ensure_system_namespaces(self) -> None:
        """Create the namespaces that always exist."""
        info = self._access.kinds.lookup(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)
        for name in self._access.options.system_namespaces:
            if await self._access.store.get(info.key("", name)) is None:
                await self._create(info.resource.plural, "", {"metadata": {"name": name}})

    async def run(self) -> None:
        """Serve every namespace until cancelled."""
        page = await self._access.store.list(_PREFIX)
        revision, found = page.revision, [encoding.decode(entry.value) for entry in page.entries]
        del page  # a loop that never ends must not hold on to old bytes
        try:
            while found:
                await self._serve(found.pop())
            async for batch in self._access.store.watch(_PREFIX, revision):
                for event in batch:
                    if event.type is EventType.DELETED:
                        await self._delete_content(event.key.removeprefix(_PREFIX))
                    else:
                        await self._serve(encoding.decode(event.value))
        finally:
            tasks = list(self._emptying.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, namespace: Object) -> None:
        name = namespace["metadata"]["name"]
        if not namespace["metadata"].get("deletionTimestamp"):
            await self._furnish(name)
        elif name not in self._emptying:
            task = asyncio.create_task(self._empty(name), name=f"empty namespace {name}")
            self._emptying[name] = task
            task.add_done_callback(lambda _: self._emptying.pop(name, None))

    async def _furnish(self, name: str) -> None:
        """Give a namespace its default ServiceAccount and, when there is one, the root certificate."""
        if await self._access.store.get(f"/core/serviceaccounts/{name}/default") is None:
            await self._create("serviceaccounts", name, {"metadata": {"name": "default"}})
        certificate = self._access.options.root_ca
        if certificate and await self._access.store.get(f"/core/configmaps/{name}/kube-root-ca.crt") is None:
            obj = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": certificate}}
            await self._create("configmaps", name, obj)

    async def _create(self, plural: str, namespace: str, obj: Object) -> None:
        info = self._access.kinds.lookup("", "v1", plural)
        try:
            await self._writer.create(info, namespace, obj, WriteOptions())
        except ApiError as error:
            # Another process was faster, or the namespace is on its way out: both are what we wanted.
            if error.code not in {403, 404, 409}:
                raise

    async def _empty(self, name: str) -> None:
        """Delete everything in the namespace until nothing is left, then let the namespace go."""
        pause_s = 0.02
        while (left := await self._delete_content(name)).is_waiting:
            await self._report(name, left)
            await self._access.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _PAUSE_S_MAX)
        info = self._access.kinds.lookup(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)

        def finalized(live: Object) -> tuple[Object, bool]:
            finalizers = (live.get("spec") or {}).get("finalizers") or []
            live["spec"] = {"finalizers": [entry for entry in finalizers if entry != NAMESPACE_FINALIZER]}
            return live, False

        try:
            entry = await self._access.store.get(info.key("", name))
            if entry is not None and len(_finalizers(encoding.decode(entry.value))) > 1:
                await self._report(name, left)  # it stays for somebody else, and says that it is empty
            await self._writer.change(info, "", name, finalized, WriteOptions(), subresource="finalize")
        except NotFound:
            return

    async def _delete_content(self, name: str) -> Remaining:
        """Delete what a namespace holds and return what is still there, and why."""
        left = Remaining()
        for info in self._access.kinds.stored():
            if not info.resource.namespaced or "delete" not in info.verbs:
                continue
            prefix = info.collection(name)
            entries = (await self._access.store.list(prefix)).entries
            for entry in entries:
                try:
                    await self._deleter.delete(
                        info, name, entry.key[len(prefix) :], DeleteOptions(propagation_policy="Background")
                    )
                except NotFound:
                    continue
                except ApiError as error:
                    left.failures.append(error.message)
            kept = (await self._access.store.list(prefix)).entries if entries else ()
            left.add(info, [encoding.metadata_of(entry.value) for entry in kept])
        return left

    async def _report(self, name: str, left: Remaining) -> None:
        """Say in the namespace's conditions what it waits for."""
        info = self._access.kinds.lookup(NAMESPACES.group, NAMESPACES.version, NAMESPACES.plural)
        now = to_rfc3339(self._access.clock.now())

        def reported(live: Object) -> tuple[Object, bool]:
            status = dict(live.get("status") or {})
            status["conditions"] = left.to_conditions(status.get("conditions") or [], now)
            return {**live, "status": status}, False

        try:
            await self._writer.change(info, "", name, reported, WriteOptions(), subresource="status")
        except NotFound:
            return


def _finalizers(namespace: Object) -> list[str]:
    found: list[str] = (namespace.get("spec") or {}).get("finalizers") or []
    return found
