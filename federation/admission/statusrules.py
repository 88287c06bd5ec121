"""The CEL engine for the status rules of FederatedTypeConfigs.

`controllers/statusaggregate` gets `compile_status_rule` from the assembly, and the admission of FederatedTypeConfigs
compiles with it, so a rule that is accepted is a rule that runs. An evaluation ends after 10,000 iterations, as that
of an admission policy. Its memory has no limit but those of its inputs, so functions that multiply the lengths of
texts are refused: `replace`, `join` with a separator that is no literal, and `format` of a text that is no literal.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from federation.apiserver.semantics.cel.checkedexpr import Node, parse_checked_expr, walk
from federation.apiserver.semantics.cel.composition import Environment, evaluate
from federation.apiserver.semantics.cel.programs import CompileError, EvaluationError, Program
from federation.planning.aggregation.rules import Evaluate, RuleError

_SOURCE: Final = {"source": dict.fromkeys(("apiVersion", "kind", "metadata", "spec", "status"))}
_JSON_TYPES: Final = ("DYN", "BOOL", "INT", "UINT", "DOUBLE", "STRING", "NULL", "LIST", "MAP")
_COMPILED_MAX: Final = 512


@lru_cache(_COMPILED_MAX)
def compile_status_rule(text: str, returns: str = "") -> Evaluate:
    """Compile an expression, which may have to return a type, such as LIST; RuleError."""
    try:
        program = Environment(("source:MAP", "members:LIST"), _SOURCE).compile(text)
    except CompileError as error:
        raise RuleError(str(error)) from error
    found = program.returns.partition("<")[0]
    if found not in ((returns, "DYN") if returns else _JSON_TYPES):
        wanted = returns.lower() if returns else "a JSON value"
        raise RuleError(f"must evaluate to {wanted} but got {program.returns.lower()}")
    if problem := find_costly_call(program):
        raise RuleError(f"{problem} in status rules")

    def run(data: Mapping[str, Any]) -> Any:
        try:
            return evaluate(program, data)
        except EvaluationError as error:
            raise RuleError(str(error)[:_MESSAGE_LENGTH_MAX]) from error

    return run


def find_costly_call(program: Program) -> str:
    """Return the error of a call that multiplies the lengths of texts, "" without any."""
    tree, _ = parse_checked_expr(program.serialized())
    return next(filter(None, map(_multiplies, walk(tree))), "")


def _multiplies(node: Node) -> str:
    """Return the error of a call that multiplies the lengths of texts, "" for any other node."""
    if node.kind != "call":
        return ""
    if node.name == "replace":
        return "replace() is not available"
    if node.name == "join" and any(part.kind != "const" for part in node.parts):
        return "the separator of join() has to be a literal"
    if node.name == "format" and (node.target is None or node.target.kind != "const"):
        return "the text of format() has to be a literal"
    return ""


_MESSAGE_LENGTH_MAX: Final = 256
"""Of an evaluation error: it can hold what a member reports."""
