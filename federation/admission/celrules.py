"""Compile the CEL expressions of our kinds.

The admission of a kind and the code that runs its expressions compile with the same function, so an expression that is
accepted is one that runs.
"""

from collections.abc import Mapping
from typing import Any, Final

from federation.apiserver.semantics.cel.composition import Environment, evaluate
from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError
from federation.planning.aggregation.rules import Evaluate, RuleError

OBJECT_FIELDS: Final = dict.fromkeys(("apiVersion", "kind", "metadata", "spec", "status"))
_MESSAGE_LENGTH_MAX: Final = 256
"""Of an evaluation error: it can hold what a member reports."""


def compile_rule(environment: Environment, text: str) -> tuple[Evaluate, str]:
    """Return the function of an expression and the CEL type of its result; both raise RuleError."""
    try:
        program = environment.compile(text)
    except CompileError as error:
        raise RuleError(str(error)) from error

    def run(data: Mapping[str, Any]) -> Any:
        try:
            return evaluate(program, data)
        except EvaluationError as error:
            raise RuleError(str(error)[:_MESSAGE_LENGTH_MAX]) from error

    return run, program.returns
