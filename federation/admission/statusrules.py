"""The CEL engine for the status rules of FederatedTypeConfigs.

`controllers/statusaggregate` gets `compile_status_rule` from the assembly, and the admission of FederatedTypeConfigs
compiles with it, so a rule that is accepted is a rule that runs. The estimate for ordinary data must be within the
limit of admission policies. For data that exceed it the evaluation fails and nothing runs
(`apiserver/semantics/cel/budget.py`).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from federation.apiserver.semantics.cel.composition import Environment, evaluate
from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError
from federation.planning.aggregation.rules import Evaluate, RuleError

_SOURCE: Final = {"source": dict.fromkeys(("apiVersion", "kind", "metadata", "spec", "status"))}
_JSON_TYPES: Final = ("DYN", "BOOL", "INT", "UINT", "DOUBLE", "STRING", "NULL", "LIST", "MAP")
_COMPILED_MAX: Final = 512
_MESSAGE_LENGTH_MAX: Final = 256
"""Of an evaluation error: it can hold what a member reports."""


@lru_cache(_COMPILED_MAX)
def compile_status_rule(text: str, returns: str = "") -> Evaluate:
    """Compile an expression, which may have to return a type, such as LIST; RuleError."""
    try:
        program = Environment(("source:MAP", "members:LIST"), _SOURCE, is_new=True).compile(text)
    except CompileError as error:
        raise RuleError(str(error)) from error
    found = program.returns.partition("<")[0]
    if found not in ((returns, "DYN") if returns else _JSON_TYPES):
        wanted = returns.lower() if returns else "a JSON value"
        raise RuleError(f"must evaluate to {wanted} but got {program.returns.lower()}")

    def run(data: Mapping[str, Any]) -> Any:
        try:
            return evaluate(program, data)
        except EvaluationError as error:
            raise RuleError(str(error)[:_MESSAGE_LENGTH_MAX]) from error

    return run
