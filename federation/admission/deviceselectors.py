"""The CEL engine for selectors of devices: those of DeviceClasses of members, and those of tenants' claims.

The scheduler asks for each kind of device of each cluster, on its loop, so the limit of one evaluation is a fiftieth
of that of other expressions of tenants. An expression that fails selects nothing, as one that does not compile.

Decision: docs/decisions/0162-devices-are-counted-as-resources.md
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from federation.admission.celrules import compile_rule
from federation.apiserver.semantics.cel.budget import Limit
from federation.apiserver.semantics.cel.composition import Environment
from federation.planning.aggregation.rules import RuleError
from federation.planning.clusters.devicekinds import Kind

LIMIT: Final = Limit(time_ms=0.2, bytes=256 * 1024)
_EXPRESSIONS_MAX: Final = 512
_KINDS_MAX: Final = 1_024
"""Results that are kept for one expression."""


def selects(text: str, kind: Kind) -> bool:
    """Return whether an expression selects devices of a kind."""
    return _compiled(text)(kind)


@lru_cache(_EXPRESSIONS_MAX)
def _compiled(text: str) -> Callable[[Kind], bool]:
    known: dict[str, bool] = {}
    try:
        run, _ = compile_rule(Environment(("device:MAP",), limit=LIMIT), text)
    except RuleError:
        return lambda _kind: False

    def selects_kind(kind: Kind) -> bool:
        found = known.get(kind.digest)
        if found is None:
            try:
                found = run({"device": kind.data}) is True
            except RuleError:
                found = False
            if len(known) >= _KINDS_MAX:
                known.clear()
            known[kind.digest] = found
        return found

    return selects_kind
