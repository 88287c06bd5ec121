"""Common parts of Validating- and MutatingAdmissionPolicies: compiled definitions, bindings, the time limit. Pure.

A policy contains expressions; a binding selects requests and parameters. `boundpolicies.py` finds the policies of a
request, `validations.py` and `mutations.py` evaluate them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from federation.apimachinery.resources import Object
from federation.apiserver.admission.matching import (
    Condition,
    MatchResources,
    all_conditions_hold,
    parse_conditions,
    parse_match_resources,
)
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.programs import CompileError, OutOfBudget

_Rules = TypeVar("_Rules")


@dataclass(frozen=True, slots=True)
class Policy(Generic[_Rules]):
    """A policy; `rules` are its validations or mutations."""

    name: str
    param_kind: tuple[str, str] | None
    """apiVersion and kind of parameters."""
    constraints: MatchResources
    conditions: tuple[Condition, ...]
    fails_closed: bool
    rules: _Rules

    def applies(self, data: Mapping[str, Any]) -> bool:
        """Return whether the match conditions hold; ConditionError."""
        return not self.conditions or all_conditions_hold(self.conditions, data)


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The parameters of a binding: one by name, or all that match a selector."""

    name: str
    namespace: str
    selector: Mapping[str, Any] | None
    denies_absence: bool


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """The binding of a policy."""

    name: str
    policy: str
    resources: MatchResources
    param_ref: ParamRef | None
    actions: tuple[str, ...]
    """The effects of a failed validation; () for a MutatingAdmissionPolicyBinding."""


class TimeBudget:
    """A time limit on the expressions of one policy for one request."""

    def __init__(self, clock: Callable[[], float], limit_s: float) -> None:
        self._clock = clock
        self._deadline = clock() + limit_s

    def check(self) -> None:
        """Raise OutOfBudget after the deadline."""
        if self._clock() > self._deadline:
            raise OutOfBudget("operation cancelled: the time limit for expressions was exceeded")


def parse_policy(obj: Object, parse_rules: Callable[[Mapping[str, Any], Environment], _Rules]) -> Policy[_Rules]:
    """Compile a stored policy. `parse_rules` compiles its own part of the spec with the policy's variables."""
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    names = environment(has_params=bool(kind))
    conditions = parse_conditions(spec.get("matchConditions"), names)
    return Policy(
        name=obj["metadata"]["name"],
        param_kind=(str(kind.get("apiVersion")), str(kind.get("kind"))) if kind else None,
        constraints=parse_match_resources(spec.get("matchConstraints") or {}),
        conditions=conditions,
        fails_closed=spec.get("failurePolicy") != "Ignore",
        rules=parse_rules(spec, with_variables(names, spec)),
    )


def with_variables(names: Environment, spec: Mapping[str, Any]) -> Environment:
    """Add the policy's variables to the environment and return it."""
    for variable in spec.get("variables") or ():
        try:
            names.add_variable(variable["name"], variable["expression"])
        except CompileError:
            continue  # the error is reported by every expression that uses the variable
    return names


def parse_binding(obj: Object) -> PolicyBinding:
    """Compile a stored binding."""
    spec = obj.get("spec") or {}
    raw = spec.get("paramRef")
    return PolicyBinding(
        name=obj["metadata"]["name"],
        policy=spec.get("policyName") or "",
        resources=parse_match_resources(spec.get("matchResources") or {}),
        param_ref=None
        if raw is None
        else ParamRef(
            raw.get("name") or "",
            raw.get("namespace") or "",
            raw.get("selector"),
            raw.get("parameterNotFoundAction") == "Deny",
        ),
        actions=tuple(spec.get("validationActions") or ()),
    )
