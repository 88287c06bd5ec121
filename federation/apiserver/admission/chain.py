"""The admission chain of one registry: plugins, mutating policies and webhooks, validating policies and webhooks.

A write without configured admission only reads `is_active`, and `guarded` if a user makes it. Plugins (`plugins.py`)
come first, and validate again what webhooks made of the object. Mutating policies (`mutatingpolicies.py`) and then
mutating webhooks run in sequence, in the order of their names, and a second time when the object was changed after they
ran (`reinvocationPolicy`). Then come the validating policies (`validatingpolicies.py`) and all validating webhooks in
parallel. Writes without a user are the registry's own and skip admission.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from federation.apimachinery.errors import InternalError
from federation.apimachinery.resources import Object
from federation.apimachinery.webhooks import WebhookCaller
from federation.apimachinery.wellknown import NAMESPACE_NAME_LABEL
from federation.apiserver.admission.boundpolicies import POLICY_KINDS, Loop
from federation.apiserver.admission.certificates import CertificateRequests
from federation.apiserver.admission.configurations import CompiledConfigurations
from federation.apiserver.admission.limitranges import LimitRanges
from federation.apiserver.admission.mutatingpolicies import Key, MutatingPolicies
from federation.apiserver.admission.mutations import PatchBudget
from federation.apiserver.admission.paramaccess import ParamAccess
from federation.apiserver.admission.plugins import AdmissionPlugin, DeletionProtection, PluginPair
from federation.apiserver.admission.requests import CONNECT, CREATE, DELETE, UPDATE, AdmissionRequest
from federation.apiserver.admission.resourceclaims import ResourceClaims
from federation.apiserver.admission.validatingpolicies import ValidatingPolicies
from federation.apiserver.admission.webhooks import Webhook, parse_webhooks
from federation.apiserver.semantics.cel.authorizer import AccessDecision, Decide, authorize_with
from federation.apiserver.semantics.conversion.autoscalerconversion import AutoscalerConverter
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions, own_user
from federation.apiserver.verbs.subresources import to_scale, with_replicas
from federation.apiserver.verbs.writes import Writer

_WEBHOOK_EXEMPT = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", *POLICY_KINDS})
"""Kinds that skip webhooks, so that a broken webhook can always be removed."""
_SCALE = ("autoscaling", "v1", "Scale")
_Options = WriteOptions | DeleteOptions


class Admission:
    """The `AdmissionChain` of one registry."""

    def __init__(self, context: VerbContext, caller: WebhookCaller | None, writer: Writer) -> None:
        self.is_active = False
        self.guarded: dict[str, AdmissionPlugin] = {}
        self._context = context
        self._caller = caller
        self._mutating = CompiledConfigurations(context, "mutatingwebhookconfigurations", parse_webhooks, self._changed)
        self._validating = CompiledConfigurations(
            context, "validatingwebhookconfigurations", parse_webhooks, self._changed
        )
        self._mutating_policies = MutatingPolicies(context, self._changed)
        self._policies = ValidatingPolicies(context, writer, self._changed)
        self._limit_ranges = LimitRanges(context, self._limits_changed)
        self.add_plugin(CertificateRequests())
        self.add_plugin(ResourceClaims())
        self.add_plugin(ParamAccess(context))
        context.admission = self

    def add_plugin(self, plugin: AdmissionPlugin, *, beside_others: bool = False) -> None:
        """Call the plugin for writes of its resources from now on.

        One plugin owns a resource, unless it is added beside those that are there; it is called after them.
        """
        if isinstance(plugin, DeletionProtection):
            self._context.protections |= dict.fromkeys(plugin.resources, plugin.deletion_problem)
        if beside_others:
            for name in plugin.resources:
                present = self.guarded.get(name)
                self.guarded[name] = plugin if present is None else PluginPair(present, plugin)
            return
        others = [name for name in plugin.resources if type(self.guarded.get(name, plugin)) is not type(plugin)]
        assert not others, f"another plugin has {others}: put it inside this one"
        self.guarded |= dict.fromkeys(plugin.resources, plugin)

    async def load(self) -> None:
        """Load the stored configurations."""
        kinds = (self._mutating, self._validating, self._mutating_policies, self._policies, self._limit_ranges)
        await asyncio.gather(*(kind.load() for kind in kinds))

    def loops(self) -> dict[str, Loop]:
        """Return the background loops by name; each runs until cancelled."""
        return {
            "mutating-webhooks": self._mutating.run,
            "validating-webhooks": self._validating.run,
            "limit-ranges": self._limit_ranges.run,
            **self._mutating_policies.loops(),
            **self._policies.loops(),
        }

    async def mutate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> Object:
        """Return the object after mutating policies and webhooks; ApiError when one denies it."""
        if (plugin := self._plugin_for(info, options)) is not None:
            request = await self._build_request(info, obj, old, options, subresource)
            obj = _unscaled(info, obj, request, plugin.mutate(request))
        if options.user is None or not (self._mutating_policies.is_active or self._mutating.items):
            return obj
        request = await self._build_request(info, obj, old, options, subresource)
        return _unscaled(info, obj, request, await self._mutate(info, request, options))

    async def validate(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, *, subresource: str = ""
    ) -> None:
        """Run plugins, policies and validating webhooks on the object to store; ApiError when one denies it."""
        if (plugin := self._plugin_for(info, options)) is not None:
            request = await self._build_request(info, obj, old, options, subresource)
            await plugin.validate(request, self._access_of(request.user))
        if options.user is not None and (self._policies.is_active or self._validating.items):
            await self._validate(info, await self._build_request(info, obj, old, options, subresource), options)

    async def validate_delete(self, info: KindInfo, old: Object, options: DeleteOptions) -> None:
        """Run all webhooks and policies on a deletion, which mutating webhooks cannot change; ApiError."""
        if options.user is None:
            return
        request = await self._build_request(info, None, old, options, "")
        if info.resource.kind not in _WEBHOOK_EXEMPT:
            for webhook in self._webhooks(self._mutating):
                if version := self._version_for(webhook, request):
                    await webhook.call(self._caller, request, version, options)
        await self._validate(info, request, options)

    async def admit_connection(
        self, info: KindInfo, namespace: str, name: str, wanted: Object, options: WriteOptions, *, subresource: str
    ) -> Object:
        """Return the options of a connection to an object, which may be in another cluster; ApiError."""
        parent = {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}}
        return await self.admit_posted(info, parent, wanted, options, subresource=subresource, operation=CONNECT)

    async def admit_posted(
        self,
        info: KindInfo,
        parent: Object,
        posted: Object,
        options: WriteOptions,
        *,
        subresource: str,
        operation: str = CREATE,
    ) -> Object:
        """Return an object posted to a subresource, for example a Binding, after admission; ApiError."""
        if options.user is None:
            return posted
        group, _, version = str(posted.get("apiVersion") or "").rpartition("/")
        is_elsewhere = operation == CONNECT
        request = await self._build_request(info, parent, None, options, subresource, is_elsewhere=is_elsewhere)
        kind = (group, version, str(posted.get("kind") or ""))
        request = replace(request, operation=operation, obj=posted, kind=kind)
        request = replace(request, obj=await self._mutate(info, request, options))
        await self._validate(info, request, options)
        assert request.obj is not None
        return request.obj

    def _plugin_for(self, info: KindInfo, options: WriteOptions) -> AdmissionPlugin | None:
        if not self.guarded or options.user is None or options.user is own_user:
            return None
        return self.guarded.get(info.group_resource)

    def _access_of(self, user: Mapping[str, Any]) -> Decide:
        authorize = self._context.authorize
        # Without an authorizer no permission is granted.
        return partial(authorize, user) if authorize is not None else lambda _: AccessDecision(is_allowed=False)

    async def _mutate(self, info: KindInfo, request: AdmissionRequest, options: _Options) -> Object:
        kind = info.resource.kind
        webhooks = [] if kind in _WEBHOOK_EXEMPT else self._webhooks(self._mutating)
        has_policies = self._mutating_policies.is_active and kind not in POLICY_KINDS
        budget = PatchBudget()
        # What has reinvocationPolicy IfNeeded runs once more if the object changed after it ran.
        changes = 0
        changes_at_call: dict[int, int] = {}
        reinvoked: set[Key] | None = None
        for is_reinvocation in (False, True):
            if has_policies and (not is_reinvocation or (reinvoked and changes)):
                done = await self._mutating_policies.mutate(info, request, budget, reinvoked)
                changes += done.has_patched if not is_reinvocation else done.request.obj != request.obj
                request, reinvoked = done.request, done.reinvoked
            for index, webhook in enumerate(webhooks):
                if is_reinvocation and not (webhook.is_reinvoked and changes_at_call.get(index, changes) < changes):
                    continue
                version = self._version_for(webhook, request)
                if not version:
                    continue
                patched = await webhook.call(self._caller, request, version, options)
                if patched is not None and patched != request.obj:
                    request, changes = replace(request, obj=patched), changes + 1
                changes_at_call[index] = changes
        assert request.obj is not None
        return request.obj

    async def _validate(self, info: KindInfo, request: AdmissionRequest, options: _Options) -> None:
        kind = info.resource.kind
        if self._policies.is_active and kind not in POLICY_KINDS:
            await self._policies.validate(info, request, options)
        if kind in _WEBHOOK_EXEMPT:
            return
        webhooks = self._webhooks(self._validating)
        matching = [(webhook, version) for webhook in webhooks if (version := self._version_for(webhook, request))]
        # All calls finish before the first denial is raised, so that every webhook's warnings are collected.
        results = await asyncio.gather(
            *(webhook.call(self._caller, request, version, options) for webhook, version in matching),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def _webhooks(self, configurations: CompiledConfigurations[tuple[Webhook, ...]]) -> list[Webhook]:
        return [webhook for webhooks in configurations.items for webhook in webhooks]

    def _version_for(self, webhook: Webhook, request: AdmissionRequest) -> str:
        authorize = self._context.authorize
        with authorize_with(authorize and partial(authorize, request.user)):
            return webhook.find_version(request)

    async def _build_request(
        self,
        info: KindInfo,
        obj: Object | None,
        old: Object | None,
        options: _Options,
        subresource: str,
        *,
        is_elsewhere: bool = False,
    ) -> AdmissionRequest:
        assert options.user is not None
        known = obj if obj is not None else old
        assert known is not None
        metadata = known["metadata"]
        own = info.resource.version
        same = self._context.kinds.versions_of(info.prefix)
        others = (other.resource.version for other in same)
        is_scale = subresource == "scale"
        is_namespace = info.prefix == "/core/namespaces/"
        namespace = metadata.get("name" if is_namespace else "namespace", "")
        stored = b"" if is_namespace or not info.resource.namespaced else await self._namespace(namespace, is_elsewhere)
        return AdmissionRequest(
            uid=self._context.entropy.uid(),
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
            warnings=options.warnings,
            convert=next(
                (found.convert for one in same if isinstance(found := one.conversion, AutoscalerConverter)), None
            ),
        )

    async def _namespace(self, name: str, is_elsewhere: bool) -> bytes:
        entry = await self._context.store.get(f"/core/namespaces/{name}")
        if entry is None and is_elsewhere:  # with the one label that every namespace has
            return orjson.dumps({"metadata": {"name": name, "labels": {NAMESPACE_NAME_LABEL: name}}})
        if entry is None:
            raise InternalError(f"Internal error occurred: namespace {name} not found")
        return entry.value

    def _limits_changed(self, exist: bool) -> None:
        """Let writes of limited resources pass the chain only while there are limits."""
        if exist:
            self.add_plugin(self._limit_ranges)
        else:
            self.guarded = {name: plugin for name, plugin in self.guarded.items() if plugin is not self._limit_ranges}

    def _changed(self) -> None:
        policies = self._mutating_policies.is_active or self._policies.is_active
        self.is_active = bool(policies or self._mutating.items or self._validating.items)


def _unscaled(info: KindInfo, obj: Object, request: AdmissionRequest, mutated: Object) -> Object:
    """Return the object to write; after admission of a Scale, the scaled object with the Scale's replicas."""
    if request.kind != _SCALE:
        return mutated
    replicas = (mutated.get("spec") or {}).get("replicas")
    return with_replicas(info, obj, replicas) if isinstance(replicas, int) else obj


def _namespace_labels(own: Mapping[str, Any] | None, stored: bytes) -> Mapping[str, str] | None:
    metadata = own if own is not None else encoding.decode_metadata(stored) if stored else None
    return None if metadata is None else metadata.get("labels") or {}
