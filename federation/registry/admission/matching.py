"""Whom a webhook or policy concerns, beyond resources: label selectors and conditions in CEL. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.base.errors import FederationError
from federation.registry.admission.requests import AdmissionRequest
from federation.registry.cel.programs import CompileError, EvaluationError, Program, compile_expression
from federation.registry.selectors import LabelSelector, from_mapping

VARIABLES = ("object", "oldObject", "request")


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
class Condition:
    """One entry of `matchConditions`; `problem` is set when it did not compile."""

    name: str
    program: Program | None
    problem: str = ""


def parse_selection(raw: Mapping[str, Any]) -> Selection:
    """Return the selectors of a webhook or of match constraints; BadRequest for one that is none."""
    return Selection(from_mapping(raw.get("namespaceSelector") or {}), from_mapping(raw.get("objectSelector") or {}))


def parse_conditions(raw: Iterable[Mapping[str, Any]] | None) -> tuple[Condition, ...]:
    """Compile the match conditions of a configuration."""
    conditions = []
    for condition in raw or ():
        name, text = str(condition.get("name") or ""), str(condition.get("expression") or "")
        try:
            conditions.append(Condition(name, compile_expression(text, VARIABLES, returns="BOOL")))
        except CompileError as error:
            conditions.append(Condition(name, None, str(error)))
    return tuple(conditions)


def hold(conditions: Iterable[Condition], data: Mapping[str, Any]) -> bool:
    """Tell whether all conditions are true. One that is false settles it; ConditionError when one has no value."""
    problem = ""
    for condition in conditions:
        if condition.program is None:
            problem = problem or f"{condition.name}: {condition.problem}"
            continue
        try:
            if condition.program.evaluate(data) is not True:
                return False
        except EvaluationError as error:
            problem = problem or f"{condition.name}: {error}"
    if problem:
        raise ConditionError(problem)
    return True
