"""Validate the CEL expressions that select devices in ResourceClaims and DeviceClasses.

They are compiled with a `device` of any type, and their cost is that for ordinary devices. The scheduler of a member
evaluates them. `devicevalidation.py` validates the other fields.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from federation.apimachinery.fielderrors import Causes, invalid, required, too_long
from federation.apiserver.semantics.cel.budget import TENANT_LIMIT
from federation.apiserver.semantics.cel.programs import CompileError, check_cost, compile_expression

_EXPRESSION_BYTES_MAX: Final = 10 * 1024
_CLAIM_BYTES_MAX: Final = 32 * 1024
"""Of all expressions of one claim. A kibibyte takes 3 ms to compile, and a claim may have thousands of expressions."""
Fields = Mapping[str, Any]


def validate_selector(selector: Fields, field: str) -> Causes:
    """Validate one entry of `selectors`."""
    found = selector.get("cel")
    if found is None:
        return [required(f"{field}.cel")]
    text, at = found.get("expression") or "", f"{field}.cel.expression"
    if len(text.encode()) > _EXPRESSION_BYTES_MAX:
        return [too_long(at, _EXPRESSION_BYTES_MAX)]
    if "semver" in text.lower():
        return []  # the runtime has no semantic versions; the scheduler compiles the expression again
    try:
        check_cost(compile_expression(text, ("device",), returns="BOOL", limit=TENANT_LIMIT))
    except CompileError as error:
        return [invalid(at, text, str(error))]
    return []


def selector_bytes_causes(requests: Iterable[Any], field: str) -> Causes:
    """Return the cause if the expressions of all requests of a claim are too long together."""
    total = sum(len(text.encode()) for request in requests for text in _expressions(request))
    return [too_long(field, _CLAIM_BYTES_MAX)] if total > _CLAIM_BYTES_MAX else []


def _expressions(request: Fields) -> Iterator[str]:
    for part in (request, request.get("exactly") or {}, *(request.get("firstAvailable") or ())):
        for selector in part.get("selectors") or ():
            yield (selector.get("cel") or {}).get("expression") or ""
