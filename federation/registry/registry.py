"""Kubernetes semantics over a store, without HTTP and without SQL: the one door for the server and the local client.

A verb takes a `KindInfo` (from `kinds`), plain objects and options, and returns object bytes ready to send. Objects
that are passed in belong to the registry from the call on. `run` keeps the background loops: namespace life cycle,
owner-reference garbage collection, CustomResourceDefinitions, Event expiry. Read `writes.py`, `reads.py`,
`watches.py` and `deletes.py` for the verbs, `strategies/` for what differs by kind.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from federation.api.resources import Object
from federation.base.clock import Clock
from federation.base.errors import MethodNotAllowed, NotFound, ServiceUnavailable, StoreError
from federation.base.tasks import Supervisor
from federation.registry.access import Access, Decide, FirstFinalizers
from federation.registry.addresses import ServiceAddresses
from federation.registry.admission.chain import Admission
from federation.registry.admission.webhooks import WebhookCaller
from federation.registry.builtin import builtin_kinds
from federation.registry.definitions import Definitions
from federation.registry.deletes import Deleter
from federation.registry.entropy import Entropy, SystemEntropy
from federation.registry.eventttl import EventExpiry
from federation.registry.gc import GarbageCollector
from federation.registry.kinds import KindInfo, Kinds
from federation.registry.namespaces import Namespaces
from federation.registry.options import DeleteOptions, ListOptions, ListResult, RegistryOptions, WriteOptions
from federation.registry.patching import parse_patch
from federation.registry.reads import Reader
from federation.registry.subresources import Subresources
from federation.registry.watches import WatchBatch, Watcher
from federation.registry.writes import Writer
from federation.store.interface import Store

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer")


def _answering(verb: Callable[_Parameters, Awaitable[_Answer]]) -> Callable[_Parameters, Awaitable[_Answer]]:
    """Translate what the store could not do into the 503 that a Kubernetes client retries."""

    @wraps(verb)
    async def answering(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Answer:
        try:
            return await verb(*args, **kwargs)
        except StoreError as error:
            raise ServiceUnavailable(f"the store does not answer: {error}") from error

    return answering


class Registry:
    """All served kinds over one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        options: RegistryOptions | None = None,
        entropy: Entropy | None = None,
        webhooks: WebhookCaller | None = None,
    ) -> None:
        self.kinds = Kinds(builtin_kinds())
        self.options = options or RegistryOptions()
        access = Access(store, self.kinds, clock, self.options, entropy or SystemEntropy(), webhooks)
        self.store = store
        self._access = access
        self._reader = Reader(access)
        self._watcher = Watcher(access)
        self._writer = Writer(access)
        self._deleter = Deleter(access, self._reader)
        self._subresources = Subresources(access, self._writer, self._deleter)
        self._definitions = Definitions(access, self._writer, self._deleter)
        self._admission = Admission(access, webhooks, self._writer)
        self._addresses = ServiceAddresses(access)
        self._namespaces = Namespaces(access, self._writer, self._deleter)
        self._collector = GarbageCollector(access, self._writer, self._deleter)
        self._expiry = EventExpiry(access)
        self._supervisor = Supervisor(clock)
        for name, loop in (
            ("registry-definitions", self._definitions.run),
            *((f"registry-{name}", loop) for name, loop in self._admission.loops().items()),
            ("registry-namespaces", self._namespaces.run),
            ("registry-addresses", self._addresses.run),
            ("registry-gc", self._collector.run),
            ("registry-events", self._expiry.run),
        ):
            self._supervisor.add(name, loop)

    async def run(self) -> None:
        """Run the background loops until cancelled; starts when the store is ready."""
        await self.start()
        await self._supervisor.run()

    async def start(self) -> None:
        """Load what the first request needs: custom kinds, admission, the system namespaces. May be repeated."""
        await self.store.ready()
        await self._definitions.load()
        await self._admission.load()
        await self._namespaces.ensure_system_namespaces()

    def decide_with(self, decide: Decide) -> None:
        """Let `decide` answer what expressions of admission ask about permissions (`authorizer`)."""
        self._access.decide = decide

    def hold_with(self, first_finalizers: FirstFinalizers) -> None:
        """Put these finalizers on new objects, in the write that creates them, as a mutating webhook would."""
        self._access.first_finalizers = first_finalizers

    async def install_crds(self, manifests: Sequence[Object]) -> None:
        """Create the CustomResourceDefinitions, or bring existing ones to these manifests; served on return."""
        await self.start()
        await self._definitions.install(manifests)

    @_answering
    async def get(
        self, info: KindInfo, namespace: str, name: str, *, subresource: str = "", resource_version: str = ""
    ) -> bytes:
        """Return an object or its subresource (status, scale), not older than `resource_version`; NotFound, Timeout."""
        _check_verb(info, "get", subresource)
        if subresource == "scale":
            return await self._subresources.get_scale(info, namespace, name)
        return await self._reader.get(info, namespace, name, resource_version)

    @_answering
    async def list(self, info: KindInfo, namespace: str, options: ListOptions) -> ListResult:
        """Return a page of a namespace's objects, of all namespaces when it is "". BadRequest, Expired."""
        _check_verb(info, "list", "")
        return await self._reader.list_page(info, namespace, options)

    @_answering
    async def create(
        self,
        info: KindInfo,
        namespace: str,
        obj: Object,
        options: WriteOptions,
        *,
        name: str = "",
        subresource: str = "",
    ) -> bytes:
        """Create an object (or do what POST to `name`/`subresource` means) and return it as stored."""
        _check_verb(info, "create", subresource)
        if subresource:
            return await self._subresources.create(info, namespace, name, subresource, obj, options)
        return await self._writer.create(info, namespace, obj, options)

    @_answering
    async def update(
        self, info: KindInfo, namespace: str, name: str, obj: Object, options: WriteOptions, *, subresource: str = ""
    ) -> tuple[bytes, bool]:
        """Replace an object or a subresource of it; the bytes, and whether PUT created it."""
        _check_verb(info, "update", subresource)
        if subresource in {"", "status"}:
            return await self._writer.update(info, namespace, name, obj, options, subresource=subresource)
        return await self._subresources.update(info, namespace, name, subresource, obj, options), False

    @_answering
    async def patch(
        self,
        info: KindInfo,
        namespace: str,
        name: str,
        patch_type: str,
        patch: bytes,
        options: WriteOptions,
        *,
        subresource: str = "",
    ) -> tuple[bytes, bool]:
        """Patch an object or a subresource of it; the bytes, and whether an apply created it."""
        _check_verb(info, "patch", subresource)
        parsed = parse_patch(info, patch_type, patch, options)
        if subresource in {"", "status"}:
            return await self._writer.patch(info, namespace, name, parsed, options, subresource=subresource)
        return await self._subresources.patch(info, namespace, name, subresource, parsed, options), False

    @_answering
    async def delete(self, info: KindInfo, namespace: str, name: str, options: DeleteOptions) -> tuple[bytes, bool]:
        """Delete an object: its last state or a Status, and whether it is gone already."""
        _check_verb(info, "delete", "")
        return await self._deleter.delete(info, namespace, name, options)

    @_answering
    async def delete_collection(
        self, info: KindInfo, namespace: str, list_options: ListOptions, options: DeleteOptions
    ) -> ListResult:
        """Delete what a list with these options returns, and return it."""
        _check_verb(info, "deletecollection", "")
        return await self._deleter.delete_collection(info, namespace, list_options, options)

    def watch(self, info: KindInfo, namespace: str, options: ListOptions) -> AsyncIterator[WatchBatch]:
        """Yield batches of ("ADDED"|"MODIFIED"|"DELETED"|"BOOKMARK", bytes); Expired when the start is too old."""
        _check_verb(info, "watch", "")
        return self._watcher.watch(info, namespace, options)


def _check_verb(info: KindInfo, verb: str, subresource: str) -> None:
    if subresource and subresource not in info.subresources:
        raise NotFound("the server could not find the requested resource")
    if not subresource and verb not in info.verbs:
        raise MethodNotAllowed(
            f'{verb} is not supported on resources of kind "{info.group_resource}"',
            details={"group": info.resource.group, "kind": info.resource.plural},
        )
