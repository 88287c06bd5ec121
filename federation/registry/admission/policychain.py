"""The admission policies of one registry: which concern a request, their parameters, and what their verdict leads to.

A policy without a binding does nothing. Of all denials the first is what the user reads, in the order of the policies'
and bindings' names; warnings and audit annotations go with the request. A loop writes each policy's status: the
generation that is in force, and what type checking found. `policies.py` evaluates.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import orjson

from federation.api.resources import Object
from federation.base.errors import ApiError, Conflict, NotFound
from federation.registry.access import Access, details
from federation.registry.admission.configurations import GROUP, Configurations
from federation.registry.admission.environment import Facts
from federation.registry.admission.params import ParamsError, collect, param_info
from federation.registry.admission.policies import (
    Budget,
    Failure,
    Judgement,
    Policy,
    PolicyBinding,
    judge,
    parse_binding,
    parse_policy,
)
from federation.registry.admission.requests import AdmissionRequest
from federation.registry.admission.typechecking import type_check
from federation.registry.cel.authorizer import answering
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.writes import Writer

Loop = Callable[[], Awaitable[None]]
POLICY_KINDS = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
_FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"
_Found = tuple[Policy, PolicyBinding | None, Failure]


class Policies:
    """Policies and bindings of one registry; `items` are the policies that have bindings."""

    def __init__(self, access: Access, writer: Writer, on_change: Callable[[], None]) -> None:
        self.items: tuple[tuple[Policy, tuple[PolicyBinding, ...]], ...] = ()
        self._access = access
        self._writer = writer
        self._on_change = on_change
        self._unchecked: set[str] = set()
        self._has_unchecked = asyncio.Event()
        self._policies = Configurations(access, "validatingadmissionpolicies", self._compile, self._changed)
        self._bindings = Configurations(access, "validatingadmissionpolicybindings", parse_binding, self._changed)

    async def load(self) -> None:
        """Take over what is stored."""
        await self._policies.load()
        await self._bindings.load()

    def loops(self) -> dict[str, Loop]:
        """Return what follows the stored objects and keeps the policies' status, by name; each runs until cancelled."""
        return {
            "admission-policies": self._policies.run,
            "admission-policy-bindings": self._bindings.run,
            "admission-policy-status": self._report,
        }

    async def validate(self, info: KindInfo, request: AdmissionRequest, options: WriteOptions | DeleteOptions) -> None:
        """Let every policy that concerns the request have its say; ApiError when one denies it."""
        denials: list[_Found] = []
        for policy, bindings in self.items:
            version = policy.constraints.find_version(request)
            if not version:
                continue
            denials += await self._ask(policy, bindings, request, version, options)
        if denials:
            raise _denied(info, request, *denials[0])

    async def _ask(
        self,
        policy: Policy,
        bindings: tuple[PolicyBinding, ...],
        request: AdmissionRequest,
        version: str,
        options: WriteOptions | DeleteOptions,
    ) -> list[_Found]:
        try:
            params = param_info(self._access, policy)
        except ParamsError as error:
            return _misconfigured(policy, None, error)
        denials: list[_Found] = []
        facts: Facts | None = None
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            if not binding.resources.find_version(request):
                continue
            try:
                found = await collect(self._access, params, binding.param_ref, request.namespace)
            except ParamsError as error:
                denials += _misconfigured(policy, binding, error)
                continue
            facts = facts or Facts(request, version)
            for param in found:
                judgement = self._judge(policy, request, facts, param)
                for failure in judgement.failures:
                    if _act(policy, binding, failure, options):
                        denials.append((policy, binding, failure))
                for key, text in judgement.annotations.items():
                    if text not in annotations.setdefault(key, []):
                        annotations[key].append(text)
        for key, texts in annotations.items():
            options.audit_annotations[f"{policy.name}/{key}"] = ", ".join(texts)
        return denials

    def _judge(self, policy: Policy, request: AdmissionRequest, facts: Facts, param: Object | None) -> Judgement:
        access = self._access
        budget = Budget(access.clock.monotonic, access.options.admission_expressions_s_max)
        with answering(access.decide and partial(access.decide, request.user)):
            return judge(policy, facts.with_params(param), budget)

    def _compile(self, obj: Object) -> Policy:
        self._unchecked.add(obj["metadata"]["name"])
        self._has_unchecked.set()
        return parse_policy(obj)

    def _changed(self) -> None:
        pairs = (
            (policy, tuple(binding for binding in self._bindings.items if binding.policy == policy.name))
            for policy in self._policies.items
        )
        self.items = tuple((policy, bindings) for policy, bindings in pairs if bindings)
        self._on_change()

    async def _report(self) -> None:
        """Write the status of every policy whose specification changed."""
        while True:
            await self._has_unchecked.wait()
            self._has_unchecked.clear()
            while self._unchecked:
                name = next(iter(self._unchecked))
                await self._write_status(name)
                self._unchecked.discard(name)

    async def _write_status(self, name: str) -> None:
        info = self._access.kinds.lookup(GROUP, "v1", "validatingadmissionpolicies")

        def checked(live: Object) -> tuple[Object, bool]:
            generation = live["metadata"].get("generation", 1)
            status = live.get("status") or {}
            if status.get("observedGeneration") == generation:
                return live, False
            warnings = type_check(live, self._access.kinds)
            type_checking = {"expressionWarnings": warnings} if warnings else {}
            return {**live, "status": {"observedGeneration": generation, "typeChecking": type_checking}}, False

        try:
            await self._writer.change(info, "", name, checked, WriteOptions(), subresource="status")
        except (NotFound, Conflict):
            return


def _act(policy: Policy, binding: PolicyBinding, failure: Failure, options: WriteOptions | DeleteOptions) -> bool:
    """Do what the binding wants about a failure; True when it is a denial."""
    if "Warn" in binding.actions and not failure.is_final:
        options.warnings.append(
            f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}':"
            f" {failure.message}"
        )
    if "Audit" in binding.actions and not failure.is_final:
        entry = {
            "message": failure.message,
            "policy": policy.name,
            "binding": binding.name,
            "expressionIndex": failure.index,
            "validationActions": list(binding.actions),
        }
        options.audit_annotations[_FAILURE_KEY] = orjson.dumps([entry]).decode()
    return failure.is_final or "Deny" in binding.actions


def _misconfigured(policy: Policy, binding: PolicyBinding | None, error: ParamsError) -> list[_Found]:
    if not policy.fails_closed:
        return []
    what = "policy" if binding is None else "binding"
    return [(policy, binding, Failure(0, f"failed to configure {what}: {error}"))]


def _denied(
    info: KindInfo, request: AdmissionRequest, policy: Policy, binding: PolicyBinding | None, failure: Failure
) -> ApiError:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    text = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {failure.message}"
    known = request.obj or request.old or {}
    metadata = known.get("metadata") or {}
    name = request.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return ApiError(
        f'{info.group_resource} "{name}" is forbidden: {text}',
        details={**details(info, name), "causes": [{"message": text}]},
        code=failure.code,
        reason=failure.reason or "Invalid",
    )
