"""The CEL engine for the status rules of FederatedTypeConfigs.

`controllers/statusaggregate` gets `compile_status_rule` from the assembly, and the admission of FederatedTypeConfigs
compiles with it, so a rule that is accepted is a rule that runs. The estimate for ordinary data must be within the
limit of admission policies. For data that exceed it the evaluation fails and nothing runs
(`apiserver/semantics/cel/budget.py`).
"""

from functools import lru_cache
from typing import Final

from federation.admission.celrules import OBJECT_FIELDS, compile_rule
from federation.apiserver.semantics.cel.composition import Environment
from federation.planning.aggregation.rules import Evaluate, RuleError

_SOURCE: Final = {"source": OBJECT_FIELDS}
_JSON_TYPES: Final = ("DYN", "BOOL", "INT", "UINT", "DOUBLE", "STRING", "NULL", "LIST", "MAP")
_COMPILED_MAX: Final = 512


@lru_cache(_COMPILED_MAX)
def compile_status_rule(text: str, returns: str = "") -> Evaluate:
    """Compile an expression, which may have to return a type, such as LIST; RuleError."""
    run, type_ = compile_rule(Environment(("source:MAP", "members:LIST"), _SOURCE, is_new=True), text)
    if type_.partition("<")[0] not in ((returns, "DYN") if returns else _JSON_TYPES):
        wanted = returns.lower() if returns else "a JSON value"
        raise RuleError(f"must evaluate to {wanted} but got {type_.lower()}")
    return run
