"""ValidatingAdmissionPolicy and its binding, compiled; and what one of them says about one request. Pure.

A policy holds expressions, a binding says where they apply, with which parameters, and what a failure means (Deny,
Warn, Audit). `judge` evaluates in the order of kube-apiserver: conditions, validations, messages, audit annotations.
Time is an argument: an evaluation that takes too long ends like one without a value. `policychain.py` asks it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api.resources import Object
from federation.registry.admission.environment import environment
from federation.registry.admission.matching import (
    Condition,
    ConditionError,
    Expression,
    MatchResources,
    hold,
    parse_conditions,
    parse_expression,
    parse_match_resources,
)
from federation.registry.cel.composition import Environment
from federation.registry.cel.programs import CompileError, EvaluationError, OutOfBudget

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
    """Which parameters a binding uses: one by name, or those that a selector selects."""

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
    """A validation that does not hold; `index` is its place in the policy."""

    index: int
    message: str
    reason: str = ""
    is_final: bool = False
    """Whether the request is denied whatever the binding's actions are."""

    @property
    def code(self) -> int:
        """The HTTP status of a denial."""
        return _REASONS.get(self.reason or "Invalid", 422)


@dataclass(slots=True)
class Judgement:
    """What a policy says about one request with one set of parameters."""

    failures: list[Failure] = field(default_factory=list)
    annotations: dict[str, str] = field(default_factory=dict)


class Budget:
    """How long the expressions of one policy may take for one request."""

    def __init__(self, clock: Callable[[], float], limit_s: float) -> None:
        self._clock = clock
        self._deadline = clock() + limit_s

    def check(self) -> None:
        """Raise OutOfBudget when the time is over."""
        if self._clock() > self._deadline:
            raise OutOfBudget("operation cancelled: the time limit for expressions was exceeded")


def parse_policy(obj: Object) -> Policy:
    """Return a stored policy, ready to evaluate."""
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
    """Return a stored binding."""
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


def judge(policy: Policy, data: Mapping[str, Any], budget: Budget) -> Judgement:
    """Evaluate a policy that concerns the request."""
    judgement = Judgement()
    try:
        if policy.conditions and not hold(policy.conditions, data):
            return judgement
    except ConditionError as error:
        if policy.fails_closed:
            judgement.failures.append(Failure(0, str(error)))
        return judgement
    try:
        for index, validation in enumerate(policy.validations):
            budget.check()
            if failure := _validate(policy, validation, index, data):
                judgement.failures.append(failure)
        for key, expression in policy.audit_annotations:
            budget.check()
            _annotate(policy, key, expression, data, judgement)
    except OutOfBudget:
        judgement.failures = [Failure(0, _NO_BUDGET)] if policy.fails_closed else []
    return judgement


def _add_variable(names: Environment, variable: Mapping[str, Any]) -> None:
    try:
        names.add_variable(variable["name"], variable["expression"])
    except CompileError:
        return  # every expression that uses it gets the error


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
    """Return the computed message, "" when there is none that can be shown in one line."""
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


def _annotate(policy: Policy, key: str, expression: Expression, data: Mapping[str, Any], judgement: Judgement) -> None:
    try:
        value = expression.evaluate(data)
    except OutOfBudget:
        raise
    except EvaluationError as error:
        if policy.fails_closed:
            judgement.failures.append(Failure(len(policy.validations), str(error), is_final=True))
        return
    if isinstance(value, str) and (text := value.strip()):
        judgement.annotations[key] = text.encode()[:_ANNOTATION_BYTES_MAX].decode(errors="ignore")
    elif not isinstance(value, str | None):
        problem = (
            f"valueExpression '{expression.text}' resulted in unsupported return type: {type(value).__name__}. Return"
            " type must be either string or null."
        )
        judgement.failures.append(Failure(len(policy.validations), problem, is_final=True))
