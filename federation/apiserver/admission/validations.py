"""The validations of a ValidatingAdmissionPolicy: compile them, and evaluate them on one request. Pure.

`evaluate_policy` keeps kube-apiserver's order: conditions, validations, messages, audit annotations. Read
`validatingpolicies.py` for its caller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.apiserver.admission.matching import ConditionError, Expression, parse_expression
from federation.apiserver.admission.policies import Policy, TimeBudget, with_variables
from federation.apiserver.semantics.cel.admission import environment
from federation.apiserver.semantics.cel.composition import Environment
from federation.apiserver.semantics.cel.programs import OUT_OF_BUDGET, EvaluationError, OutOfBudget

_MESSAGE_BYTES_MAX = 5 * 1024
_ANNOTATION_BYTES_MAX = 10 * 1024
_REASONS = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(frozen=True, slots=True)
class Validation:
    """One entry of `spec.validations`."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str


@dataclass(frozen=True, slots=True)
class Validations:
    """The parts that only a ValidatingAdmissionPolicy has."""

    entries: tuple[Validation, ...]
    audit_annotations: tuple[tuple[str, Expression], ...]


ValidatingPolicy = Policy[Validations]


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


def parse_validations(spec: Mapping[str, Any], names: Environment) -> Validations:
    """Compile the validations and audit annotations of a stored policy."""
    messages = with_variables(environment(has_params=bool(spec.get("paramKind")), has_authorizer=False), spec)
    return Validations(
        tuple(
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
        tuple(
            (raw["key"], parse_expression(raw["valueExpression"], names, "STRING", "NULL"))
            for raw in spec.get("auditAnnotations") or ()
        ),
    )


def evaluate_policy(policy: ValidatingPolicy, data: Mapping[str, Any], budget: TimeBudget) -> PolicyResult:
    """Evaluate a policy that matches the request."""
    result = PolicyResult()
    try:
        if not policy.applies(data):
            return result
    except ConditionError as error:
        if policy.fails_closed:
            result.failures.append(Failure(0, str(error)))
        return result
    try:
        for index, validation in enumerate(policy.rules.entries):
            budget.check()
            if failure := _validate(policy, validation, index, data):
                result.failures.append(failure)
        for key, expression in policy.rules.audit_annotations:
            budget.check()
            _annotate(policy, key, expression, data, result)
    except OutOfBudget:
        result.failures = [Failure(0, OUT_OF_BUDGET)] if policy.fails_closed else []
    return result


def _validate(policy: ValidatingPolicy, validation: Validation, index: int, data: Mapping[str, Any]) -> Failure | None:
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


def _annotate(
    policy: ValidatingPolicy, key: str, expression: Expression, data: Mapping[str, Any], result: PolicyResult
) -> None:
    try:
        value = expression.evaluate(data)
    except OutOfBudget:
        raise
    except EvaluationError as error:
        if policy.fails_closed:
            result.failures.append(Failure(len(policy.rules.entries), str(error), is_final=True))
        return
    if isinstance(value, str) and (text := value.strip()):
        result.annotations[key] = text.encode()[:_ANNOTATION_BYTES_MAX].decode(errors="ignore")
    elif not isinstance(value, str | None):
        problem = (
            f"valueExpression '{expression.text}' resulted in unsupported return type: {type(value).__name__}. Return"
            " type must be either string or null."
        )
        result.failures.append(Failure(len(policy.rules.entries), problem, is_final=True))
