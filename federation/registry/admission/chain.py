"""Admission of one registry: who is asked about a write, and in which order.

`is_active` is all that a write costs when nothing is configured. Mutating webhooks are asked one after the other, in
the order of their configurations' names, and again when their turn came before another's change; then policies in CEL
(`policychain.py`), then validating webhooks together. Writes without a user are the registry's own and are not asked
about; nor are webhooks about configurations of admission, so that a broken one can always be removed.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from federation.api.resources import Object
from federation.base.errors import InternalError
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.admission.configurations import Configurations
from federation.registry.admission.policychain import POLICY_KINDS, Loop, Policies
from federation.registry.admission.requests import CREATE, DELETE, UPDATE, AdmissionRequest
from federation.registry.admission.webhooks import Webhook, WebhookCaller, parse_webhooks
from federation.registry.cel.authorizer import answering
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.subresources import to_scale, with_replicas
from federation.registry.writes import Writer

_WEBHOOK_EXEMPT = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", *POLICY_KINDS})
"""Kinds that webhooks are not asked about, so that a broken one can always be removed."""
_SCALE = ("autoscaling", "v1", "Scale")
_Options = WriteOptions | DeleteOptions
_Found = tuple[Webhook, str]


class Admission:
    """The admission chain; `access.admission` of one registry."""

    def __init__(self, access: Access, caller: WebhookCaller | None, writer: Writer) -> None:
        self.is_active = False
        self._access = access
        self._caller = caller
        self._mutating = Configurations(access, "mutatingwebhookconfigurations", parse_webhooks, self._changed)
        self._validating = Configurations(access, "validatingwebhookconfigurations", parse_webhooks, self._changed)
        self._policies = Policies(access, writer, self._changed)
        access.admission = self

    async def load(self) -> None:
        """Take over the stored configurations."""
        await self._mutating.load()
        await self._validating.load()
        await self._policies.load()

    def loops(self) -> dict[str, Loop]:
        """Return what follows the stored configurations, by name; each runs until cancelled."""
        return {
            "mutating-webhooks": self._mutating.run,
            "validating-webhooks": self._validating.run,
            **self._policies.loops(),
        }

    async def mutate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> Object:
        """Return the object as the mutating webhooks leave it; ApiError when one refuses it."""
        if not self._mutating.items or options.user is None or info.resource.kind in _WEBHOOK_EXEMPT:
            return obj
        request = await self._request(info, obj, old, options, subresource)
        mutated = await self._mutate(request, options)
        if request.kind == _SCALE:
            replicas = (mutated.get("spec") or {}).get("replicas")
            return with_replicas(info, obj, replicas) if isinstance(replicas, int) else obj
        return mutated

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> None:
        """Ask policies and validating webhooks about what is going to be stored; ApiError when one refuses it."""
        if options.user is not None and (self._policies.items or self._validating.items):
            await self._validate(info, await self._request(info, obj, old, options, subresource), options)

    async def validate_delete(self, info: KindInfo, old: Object, options: DeleteOptions) -> None:
        """Ask about a deletion, mutating webhooks included, which cannot change anything; ApiError."""
        if options.user is None:
            return
        request = await self._request(info, None, old, options, "")
        if info.resource.kind not in _WEBHOOK_EXEMPT:
            for webhook in self._webhooks(self._mutating):
                if version := self._version_for(webhook, request):
                    await webhook.ask(self._caller, request, version, options)
        await self._validate(info, request, options)

    async def admit_posted(
        self, info: KindInfo, parent: Object, posted: Object, options: WriteOptions, *, subresource: str
    ) -> Object:
        """Ask about an object that is posted to a subresource, as a Binding is, and return it as webhooks leave it."""
        if options.user is None:
            return posted
        group, _, version = str(posted.get("apiVersion") or "").rpartition("/")
        request = await self._request(info, parent, None, options, subresource)
        request = replace(request, obj=posted, kind=(group, version, str(posted.get("kind") or "")))
        request = replace(request, obj=await self._mutate(request, options))
        await self._validate(info, request, options)
        assert request.obj is not None
        return request.obj

    async def _mutate(self, request: AdmissionRequest, options: _Options) -> Object:
        webhooks = self._webhooks(self._mutating)
        changes = 0
        asked: dict[int, int] = {}
        for is_again in (False, True):
            for index, webhook in enumerate(webhooks):
                if is_again and not (webhook.is_reinvoked and asked.get(index, changes) < changes):
                    continue
                version = self._version_for(webhook, request)
                if not version:
                    continue
                patched = await webhook.ask(self._caller, request, version, options)
                if patched is not None and patched != request.obj:
                    request, changes = replace(request, obj=patched), changes + 1
                asked[index] = changes
        assert request.obj is not None
        return request.obj

    async def _validate(self, info: KindInfo, request: AdmissionRequest, options: _Options) -> None:
        kind = info.resource.kind
        if self._policies.items and kind not in POLICY_KINDS:
            await self._policies.validate(info, request, options)
        if kind in _WEBHOOK_EXEMPT:
            return
        webhooks = self._webhooks(self._validating)
        concerned = [(webhook, version) for webhook in webhooks if (version := self._version_for(webhook, request))]
        answers = await asyncio.gather(
            *(webhook.ask(self._caller, request, version, options) for webhook, version in concerned),
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    def _webhooks(self, configurations: Configurations[tuple[Webhook, ...]]) -> list[Webhook]:
        return [webhook for webhooks in configurations.items for webhook in webhooks]

    def _version_for(self, webhook: Webhook, request: AdmissionRequest) -> str:
        decide = self._access.decide
        with answering(decide and partial(decide, request.user)):
            return webhook.find_version(request)

    async def _request(
        self, info: KindInfo, obj: Object | None, old: Object | None, options: _Options, subresource: str
    ) -> AdmissionRequest:
        assert options.user is not None
        known = obj if obj is not None else old
        assert known is not None
        metadata = known["metadata"]
        own = info.resource.version
        others = (other.resource.version for other in self._access.kinds.all() if other.prefix == info.prefix)
        is_scale = subresource == "scale"
        is_namespace = info.prefix == "/core/namespaces/"
        namespace = metadata.get("name" if is_namespace else "namespace", "")
        stored = b"" if is_namespace or not info.resource.namespaced else await self._namespace(namespace)
        return AdmissionRequest(
            uid=self._access.entropy.uid(),
            operation=DELETE if obj is None else CREATE if old is None else UPDATE,
            resource=info.resource,
            versions=(own, *(version for version in others if version != own)),
            subresource=subresource,
            namespace=namespace,
            name=metadata.get("name", ""),
            user=options.user(),
            dry_run=options.dry_run,
            obj=to_scale(info, obj) if is_scale and obj is not None else obj,
            old=to_scale(info, old) if is_scale and old is not None else old,
            namespace_labels=_namespace_labels(metadata if is_namespace else None, stored),
            namespace_object=stored,
            kind=_SCALE if is_scale else None,
        )

    async def _namespace(self, name: str) -> bytes:
        entry = await self._access.store.get(f"/core/namespaces/{name}")
        if entry is None:
            raise InternalError(f"Internal error occurred: namespace {name} not found")
        return entry.value

    def _changed(self) -> None:
        self.is_active = bool(self._mutating.items or self._validating.items or self._policies.items)


def _namespace_labels(own: Mapping[str, Any] | None, stored: bytes) -> Mapping[str, str] | None:
    metadata = own if own is not None else encoding.metadata_of(stored) if stored else None
    return None if metadata is None else metadata.get("labels") or {}
