"""The admission policies of one registry: matching, parameters, and the actions on failures.

A policy without a binding has no effect. The response carries the first denial in the order of the policies' and
bindings' names; warnings and audit annotations are added to the request. A loop writes each policy's status: the
observed generation and the type-checking warnings. `policies.py` evaluates expressions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import orjson

from federation.apimachinery.errors import ApiError, Conflict, NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.admission.configurations import GROUP, CompiledConfigurations
from federation.apiserver.admission.environment import Activation
from federation.apiserver.admission.params import ParamsError, collect_params, param_info
from federation.apiserver.admission.policies import (
    Failure,
    Policy,
    PolicyBinding,
    PolicyResult,
    TimeBudget,
    evaluate_policy,
    parse_binding,
    parse_policy,
)
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.admission.typechecking import type_check
from federation.apiserver.semantics.cel.authorizer import authorize_with
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.context import VerbContext, status_details
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions
from federation.apiserver.verbs.writes import Writer

Loop = Callable[[], Awaitable[None]]
POLICY_KINDS = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
_FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"
_Found = tuple[Policy, PolicyBinding | None, Failure]


class PolicyChain:
    """Policies and bindings of one registry; `items` are the policies that have bindings."""

    def __init__(self, context: VerbContext, writer: Writer, on_change: Callable[[], None]) -> None:
        self.items: tuple[tuple[Policy, tuple[PolicyBinding, ...]], ...] = ()
        self._context = context
        self._writer = writer
        self._on_change = on_change
        self._unchecked: set[str] = set()
        self._has_unchecked = asyncio.Event()
        self._policies = CompiledConfigurations(context, "validatingadmissionpolicies", self._compile, self._changed)
        self._bindings = CompiledConfigurations(
            context, "validatingadmissionpolicybindings", parse_binding, self._changed
        )

    async def load(self) -> None:
        """Load the stored policies and bindings."""
        await self._policies.load()
        await self._bindings.load()

    def loops(self) -> dict[str, Loop]:
        """Return the background loops by name; each runs until cancelled."""
        return {
            "admission-policies": self._policies.run,
            "admission-policy-bindings": self._bindings.run,
            "admission-policy-status": self._run_status,
        }

    async def validate(self, info: KindInfo, request: AdmissionRequest, options: WriteOptions | DeleteOptions) -> None:
        """Evaluate every policy that matches the request; ApiError when one denies it."""
        denials: list[_Found] = []
        for policy, bindings in self.items:
            version = policy.constraints.find_version(request)
            if not version:
                continue
            denials += await self._validate_policy(policy, bindings, request, version, options)
        if denials:
            raise _denied(info, request, *denials[0])

    async def _validate_policy(
        self,
        policy: Policy,
        bindings: tuple[PolicyBinding, ...],
        request: AdmissionRequest,
        version: str,
        options: WriteOptions | DeleteOptions,
    ) -> list[_Found]:
        try:
            params = param_info(self._context, policy)
        except ParamsError as error:
            return _misconfigured(policy, None, error)
        denials: list[_Found] = []
        activation: Activation | None = None
        annotations: dict[str, list[str]] = {}
        for binding in bindings:
            if not binding.resources.find_version(request):
                continue
            try:
                found = await collect_params(self._context, params, binding.param_ref, request.namespace)
            except ParamsError as error:
                denials += _misconfigured(policy, binding, error)
                continue
            activation = activation or Activation(request, version)
            for param in found:
                result = self._evaluate(policy, request, activation, param)
                for failure in result.failures:
                    if _apply_actions(policy, binding, failure, options):
                        denials.append((policy, binding, failure))
                for key, text in result.annotations.items():
                    if text not in annotations.setdefault(key, []):
                        annotations[key].append(text)
        for key, texts in annotations.items():
            options.audit_annotations[f"{policy.name}/{key}"] = ", ".join(texts)
        return denials

    def _evaluate(
        self, policy: Policy, request: AdmissionRequest, activation: Activation, param: Object | None
    ) -> PolicyResult:
        context = self._context
        budget = TimeBudget(context.clock.monotonic, context.options.admission_expressions_s_max)
        with authorize_with(context.authorize and partial(context.authorize, request.user)):
            return evaluate_policy(policy, activation.with_params(param), budget)

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

    async def _run_status(self) -> None:
        """Write the status of every policy whose spec changed."""
        while True:
            await self._has_unchecked.wait()
            self._has_unchecked.clear()
            while self._unchecked:
                name = next(iter(self._unchecked))
                await self._write_status(name)
                self._unchecked.discard(name)

    async def _write_status(self, name: str) -> None:
        info = self._context.kinds.lookup(GROUP, "v1", "validatingadmissionpolicies")

        def checked(live: Object) -> tuple[Object, bool]:
            generation = live["metadata"].get("generation", 1)
            status = live.get("status") or {}
            if status.get("observedGeneration") == generation:
                return live, False
            warnings = type_check(live, self._context.kinds)
            type_checking = {"expressionWarnings": warnings} if warnings else {}
            return {**live, "status": {"observedGeneration": generation, "typeChecking": type_checking}}, False

        try:
            await self._writer.change(info, "", name, checked, WriteOptions(), subresource="status")
        except (NotFound, Conflict):
            return


def _apply_actions(
    policy: Policy, binding: PolicyBinding, failure: Failure, options: WriteOptions | DeleteOptions
) -> bool:
    """Perform the binding's actions on a failure; return whether it is a denial."""
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
    metadata = (request.obj or request.old or {}).get("metadata") or {}
    name = request.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return ApiError(
        f'{info.group_resource} "{name}" is forbidden: {text}',
        details={**status_details(info, name), "causes": [{"message": text}]},
        code=failure.code,
        reason=failure.reason or "Invalid",
    )
