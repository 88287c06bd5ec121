"""Whom a webhook or policy concerns: rules, label selectors and conditions in CEL. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.base.errors import FederationError
from federation.registry.admission.requests import AdmissionRequest, Rule, find_version, parse_rules
from federation.registry.cel.composition import Environment, value_of
from federation.registry.cel.programs import CompileError, EvaluationError, OutOfBudget, Program
from federation.registry.selectors import LabelSelector, from_mapping


class ConditionError(FederationError):
    """A match condition could not be evaluated, so it is not known whether the request is concerned."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selectors over the namespace's and the object's labels."""

    namespaces: LabelSelector
    objects: LabelSelector

    def matches(self, request: AdmissionRequest) -> bool:
        """Tell whether both select the request; a cluster-scoped object is in every namespace selection."""
        if request.namespace_labels is not None and not self.namespaces.matches(request.namespace_labels):
            return False
        return any(
            self.objects.matches((obj.get("metadata") or {}).get("labels"))
            for obj in (request.obj, request.old)
            if obj is not None
        )


@dataclass(frozen=True, slots=True)
class MatchResources:
    """The `matchConstraints` of a policy or the `matchResources` of a binding."""

    rules: tuple[Rule, ...]
    excluded: tuple[Rule, ...]
    selection: Selection
    is_exact: bool

    def find_version(self, request: AdmissionRequest) -> str:
        """Return the version in which the object is to be seen, "" when the request is not concerned."""
        if not self.selection.matches(request) or find_version(self.excluded, request, is_exact=self.is_exact):
            return ""
        if not self.rules:
            return request.resource.version
        return find_version(self.rules, request, is_exact=self.is_exact)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression of a stored configuration; `problem` is set when it did not compile."""

    text: str
    program: Program | None
    problem: str = ""

    def evaluate(self, data: Mapping[str, Any]) -> Any:
        """Return its value; EvaluationError (OutOfBudget) in Kubernetes' words."""
        if self.program is None:
            raise EvaluationError(f"compilation error: {self.problem}")
        try:
            return value_of(self.program, data)
        except OutOfBudget:
            raise
        except EvaluationError as error:
            raise EvaluationError(f"expression '{self.text}' resulted in error: {error}") from error


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of `matchConditions`."""

    name: str
    expression: Expression


def parse_selection(raw: Mapping[str, Any]) -> Selection:
    """Return the selectors of a webhook or of match constraints; BadRequest for one that is none."""
    return Selection(from_mapping(raw.get("namespaceSelector") or {}), from_mapping(raw.get("objectSelector") or {}))


def parse_match_resources(raw: Mapping[str, Any]) -> MatchResources:
    """Return match constraints; empty ones concern everything."""
    return MatchResources(
        parse_rules(raw.get("resourceRules")),
        parse_rules(raw.get("excludeResourceRules")),
        parse_selection(raw),
        raw.get("matchPolicy") == "Exact",
    )


def parse_expression(text: str, names: Environment, *returns: str) -> Expression:
    """Compile an expression, or keep why it does not."""
    try:
        return Expression(text, names.compile(text, returns))
    except CompileError as error:
        return Expression(text, None, str(error))


def parse_conditions(raw: Iterable[Mapping[str, Any]] | None, names: Environment) -> tuple[Condition, ...]:
    """Compile the match conditions of a configuration."""
    return tuple(
        Condition(
            str(condition.get("name") or ""), parse_expression(str(condition.get("expression") or ""), names, "BOOL")
        )
        for condition in raw or ()
    )


def hold(conditions: Iterable[Condition], data: Mapping[str, Any]) -> bool:
    """Tell whether all conditions are true. One that is false settles it; ConditionError when one has no value."""
    problems: list[str] = []
    for condition in conditions:
        try:
            if condition.expression.evaluate(data) is not True:
                return False
        except EvaluationError as error:
            problems.append(str(error))
    if problems:
        raise ConditionError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return True
