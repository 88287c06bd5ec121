"""Request matching of webhooks and policies: rules, label selectors and CEL match conditions. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery.errors import FederationError
from federation.apimachinery.selectors import Selector, compile_label_selector
from federation.apiserver.admission.requests import AdmissionRequest, Rule, find_version, parse_rules
from federation.apiserver.semantics.cel.composition import Environment, evaluate
from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError, OutOfBudget, Program


class ConditionError(FederationError):
    """A match condition could not be evaluated, so it is unknown whether the request matches."""


@dataclass(frozen=True, slots=True)
class Selectors:
    """Selectors over the namespace's and the object's labels."""

    namespaces: Selector
    objects: Selector

    def matches(self, request: AdmissionRequest) -> bool:
        """Return whether both select the request; every namespace selector matches a cluster-scoped object."""
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
    selectors: Selectors
    is_exact: bool

    def find_version(self, request: AdmissionRequest) -> str:
        """Return the version that the object is evaluated in, "" when the request does not match."""
        if not self.selectors.matches(request) or find_version(self.excluded, request, is_exact=self.is_exact):
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
        """Return the expression's value; EvaluationError (OutOfBudget) with Kubernetes' message."""
        if self.program is None:
            raise EvaluationError(f"compilation error: {self.problem}")
        try:
            return evaluate(self.program, data)
        except OutOfBudget:
            raise
        except EvaluationError as error:
            raise EvaluationError(f"expression '{self.text}' resulted in error: {error}") from error


@dataclass(frozen=True, slots=True)
class Condition:
    """One entry of `matchConditions`."""

    name: str
    expression: Expression


def parse_selectors(raw: Mapping[str, Any]) -> Selectors:
    """Return the selectors of a webhook or of match constraints; SelectorError when one is malformed."""
    namespaces, objects = raw.get("namespaceSelector") or {}, raw.get("objectSelector") or {}
    return Selectors(
        compile_label_selector(namespaces, is_validated=True), compile_label_selector(objects, is_validated=True)
    )


def parse_match_resources(raw: Mapping[str, Any]) -> MatchResources:
    """Return match constraints; empty ones match every request."""
    return MatchResources(
        parse_rules(raw.get("resourceRules")),
        parse_rules(raw.get("excludeResourceRules")),
        parse_selectors(raw),
        raw.get("matchPolicy") == "Exact",
    )


def parse_expression(text: str, names: Environment, *returns: str) -> Expression:
    """Compile an expression; a compile error is stored in the result."""
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


def all_conditions_hold(conditions: Iterable[Condition], data: Mapping[str, Any]) -> bool:
    """Return whether all conditions are true; ConditionError when one has no value and none is false."""
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
