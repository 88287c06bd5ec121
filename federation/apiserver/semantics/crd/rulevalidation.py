"""Validate the CEL rules of a CustomResourceDefinition: they must compile, fit the cost budget and be correlatable.

A transition rule needs the old value, so it may not be below a list whose items have no keys. A rule below lists and
maps runs once per item, so its cost is multiplied by the largest number of items. `keywordvalidation.py` checks the
other fields of a rule; `cel/rules.py` evaluates accepted rules. Pure.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from federation.apimachinery.fielderrors import Causes, forbidden, invalid, invalid_go
from federation.apiserver.semantics.cel.checkedexpr import parse_checked_expr
from federation.apiserver.semantics.cel.costestimate import CostEstimator
from federation.apiserver.semantics.cel.decltypes import REQUEST_BYTES_MAX, DeclType, min_json_size, root_decl_type
from federation.apiserver.semantics.cel.programs import CompileError, Program, format_error_at
from federation.apiserver.semantics.cel.rules import compile_rule
from federation.apiserver.semantics.crd.ruletypes import check_types

RULE_COST_MAX: Final = 10_000_000
"""The cost limit of one rule, multiplied by the number of values it runs for in one object; Kubernetes' number."""
TOTAL_COST_MAX: Final = 100_000_000
"""The cost limit of all rules of a schema together."""
_KEY: Final = "x-kubernetes-validations"
_SHOWN_MAX: Final = 4
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)
_GO_FIELDS: Final = ("Rule", "Message", "MessageExpression", "Reason", "FieldPath", "OptionalOldSelf")
_GO_TEXTS: Final = frozenset({"Rule", "Message", "MessageExpression", "FieldPath"})
_GO_ESCAPES: Final = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
_GO_WORDS: Final = (
    (re.compile(r"google\.protobuf\.(Duration|Timestamp)"), lambda found: found[1].lower()),
    (re.compile(r"\bnull_type\b"), "null"),
    (re.compile("cannot be the range of"), "cannot be range of"),
    (
        re.compile(r"expression of type '(.+?)' cannot be the operand of a select operation"),
        r"type '\1' does not support field selection",
    ),
    (re.compile("^must evaluate to bool$"), "cel expression must evaluate to a bool"),
)
_SHARE: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_UNKNOWN: Final = DeclType("unknown", 1)


@dataclass(frozen=True, slots=True)
class _Context:
    """The properties that a node inherits from the nodes above."""

    count: float = 1
    """The largest number of values of the node in one object, math.inf if unlimited."""
    uncorrelated: str = ""
    """The path of the outermost list above whose items have no keys, "" if there is none."""


@dataclass(slots=True)
class _Result:
    causes: Causes = field(default_factory=list)
    costs: list[tuple[float, str]] = field(default_factory=list)


def validate_rules(raw: Mapping[str, Any], path: str) -> Causes:
    """Return the causes of invalid rules in the openAPIV3Schema at `path` of a CRD."""
    result = _Result()
    _check(raw, path, _Context(), result, is_root=True)
    total = sum(cost for cost, _ in result.costs)
    if total > TOTAL_COST_MAX:
        costly = sorted((cost, at) for cost, at in result.costs if cost >= TOTAL_COST_MAX / 100)[::-1]
        result.causes += [forbidden(at, _SHARE) for _, at in costly[:_SHOWN_MAX]]
        name = f"{_KEY} estimated rule cost total for entire OpenAPIv3 schema"
        result.causes.append(forbidden(path, _over_budget(name, total, TOTAL_COST_MAX)))
    return result.causes


def _check(raw: Any, path: str, context: _Context, result: _Result, *, is_root: bool = False) -> None:
    if not isinstance(raw, Mapping):
        return
    if rules := raw.get(_KEY):
        decl = root_decl_type(raw, is_resource=is_root) or _UNKNOWN
        count = context.count
        if math.isinf(count):
            count = REQUEST_BYTES_MAX // ((min_json_size(raw) or 0) + 1)
        for index, rule in enumerate(rules):
            _check_rule(rule, f"{path}.{_KEY}[{index}]", decl, replace(context, count=count), result)
    for name, child in (raw.get("properties") or {}).items():
        _check(child, f"{path}.properties[{name}]", context, result)
    entries = replace(context, count=context.count * _count_max(raw.get("maxProperties")))
    _check(raw.get("additionalProperties"), f"{path}.additionalProperties", entries, result)
    items = replace(context, count=context.count * _count_max(raw.get("maxItems")))
    if not items.uncorrelated and raw.get("x-kubernetes-list-type") != "map":
        items = replace(items, uncorrelated=path)
    _check(raw.get("items"), f"{path}.items", items, result)


def _check_rule(raw: Mapping[str, Any], path: str, decl: DeclType, context: _Context, result: _Result) -> None:
    causes, at = result.causes, f"{path}.rule"
    try:
        rule = compile_rule({**raw, "messageExpression": ""})
        is_optional = rule.has_optional_old_self
        known_old = DeclType("list", 1, of=_UNKNOWN) if is_optional else decl
        is_wrapped = rule.is_transition and is_optional
        cost = _estimate_cost(rule.program, raw["rule"], decl, known_old, is_wrapped=is_wrapped)
        check_types(rule, decl)
    except CompileError as error:
        causes.append(invalid_go(at, _to_go(raw), _in_words_of_go(str(error))))
        return
    # math.inf * 0 is not a number.
    _record_cost(result, at, "estimated rule cost", cost * context.count if cost and context.count else 0)
    if raw.get("messageExpression"):
        at = f"{path}.messageExpression"
        try:
            message = compile_rule(raw).message_program
            assert message is not None
            cost = _estimate_cost(message, raw["messageExpression"], decl, known_old, is_wrapped=is_optional)
        except CompileError as error:
            causes.append(invalid_go(at, _to_go(raw), f"messageExpression {_in_words_of_go(str(error))}"))
        else:
            _record_cost(result, at, "estimated messageExpression cost", cost)
    if rule.is_transition and context.uncorrelated:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {context.uncorrelated}"
        causes.append(invalid(f"{path}.rule", raw["rule"], text))
    elif not rule.is_transition and raw.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        causes.append(invalid(f"{path}.optionalOldSelf", raw["optionalOldSelf"], text))


def _to_go(raw: Mapping[str, Any]) -> str:
    """Return a rule as kube-apiserver prints it."""
    shown = {name: raw.get(f"{name[0].lower()}{name[1:]}") for name in _GO_FIELDS}
    text = orjson.dumps({name: "" if shown[name] is None and name in _GO_TEXTS else shown[name] for name in shown})
    return text.decode().translate(_GO_ESCAPES)


def _in_words_of_go(text: str) -> str:
    """Return an error of the compiler with the words of Go's compiler."""
    for pattern, replacement in _GO_WORDS:
        text = pattern.sub(replacement, text)
    return text


def _estimate_cost(program: Program, text: str, decl: DeclType, known_old: DeclType, *, is_wrapped: bool) -> float:
    """Return the largest cost of a program; CompileError if it selects a field that the schema does not have."""
    tree, offsets = parse_checked_expr(program.serialized())
    estimator = CostEstimator({"self": decl, "oldSelf": decl, "knownOld": known_old})
    cost = estimator.estimate(tree)
    for node, problem in estimator.undefined.items():
        # The offsets of a wrapped expression are not those of the user's text.
        shown = f"ERROR: <input>: {problem}" if is_wrapped else format_error_at(text, offsets.get(node, 0), problem)
        raise CompileError(f"compilation failed: {shown}")
    return cost


def _record_cost(result: _Result, at: str, name: str, cost: float) -> None:
    if cost > RULE_COST_MAX:
        result.causes.append(forbidden(at, _over_budget(name, cost, RULE_COST_MAX)))
    result.costs.append((cost, at))


def _over_budget(name: str, cost: float, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"


def _count_max(limit: Any) -> float:
    return math.inf if limit is None else max(0, limit)
