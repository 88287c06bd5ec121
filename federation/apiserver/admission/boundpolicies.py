"""Match policies to requests: the one place that matches policies, bindings and parameters to requests.

`BoundPolicies` holds the compiled policies of one kind and their bindings. A policy without a binding has no effect.
Match conditions are not evaluated here, because a mutation may change the object that a later policy sees. Read
`validatingpolicies.py` and `mutatingpolicies.py` next.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from federation.apimachinery.resources import Object
from federation.apiserver.admission.configurations import CompiledConfigurations
from federation.apiserver.admission.params import ParamsError, collect_params, param_info
from federation.apiserver.admission.policies import Policy, PolicyBinding, parse_binding
from federation.apiserver.admission.requests import AdmissionRequest
from federation.apiserver.verbs.context import VerbContext

Loop = Callable[[], Awaitable[None]]
POLICY_KINDS = frozenset(
    {
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
)
"""Kinds that skip policies, so that a broken policy can always be removed."""
_TURN_S_MAX = 0.02
"""Other requests get a turn when the policies of one request have run this long."""
_Rules = TypeVar("_Rules")


@dataclass(frozen=True, slots=True)
class Match(Generic[_Rules]):
    """A policy to evaluate once for a request."""

    policy: Policy[_Rules]
    binding: PolicyBinding | None
    """None only with a problem of the policy itself."""
    version: str
    """The version that the object is evaluated in."""
    param: Object | None = None
    problem: str = ""
    """Why the policy cannot be evaluated, for example because its parameters are missing."""


class BoundPolicies(Generic[_Rules]):
    """The policies of one kind that have bindings."""

    def __init__(
        self,
        context: VerbContext,
        plurals: tuple[str, str],
        compiled: Callable[[Object], Policy[_Rules]],
        on_change: Callable[[], None],
    ) -> None:
        """`plurals` are the resources of policies and bindings."""
        self.items: tuple[tuple[Policy[_Rules], tuple[PolicyBinding, ...]], ...] = ()
        self._context = context
        self._plurals = plurals
        self._on_change = on_change
        self._policies = CompiledConfigurations(context, plurals[0], lambda obj, _: compiled(obj), self._changed)
        self._bindings = CompiledConfigurations(context, plurals[1], lambda obj, _: parse_binding(obj), self._changed)

    async def load(self) -> None:
        """Load the stored policies and bindings."""
        await self._policies.load()
        await self._bindings.load()

    def loops(self) -> dict[str, Loop]:
        """Return the background loops by name; each runs until cancelled."""
        return dict(zip(self._plurals, (self._policies.run, self._bindings.run), strict=True))

    async def matches(self, request: AdmissionRequest) -> AsyncIterator[Match[_Rules]]:
        """Yield what to evaluate, in the order of the names of policies, bindings and parameters.

        All of it is read before the first evaluation. Other requests run in between when evaluations take long.
        """
        clock, found = self._context.clock, await self._find_matches(request)
        rested = clock.monotonic()
        for match in found:
            if clock.monotonic() - rested > _TURN_S_MAX:
                await asyncio.sleep(0)
                rested = clock.monotonic()
            yield match

    async def _find_matches(self, request: AdmissionRequest) -> list[Match[_Rules]]:
        found: list[Match[_Rules]] = []
        for policy, bindings in self.items:
            if version := policy.constraints.find_version(request):
                found += await self._match_bindings(policy, bindings, request, version)
        return found

    async def _match_bindings(
        self, policy: Policy[_Rules], bindings: tuple[PolicyBinding, ...], request: AdmissionRequest, version: str
    ) -> list[Match[_Rules]]:
        try:
            info = param_info(self._context, policy.param_kind)
        except ParamsError as error:
            return [Match(policy, None, version, problem=f"failed to configure policy: {error}")]
        found: list[Match[_Rules]] = []
        for binding in bindings:
            if not binding.resources.find_version(request):
                continue
            try:
                params = await collect_params(self._context, info, binding.param_ref, request.namespace)
            except ParamsError as error:
                found.append(Match(policy, binding, version, problem=f"failed to configure binding: {error}"))
                continue
            found += [Match(policy, binding, version, param) for param in params]
        return found

    def _changed(self) -> None:
        pairs = (
            (policy, tuple(binding for binding in self._bindings.items if binding.policy == policy.name))
            for policy in self._policies.items
        )
        self.items = tuple((policy, bindings) for policy, bindings in pairs if bindings)
        self._on_change()
