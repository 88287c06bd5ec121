"""The strategy of LimitRanges: the defaults of Kubernetes, and limits that do not contradict each other."""

from collections.abc import Iterator
from typing import Any

from federation.apimachinery import nameformats
from federation.apimachinery.fielderrors import Causes, duplicate, forbidden, invalid, problems_of, required
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.quota.limitranges import CLAIM, POD, complete_entry, contradictions
from federation.apiserver.semantics.strategies.base import Strategy
from federation.apiserver.semantics.validation.quantityvalidation import validate_quantity

_AMOUNTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


class LimitRangeStrategy(Strategy):
    """v1 LimitRange; `admission/limitranges.py` enforces it."""

    allow_create_on_update = True

    def default(self, obj: Object) -> None:
        for entry in (obj.get("spec") or {}).get("limits") or ():
            complete_entry(entry)

    def validate(self, obj: Object) -> Causes:
        causes: Causes = []
        types: set[str] = set()
        for index, entry in enumerate((obj.get("spec") or {}).get("limits") or ()):
            at = f"spec.limits[{index}]"
            type_ = entry.get("type") or ""
            if not type_:
                causes.append(required(f"{at}.type"))
            elif problems := _type_problems(type_):
                causes += problems_of(f"{at}.type", type_, problems)
            elif type_ in types:
                causes.append(duplicate(f"{at}.type", type_))
            types.add(type_)
            causes += _validate_entry(entry, type_, at)
        return causes


def _type_problems(type_: str) -> list[str]:
    """Return the problems of the type of a limit: a standard one, or one with a domain."""
    if problems := nameformats.qualified_name(type_):
        return problems
    is_known = "/" in type_ or type_ in {POD, CLAIM, "Container"}
    return [] if is_known else ["must be a standard limit type or fully qualified"]


def _validate_entry(entry: dict[str, Any], type_: str, at: str) -> Iterator[dict[str, str]]:
    malformed = [
        found
        for field in _AMOUNTS
        for name, amount in (entry.get(field) or {}).items()
        for found in validate_quantity(amount, f"{at}.{field}[{name}]")
    ]
    if malformed:
        yield from malformed
        return
    if type_ == POD:
        for field in ("default", "defaultRequest"):
            if entry.get(field):
                yield forbidden(f"{at}.{field}", "may not be specified when `type` is 'Pod'")
    if type_ == CLAIM and not any("storage" in (entry.get(field) or {}) for field in ("min", "max")):
        yield required(f"{at}.limits", "either minimum or maximum storage value is required, but neither was provided")
    for field, name, value, problem in contradictions(entry):
        yield invalid(f"{at}.{field}[{name}]", value, problem)
