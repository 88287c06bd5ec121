"""The MutatingAdmissionPolicies of one registry: which mutations run on a request, and when they are denied.

They run before mutating webhooks, in the order of the names of policies, bindings and parameters; each sees the object
as the ones before left it. When a mutation or a webhook changed the object, policies with reinvocationPolicy IfNeeded
run once more. Policies and parameters are matched once per pass. `boundpolicies.py` selects policies, `mutations.py`
computes and applies patches.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial

from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import Object
from federation.apiserver.admission.boundpolicies import BoundPolicies, Loop, Match
from federation.apiserver.admission.environment import Activation
from federation.apiserver.admission.matching import ConditionError
from federation.apiserver.admission.mutations import (
    Mutation,
    MutationError,
    Mutations,
    PatchBudget,
    mutate_object,
    parse_mutations,
)
from federation.apiserver.admission.policies import TimeBudget, parse_policy
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import authorize_with
from federation.apiserver.semantics.cel.programs import OUT_OF_BUDGET, EvaluationError, OutOfBudget
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.schema.builtin import builtin_schema, definition_name
from federation.apiserver.semantics.schema.model import ANYTHING, Schema
from federation.apiserver.verbs.context import VerbContext, status_details

_PLURALS = ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
Key = tuple[str, str, str]
"""Policy, binding and parameter of one evaluation."""


@dataclass(slots=True)
class MutationPass:
    """The effect of the policies on one request."""

    request: AdmissionRequest
    budget: PatchBudget
    has_patched: bool = False
    """Whether any patch was applied, even one that changes nothing, as in kube-apiserver."""
    reinvoked: set[Key] = field(default_factory=set)
    """The evaluations to repeat when the object changes later."""


class MutatingPolicies:
    """The MutatingAdmissionPolicies of one registry."""

    def __init__(self, context: VerbContext, on_change: Callable[[], None]) -> None:
        self._context = context
        self._bound = BoundPolicies(context, _PLURALS, lambda obj: parse_policy(obj, parse_mutations), on_change)

    @property
    def is_active(self) -> bool:
        """Whether any policy has a binding."""
        return bool(self._bound.items)

    async def load(self) -> None:
        """Load the stored policies and bindings."""
        await self._bound.load()

    def loops(self) -> dict[str, Loop]:
        """Return the background loops by name; each runs until cancelled."""
        return self._bound.loops()

    async def mutate(
        self, info: KindInfo, request: AdmissionRequest, budget: PatchBudget, only: Collection[Key] | None = None
    ) -> MutationPass:
        """Run the policies that match the request, or of these only `only`; ApiError when one denies it."""
        done = MutationPass(request, budget)
        problems: list[tuple[str, str]] = []
        async for match in self._bound.matches(request):
            found = [(match.problem, "")] if match.problem else self._run(match, info, done, only)
            if match.policy.fails_closed:
                problems += [(_denial(match, text), reason) for text, reason in found]
        if problems:
            raise _denied(info, done.request, problems)
        return done

    def _run(
        self, match: Match[Mutations], info: KindInfo, done: MutationPass, only: Collection[Key] | None
    ) -> list[tuple[str, str]]:
        """Run one policy on the request; return its problems and their reasons."""
        context = self._context
        time = TimeBudget(context.clock.monotonic, context.options.admission_expressions_s_max)
        user = done.request.user
        with authorize_with(context.authorize and partial(context.authorize, user)):
            try:
                if not match.policy.applies(Activation(done.request, match.version).with_params(match.param)):
                    return []
            except ConditionError as error:
                return [(str(error), "Invalid")]
            key = _key(match)
            if only is not None and key not in only:
                return []
            problems = []
            for mutation in match.policy.rules.entries:
                try:
                    time.check()
                    done.request = self._mutate(mutation, match, info, done)
                    done.has_patched = True
                except OutOfBudget:
                    problems.append((OUT_OF_BUDGET, "Invalid"))
                except (EvaluationError, MutationError) as error:
                    problems.append((str(error), "Invalid"))
            if match.policy.rules.is_reinvoked:
                done.reinvoked.add(key)
            return problems

    def _mutate(
        self, mutation: Mutation, match: Match[Mutations], info: KindInfo, done: MutationPass
    ) -> AdmissionRequest:
        request = done.request
        obj = request.to_version(match.version)
        if obj is None:
            return request
        data = Activation(request, match.version).with_params(match.param)
        mutated = mutate_object(mutation, self._schema(request, match.version), obj, data, done.budget)
        if mutated is obj:
            return request
        if request.kind is None:
            mutated = {**mutated, "apiVersion": request.resource.api_version}
            info.strategy.default(mutated)
        return replace(request, obj=mutated)

    def _schema(self, request: AdmissionRequest, version: str) -> Schema:
        if request.kind is not None:
            # Options of connections are in no schema that kube-apiserver publishes.
            return ANYTHING if definition_name(*request.kind) is None else builtin_schema(*request.kind)
        resource = request.resource
        return self._context.kinds.lookup(resource.group, version, resource.plural).schema


def _key(match: Match[Mutations]) -> Key:
    metadata: Object = (match.param or {}).get("metadata") or {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    return match.policy.name, match.binding.name if match.binding else "", name


def _denial(match: Match[Mutations], text: str) -> str:
    if match.binding is None:
        return f'policy "{match.policy.name}" denied request: {text}'
    return f"policy '{match.policy.name}' with binding '{match.binding.name}' denied request: {text}"


def _denied(info: KindInfo, request: AdmissionRequest, problems: list[tuple[str, str]]) -> ApiError:
    text, reason = problems[0]
    return ApiError(
        text,
        details={
            **status_details(info, request.shown_name),
            "causes": [{"message": message} for message, _ in problems],
        },
        code=403,
        reason=reason or "Forbidden",
    )
