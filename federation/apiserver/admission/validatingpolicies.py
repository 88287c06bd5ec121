"""The ValidatingAdmissionPolicies of one registry: the actions on failed validations, and the status of policies.

The response carries the first denial in the order of the policies' and bindings' names; warnings and audit annotations
are added to the request. A loop writes each policy's status: the observed generation and the type-checking warnings.
`boundpolicies.py` selects policies, `validations.py` evaluates expressions.
"""

import asyncio
from collections.abc import Callable
from functools import partial

import orjson

from federation.apimachinery.errors import ApiError, Conflict, NotFound
from federation.apimachinery.resources import Object
from federation.apiserver.admission.boundpolicies import BoundPolicies, Loop, Match
from federation.apiserver.admission.configurations import GROUP
from federation.apiserver.admission.environment import Activation
from federation.apiserver.admission.policies import PolicyBinding, TimeBudget, parse_policy
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.admission.typechecking import type_check
from federation.apiserver.admission.validations import (
    Failure,
    PolicyResult,
    ValidatingPolicy,
    Validations,
    evaluate_policy,
    parse_validations,
)
from federation.apiserver.semantics.cel.authorizer import authorize_with
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.context import VerbContext, status_details
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions
from federation.apiserver.verbs.writes import Writer

_PLURALS = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
_FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"
_Found = tuple[ValidatingPolicy, PolicyBinding | None, Failure]


class ValidatingPolicies:
    """The ValidatingAdmissionPolicies of one registry."""

    def __init__(self, context: VerbContext, writer: Writer, on_change: Callable[[], None]) -> None:
        self._context = context
        self._writer = writer
        self._unchecked: set[str] = set()
        self._has_unchecked = asyncio.Event()
        self._bound = BoundPolicies(context, _PLURALS, self._compile, on_change)

    @property
    def is_active(self) -> bool:
        """Whether any policy has a binding."""
        return bool(self._bound.items)

    async def load(self) -> None:
        """Load the stored policies and bindings."""
        await self._bound.load()

    def loops(self) -> dict[str, Loop]:
        """Return the background loops by name; each runs until cancelled."""
        return {**self._bound.loops(), "admission-policy-status": self._run_status}

    async def validate(self, info: KindInfo, request: AdmissionRequest, options: WriteOptions | DeleteOptions) -> None:
        """Evaluate every policy that matches the request; ApiError when one denies it."""
        denials: list[_Found] = []
        activations: dict[str, Activation] = {}
        annotations: dict[str, list[str]] = {}
        async for match in self._bound.matches(request):
            policy, binding = match.policy, match.binding
            if match.problem or binding is None:
                denials += [(policy, binding, Failure(0, match.problem))] if policy.fails_closed else []
                continue
            if match.version not in activations:
                activations[match.version] = Activation(request, match.version)
            result = self._evaluate(match, request, activations[match.version])
            for failure in result.failures:
                if _apply_actions(policy, binding, failure, options):
                    denials.append((policy, binding, failure))
            for key, text in result.annotations.items():
                texts = annotations.setdefault(f"{policy.name}/{key}", [])
                if text not in texts:
                    texts.append(text)
        for key, texts in annotations.items():
            options.audit_annotations[key] = ", ".join(texts)
        if denials:
            raise _denied(info, request, *denials[0])

    def _evaluate(self, match: Match[Validations], request: AdmissionRequest, activation: Activation) -> PolicyResult:
        context = self._context
        budget = TimeBudget(context.clock.monotonic, context.options.admission_expressions_s_max)
        with authorize_with(context.authorize and partial(context.authorize, request.user)):
            return evaluate_policy(match.policy, activation.with_params(match.param), budget)

    def _compile(self, obj: Object) -> ValidatingPolicy:
        self._unchecked.add(obj["metadata"]["name"])
        self._has_unchecked.set()
        return parse_policy(obj, parse_validations)

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
        info = self._context.kinds.lookup(GROUP, "v1", _PLURALS[0])

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
    policy: ValidatingPolicy, binding: PolicyBinding, failure: Failure, options: WriteOptions | DeleteOptions
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


def _denied(
    info: KindInfo, request: AdmissionRequest, policy: ValidatingPolicy, binding: PolicyBinding | None, failure: Failure
) -> ApiError:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    text = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {failure.message}"
    name = request.shown_name
    return ApiError(
        f'{info.group_resource} "{name}" is forbidden: {text}',
        details={**status_details(info, name), "causes": [{"message": text}]},
        code=failure.code,
        reason=failure.reason or "Invalid",
    )
