"""Compiled ValidatingAdmissionPolicies and bindings, and the evaluation of a policy on one request. Pure.

A policy contains expressions; a binding selects requests, parameters and the actions on a failure (Deny, Warn, Audit).
`evaluate_policy` keeps kube-apiserver's order: conditions, validations, messages, audit annotations. Read
`policychain.py` for its caller.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.resources import Object
from federation.apiserver.admission.matching import (
    Condition,
    ConditionError,
    Expression,
    MatchResources,
    all_conditions_hold,
    parse_conditions,
    parse_expression,
    parse_match_resources,
)
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError, OutOfBudget

_MESSAGE_BYTES_MAX = 5 * 1024
_ANNOTATION_BYTES_MAX = 10 * 1024
_NO_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"
_REASONS = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(frozen=True, slots=True)
class Validation:
    """One entry of `spec.validations`."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """A ValidatingAdmissionPolicy."""

    name: str
    param_kind: tuple[str, str] | None
    """apiVersion and kind of parameters."""
    constraints: MatchResources
    conditions: tuple[Condition, ...]
    validations: tuple[Validation, ...]
    audit_annotations: tuple[tuple[str, Expression], ...]
    fails_closed: bool


@dataclass(frozen=True, slots=True)
class ParamRef:
    """The parameters of a binding: one by name, or all that match a selector."""

    name: str
    namespace: str
    selector: Mapping[str, Any] | None
    denies_absence: bool


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """A ValidatingAdmissionPolicyBinding."""

    name: str
    policy: str
    resources: MatchResources
    param_ref: ParamRef | None
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed validation; `index` is its position in the policy."""

    index: int
    message: str
    reason: str = ""
    is_final: bool = False
    """Whether the request is denied regardless of the binding's actions."""

    @property
    def code(self) -> int:
        """The HTTP status of a denial."""
        return _REASONS.get(self.reason or "Invalid", 422)


@dataclass(slots=True)
class PolicyResult:
    """The result of a policy for one request and one parameter object."""

    failures: list[Failure] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


class TimeBudget:
    """A time limit on the expressions of one policy for one request."""

    def __init__(self, clock: Callable[[], float], limit_s: float) -> None:
        self._clock = clock
        self._deadline = clock() + limit_s

    def check(self) -> None:
        """Raise OutOfBudget after the deadline."""
        if self._clock() > self._deadline:
            raise OutOfBudget("operation cancelled: the time limit for expressions was exceeded")


def parse_policy(obj: Object) -> Policy:
    """Compile a stored policy."""
    spec = obj.get("spec") or {}
    kind = spec.get("paramKind")
    names = environment(has_params=bool(kind))
    conditions = parse_conditions(spec.get("matchConditions"), names)
    messages = environment(has_params=bool(kind), has_authorizer=False)
    for variable in spec.get("variables") or ():
        for known in (names, messages):
            _add_variable(known, variable)
    return Policy(
        name=obj["metadata"]["name"],
        param_kind=(str(kind.get("apiVersion")), str(kind.get("kind"))) if kind else None,
        constraints=parse_match_resources(spec.get("matchConstraints") or {}),
        conditions=conditions,
        validations=tuple(
            Validation(
                expression=parse_expression(raw["expression"], names, "BOOL"),
                message=(raw.get("message") or "").strip(),
                message_expression=parse_expression(raw["messageExpression"], messages, "STRING")
                if raw.get("messageExpression")
                else None,
                reason=raw.get("reason") or "Invalid",
            )
            for raw in spec.get("validations") or ()
        ),
        audit_annotations=tuple(
            (raw["key"], parse_expression(raw["valueExpression"], names, "STRING", "NULL"))
            for raw in spec.get("auditAnnotations") or ()
        ),
        fails_closed=spec.get("failurePolicy") != "Ignore",
    )


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


def evaluate_policy(policy: Policy, data: Mapping[str, Any], budget: TimeBudget) -> PolicyResult:
    """Evaluate a policy that matches the request."""
    result = PolicyResult()
    try:
        if policy.conditions and not all_conditions_hold(policy.conditions, data):
            return result
    except ConditionError as error:
        if policy.fails_closed:
            result.failures.append(Failure(0, str(error)))
        return result
    try:
        for index, validation in enumerate(policy.validations):
            budget.check()
            if failure := _validate(policy, validation, index, data):
                result.failures.append(failure)
        for key, expression in policy.audit_annotations:
            budget.check()
            _annotate(policy, key, expression, data, result)
    except OutOfBudget:
        result.failures = [Failure(0, _NO_BUDGET)] if policy.fails_closed else []
    return result


def _add_variable(names: Environment, variable: Mapping[str, Any]) -> None:
    try:
        names.add_variable(variable["name"], variable["expression"])
    except CompileError:
        return  # the error is reported by every expression that uses the variable


def _validate(policy: Policy, validation: Validation, index: int, data: Mapping[str, Any]) -> Failure | None:
    try:
        if validation.expression.evaluate(data) is True:
            return None
    except OutOfBudget:
        raise
    except EvaluationError as error:
        return Failure(index, str(error)) if policy.fails_closed else None
    message = _message(validation, data) or validation.message
    return Failure(
        index, message or f"failed expression: {validation.expression.text.strip()}", reason=validation.reason
    )


def _message(validation: Validation, data: Mapping[str, Any]) -> str:
    """Return the value of messageExpression, "" for an error, several lines or too long a text."""
    if validation.message_expression is None:
        return ""
    try:
        value = validation.message_expression.evaluate(data)
    except OutOfBudget:
        raise
    except EvaluationError:
        return ""
    text = value.strip() if isinstance(value, str) else ""
    return "" if "\n" in text or len(text.encode()) > _MESSAGE_BYTES_MAX else text


def _annotate(policy: Policy, key: str, expression: Expression, data: Mapping[str, Any], result: PolicyResult) -> None:
    try:
        value = expression.evaluate(data)
    except OutOfBudget:
        raise
    except EvaluationError as error:
        if policy.fails_closed:
            result.failures.append(Failure(len(policy.validations), str(error), is_final=True))
        return
    if isinstance(value, str) and (text := value.strip()):
        result.annotations[key] = text.encode()[:_ANNOTATION_BYTES_MAX].decode(errors="ignore")
    elif not isinstance(value, str | None):
        problem = (
            f"valueExpression '{expression.text}' resulted in unsupported return type: {type(value).__name__}. Return"
            " type must be either string or null."
        )
        result.failures.append(Failure(len(policy.validations), problem, is_final=True))
