"""The Kubernetes API over a store, without HTTP and SQL: the facade for the server and the in-process client.

A verb takes a `KindInfo` (from `kinds`), plain objects and options, and returns object bytes ready to send. The
registry may change the objects that are passed in. Verbs raise ApiErrors only (`storeerrors.py`). Read `verbs/` for the
verbs, `semantics/strategies/` for the differences between kinds.

`run` keeps two kinds of loops. `caches` follow the store for the verbs: definitions, APIServices, admission, flow
control. `controllers` act on it: namespaces, garbage collection, removed definitions, expiry of Events. Of several
processes on one database all need the caches, and one runs the controllers.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from federation.apimachinery.clock import Clock
from federation.apimachinery.effect import EffectOf
from federation.apimachinery.entropy import Entropy, SystemEntropy
from federation.apimachinery.errors import MethodNotAllowed, not_served
from federation.apimachinery.resources import Object
from federation.apimachinery.tasks import Supervisor
from federation.apimachinery.webhooks import WebhookCaller
from federation.apiserver.admission.chain import Admission
from federation.apiserver.admission.defaultplugins import DefaultPlugins
from federation.apiserver.admission.namespacequota import NamespaceQuota
from federation.apiserver.admission.plugins import AdmissionPlugin
from federation.apiserver.registry.apiservices import APIServices
from federation.apiserver.registry.crdcontroller import CRDController
from federation.apiserver.registry.eventttl import EventExpiry
from federation.apiserver.registry.flowcontrolobjects import Configure, FlowControlObjects
from federation.apiserver.registry.gc import GarbageCollector
from federation.apiserver.registry.localapis import LocalAPIs
from federation.apiserver.registry.namespaces import NamespaceController
from federation.apiserver.registry.podcollector import PodCollector
from federation.apiserver.registry.serviceaddresses import ServiceAddresses
from federation.apiserver.registry.storageprotection import StorageProtection
from federation.apiserver.registry.storeerrors import translated, translated_batches
from federation.apiserver.registry.systempriorities import ensure_system_priorities
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import KindInfo, Kinds
from federation.apiserver.store.interface import Store
from federation.apiserver.verbs.context import Annotate, Authorize, CreationFinalizers, VerbContext
from federation.apiserver.verbs.deletes import Deleter
from federation.apiserver.verbs.patching import parse_patch
from federation.apiserver.verbs.preparation import WHOLE_OBJECTS
from federation.apiserver.verbs.reads import Reader
from federation.apiserver.verbs.requesteraccess import check_access
from federation.apiserver.verbs.requestoptions import (
    DeleteOptions,
    ListOptions,
    ListResult,
    RegistryOptions,
    WriteOptions,
)
from federation.apiserver.verbs.subresources import Subresources
from federation.apiserver.verbs.watches import WatchBatch, Watcher
from federation.apiserver.verbs.writes import Writer

Loops = Sequence[tuple[str, Callable[[], Awaitable[None]]]]


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
        context = VerbContext(store, self.kinds, clock, self.options, entropy or SystemEntropy(), webhooks)
        self.store = store
        self._context = context
        self._reader = Reader(context)
        self._watcher = Watcher(context)
        self._writer = Writer(context)
        self._deleter = Deleter(context, self._reader)
        self._subresources = Subresources(context, self._writer, self._deleter)
        self._crds = CRDController(context, self._writer, self._deleter)
        self.apis = APIServices(context)
        self._local_apis = LocalAPIs(context, self.apis, self._writer, self._deleter)
        self._admission = Admission(context, webhooks, self._writer)
        self._defaults = DefaultPlugins(context)
        self._quota = NamespaceQuota(context)
        self._service_addresses = ServiceAddresses(context)
        self._namespaces = NamespaceController(context, self._writer, self._deleter)
        self._flow_control = FlowControlObjects(context, self._writer)
        self._collector = GarbageCollector(context, self._writer, self._deleter)
        self._expiry = EventExpiry(context)
        self._storage = StorageProtection(context, self._writer)
        self._pods = PodCollector(context, self._deleter)
        self._clock = clock
        self.caches: Loops = (
            ("registry-definitions", self._crds.run),
            ("registry-apis", self.apis.run),
            ("registry-local-apis", self._local_apis.run),
            *((f"registry-{name}", loop) for name, loop in self._admission.loops().items()),
            *((f"registry-{name}", loop) for name, loop in self._defaults.loops().items()),
            *((f"registry-{name}", loop) for name, loop in self._quota.loops().items()),
            ("registry-addresses", self._service_addresses.run),
            ("registry-flow-control", self._flow_control.run),
        )
        self.controllers: Loops = (
            ("registry-namespaces", self._namespaces.run),
            ("registry-gc", self._collector.run),
            ("registry-cleanup", self._crds.run_cleanup),
            ("registry-events", self._expiry.run),
            ("registry-storage", self._storage.run),
            *((("registry-pods", self._pods.run),) if self.options.collects_pods else ()),
        )

    async def run(self, *, has_controllers: bool = True) -> None:
        """Run caches and controllers until cancelled, once the store is ready."""
        await self.start()
        supervisor = Supervisor(self._clock)
        for name, loop in (*self.caches, *(self.controllers if has_controllers else ())):
            supervisor.add(name, loop)
        await supervisor.run()

    async def start(self) -> None:
        """Load custom kinds and admission, and create the system namespaces. May be repeated.

        What does not depend on each other is read at the same time: such reads share their round trips to a database.
        """
        await self.store.ready()
        await asyncio.gather(
            self._crds.load(), self.apis.load(), self._admission.load(), self._defaults.load(), self._quota.load()
        )
        await asyncio.gather(
            self._namespaces.ensure_system_namespaces(),
            ensure_system_priorities(self._context, self._writer),
            self._flow_control.ensure(),
        )

    async def settle(self) -> None:
        """Create what the loops of a new registry create at once: the APIServices of its own group versions."""
        await self._local_apis.settle()

    def is_full(self, namespace: str) -> bool:
        """Return True if a namespace stores more bytes than it may: users add nothing, and neither do overrides."""
        return self._quota.is_full(namespace)

    def set_authorizer(self, authorize: Authorize) -> None:
        """Set the function behind `authorizer` in admission's CEL expressions."""
        self._context.authorize = authorize

    def check_access(
        self,
        info: KindInfo,
        verb: str,
        namespace: str,
        name: str,
        user: Mapping[str, Any],
        *,
        subresource: str = "",
    ) -> None:
        """Raise Forbidden unless the user (a UserInfo) has permission. The verbs do not check it; their callers do."""
        check_access(self._context, info, verb, namespace, name, user, subresource=subresource)

    def set_flow_control(self, configure: Configure) -> None:
        """Pass all flow control objects to `configure`, now and after every change."""
        self._flow_control.set_consumer(configure)

    def add_admission_plugin(self, plugin: AdmissionPlugin, *, beside_others: bool = False) -> None:
        """Call the plugin for users' writes of its resources; if `beside_others`, after plugins that they have."""
        self._admission.add_plugin(plugin, beside_others=beside_others)

    def set_annotator(self, annotate: Annotate) -> None:
        """Call the function for each object that a user writes, before admission; not for subresources."""
        self._context.annotate = annotate

    def set_effect(self, effect_of: EffectOf) -> None:
        """Ask the function which configurations act on this server, and which are data. Call it before `start`."""
        self._context.effect_of = effect_of

    def set_creation_finalizers(self, finalizers: CreationFinalizers, *, manager: str) -> None:
        """Add finalizers to new objects in the write that creates them, with `manager` as their field manager."""
        self._context.creation_finalizers, self._context.creation_finalizers_manager = finalizers, manager

    async def install_crds(self, manifests: Sequence[Object]) -> None:
        """Create CustomResourceDefinitions or update them to these manifests; they are served on return."""
        await self.start()
        await self._crds.install(manifests)

    @translated
    async def revision(self) -> int:
        """Return the newest committed revision; ServiceUnavailable when the store does not answer."""
        return await self.store.revision()

    @translated
    async def get(
        self, info: KindInfo, namespace: str, name: str, *, subresource: str = "", resource_version: str = ""
    ) -> bytes:
        """Return an object or its status or scale, not older than `resource_version`; NotFound, Timeout."""
        _check_verb(info, "get", subresource)
        if subresource == "scale":
            return await self._subresources.get_scale(info, namespace, name)
        return await self._reader.get(info, namespace, name, resource_version)

    @translated
    async def list(self, info: KindInfo, namespace: str, options: ListOptions) -> ListResult:
        """Return a page of a namespace's objects (of all namespaces for ""); BadRequest, Invalid, Expired."""
        _check_verb(info, "list", "")
        return await self._reader.list_page(info, namespace, options)

    @translated
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
        """Create an object and return it as stored, or handle a POST to a subresource of `name`."""
        _check_verb(info, "create", subresource)
        if subresource:
            return await self._subresources.create(info, namespace, name, subresource, obj, options)
        return await self._writer.create(info, namespace, obj, options)

    @translated
    async def update(
        self, info: KindInfo, namespace: str, name: str, obj: Object, options: WriteOptions, *, subresource: str = ""
    ) -> tuple[bytes, bool]:
        """Replace an object or a subresource; return its bytes and whether PUT created it."""
        _check_verb(info, "update", subresource)
        if subresource in WHOLE_OBJECTS:
            return await self._writer.update(info, namespace, name, obj, options, subresource=subresource)
        return await self._subresources.update(info, namespace, name, subresource, obj, options), False

    @translated
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
        parsed: Any = None,
    ) -> tuple[bytes, bool]:
        """Patch an object or a subresource; return its bytes and whether an apply created it.

        `parsed` is the value of `patch`, if the caller knows it.
        """
        _check_verb(info, "patch", subresource)
        change = parse_patch(info, patch_type, patch, options, subresource=subresource, parsed=parsed)
        if subresource in WHOLE_OBJECTS:
            return await self._writer.patch(info, namespace, name, change, options, subresource=subresource)
        return await self._subresources.patch(info, namespace, name, subresource, change, options), False

    @translated
    async def delete(self, info: KindInfo, namespace: str, name: str, options: DeleteOptions) -> tuple[bytes, bool]:
        """Delete an object; return its last state or a Status, and whether it is removed already."""
        _check_verb(info, "delete", "")
        return await self._deleter.delete(info, namespace, name, options)

    @translated
    async def delete_collection(
        self, info: KindInfo, namespace: str, list_options: ListOptions, options: DeleteOptions
    ) -> ListResult:
        """Delete the objects that a list with these options returns, and return that list."""
        _check_verb(info, "deletecollection", "")
        return await self._deleter.delete_collection(info, namespace, list_options, options)

    @property
    def has_admission(self) -> bool:
        """Whether a policy or webhook is configured."""
        return self._admission.is_active

    @translated
    async def admit_connection(
        self, info: KindInfo, namespace: str, name: str, wanted: Object, options: WriteOptions, *, subresource: str
    ) -> Object:
        """Return the options of a connection after admission; ApiError. The object may be in another cluster."""
        return await self._admission.admit_connection(info, namespace, name, wanted, options, subresource=subresource)

    @translated
    async def admit_posted(
        self, info: KindInfo, parent: Object, posted: Object, options: WriteOptions, *, subresource: str
    ) -> Object:
        """Return an object that is posted to a subresource and not stored, after admission; ApiError."""
        if not self._admission.is_active:
            return posted
        return await self._admission.admit_posted(info, parent, posted, options, subresource=subresource)

    def watch(self, info: KindInfo, namespace: str, options: ListOptions) -> AsyncGenerator[WatchBatch, None]:
        """Yield batches of ("ADDED"|"MODIFIED"|"DELETED"|"BOOKMARK", bytes); Expired when the start is too old."""
        _check_verb(info, "watch", "")
        return translated_batches(self._watcher.watch(info, namespace, options))


def _check_verb(info: KindInfo, verb: str, subresource: str) -> None:
    if subresource and subresource not in info.subresources:
        raise not_served()
    if not subresource and verb not in info.verbs:
        raise MethodNotAllowed(
            f'{verb} is not supported on resources of kind "{info.group_resource}"',
            details={"group": info.resource.group, "kind": info.resource.plural},
        )
