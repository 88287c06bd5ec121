"""Admission of one registry: which webhooks exist, and asking them about a write.

Configurations are kept compiled: a write of one takes effect before it is answered, those of other processes through a
watch. `is_active` is all that a write costs when there is none. Mutating webhooks are asked one after the other, in the
order of their configurations' names, and again when their turn came before another's change; validating ones together.
Writes without a user are the registry's own and are not asked about; nor are configurations of admission themselves,
so that a broken webhook can always be removed.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from federation.api.resources import Object
from federation.base.errors import InternalError
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.admission.requests import CREATE, DELETE, UPDATE, AdmissionRequest
from federation.registry.admission.webhooks import WebhookCaller, parse_webhooks
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.subresources import to_scale
from federation.store.interface import EventType

GROUP = "admissionregistration.k8s.io"
_NOT_ASKED = frozenset({"binding"})
_Compiled = TypeVar("_Compiled")


class Configurations(Generic[_Compiled]):
    """The stored objects of one kind of configuration, compiled, in the order of their names. A `Hook` of that kind."""

    def __init__(
        self, access: Access, plural: str, compiled: Callable[[Object], _Compiled], on_change: Callable[[], None]
    ) -> None:
        self._store = access.store
        self._prefix = f"/{GROUP}/{plural}/"
        self._compile = compiled
        self._on_change = on_change
        self._known: dict[str, tuple[str, int, _Compiled]] = {}
        self.items: tuple[_Compiled, ...] = ()
        access.hooks[self._prefix] = self

    async def load(self) -> int:
        """Take over what is stored and return the revision of that state."""
        page = await self._store.list(self._prefix)
        found = [encoding.decode(entry.value) for entry in page.entries]
        names = {obj["metadata"]["name"] for obj in found}
        self._known = {name: known for name, known in self._known.items() if name in names}
        for obj in found:
            self.written(obj)
        self._publish()
        return page.revision

    async def run(self) -> None:
        """Follow the stored objects until cancelled."""
        revision = await self.load()
        async for batch in self._store.watch(self._prefix, revision):
            for event in batch:
                obj = encoding.decode(event.value)
                if event.type is EventType.DELETED:
                    self.removed(obj)
                else:
                    self.written(obj)

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        """Nothing to complete."""

    def written(self, obj: Object) -> None:
        """Use the configuration from now on, unless a newer one is in use."""
        metadata = obj["metadata"]
        uid, generation = metadata["uid"], metadata.get("generation", 0)
        known = self._known.get(metadata["name"])
        if known is not None and known[0] == uid and known[1] >= generation:
            return
        self._known[metadata["name"]] = (uid, generation, self._compile(obj))
        self._publish()

    def removed(self, obj: Object) -> None:
        """Forget the configuration."""
        known = self._known.get(obj["metadata"]["name"])
        if known is not None and known[0] == obj["metadata"]["uid"]:
            del self._known[obj["metadata"]["name"]]
            self._publish()

    def _publish(self) -> None:
        self.items = tuple(compiled for _, (_, _, compiled) in sorted(self._known.items()))
        self._on_change()


class Admission:
    """The admission chain; `access.admission` of one registry."""

    def __init__(self, access: Access, caller: WebhookCaller | None) -> None:
        self.is_active = False
        self._access = access
        self._caller = caller
        self._mutating = Configurations(access, "mutatingwebhookconfigurations", parse_webhooks, self._changed)
        self._validating = Configurations(access, "validatingwebhookconfigurations", parse_webhooks, self._changed)
        access.admission = self

    async def load(self) -> None:
        """Take over the stored configurations."""
        await self._mutating.load()
        await self._validating.load()

    async def run(self) -> None:
        """Follow the stored configurations until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._mutating.run())
            group.create_task(self._validating.run())

    async def mutate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> Object:
        """Return the object as the mutating webhooks leave it; ApiError when one refuses it."""
        webhooks = [webhook for webhooks in self._mutating.items for webhook in webhooks]
        if not webhooks or subresource == "scale" or not self._is_asked(info, subresource, options.user):
            return obj
        request = await self._request(info, obj, old, options, subresource)
        changes = 0
        asked: dict[int, int] = {}
        for is_again in (False, True):
            for index, webhook in enumerate(webhooks):
                if is_again and not (webhook.is_reinvoked and asked.get(index, changes) < changes):
                    continue
                version = webhook.find_version(request)
                if not version:
                    continue
                patched = await webhook.ask(self._caller, request, version, options.warnings)
                if patched is not None and patched != request.obj:
                    request, changes = replace(request, obj=patched), changes + 1
                asked[index] = changes
        assert request.obj is not None
        return request.obj

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> None:
        """Ask the validating webhooks about what is going to be stored; ApiError when one refuses it."""
        if self._validating.items and self._is_asked(info, subresource, options.user):
            await self._validate(await self._request(info, obj, old, options, subresource), options.warnings)

    async def validate_delete(self, info: KindInfo, old: Object, options: DeleteOptions) -> None:
        """Ask about a deletion, mutating webhooks included, which cannot change anything; ApiError."""
        if not self._is_asked(info, "", options.user):
            return
        request = await self._request(info, None, old, options, "")
        for webhook in (webhook for webhooks in self._mutating.items for webhook in webhooks):
            if version := webhook.find_version(request):
                await webhook.ask(self._caller, request, version, options.warnings)
        await self._validate(request, options.warnings)

    async def _validate(self, request: AdmissionRequest, warnings: list[str]) -> None:
        webhooks = (webhook for webhooks in self._validating.items for webhook in webhooks)
        concerned = [(webhook, version) for webhook in webhooks if (version := webhook.find_version(request))]
        answers = await asyncio.gather(
            *(webhook.ask(self._caller, request, version, warnings) for webhook, version in concerned),
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    def _is_asked(self, info: KindInfo, subresource: str, user: object) -> bool:
        return user is not None and info.resource.group != GROUP and subresource not in _NOT_ASKED

    async def _request(
        self,
        info: KindInfo,
        obj: Object | None,
        old: Object | None,
        options: WriteOptions | DeleteOptions,
        subresource: str,
    ) -> AdmissionRequest:
        assert options.user is not None
        known = obj if obj is not None else old
        assert known is not None
        metadata = known["metadata"]
        own = info.resource.version
        others = (other.resource.version for other in self._access.kinds.all() if other.prefix == info.prefix)
        is_scale = subresource == "scale"
        return AdmissionRequest(
            uid=self._access.entropy.uid(),
            operation=DELETE if obj is None else CREATE if old is None else UPDATE,
            resource=info.resource,
            versions=(own, *(version for version in others if version != own)),
            subresource=subresource,
            namespace=metadata.get("namespace", "")
            if info.resource.namespaced
            else metadata.get("name", "")
            if info.prefix == "/core/namespaces/"
            else "",
            name=metadata.get("name", ""),
            user=options.user(),
            dry_run=options.dry_run,
            obj=to_scale(info, obj) if is_scale and obj is not None else obj,
            old=to_scale(info, old) if is_scale and old is not None else old,
            namespace_labels=await self._namespace_labels(info, known),
        )

    async def _namespace_labels(self, info: KindInfo, obj: Object) -> Mapping[str, str] | None:
        if info.prefix == "/core/namespaces/":
            labels: Mapping[str, str] = obj["metadata"].get("labels") or {}
            return labels
        if not info.resource.namespaced:
            return None
        entry = await self._access.store.get(f"/core/namespaces/{obj['metadata']['namespace']}")
        if entry is None:
            raise InternalError(f"Internal error occurred: namespace {obj['metadata']['namespace']} not found")
        found: dict[str, Any] = encoding.metadata_of(entry.value)
        return found.get("labels") or {}

    def _changed(self) -> None:
        self.is_active = bool(self._mutating.items or self._validating.items)
