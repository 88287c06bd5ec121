"""The rules of a CustomResourceDefinition when it is written: do they compile, what do they cost, may they run there?

A rule that compares with the old value needs to find it, so it may not stand below a list whose items cannot be told
apart. A rule below lists and maps runs once for each of their items, so its cost is multiplied by how many there can
be. What a rule must say beside its expression is `schema/keywords.py`'s; `rules.py` runs what passed here. Pure.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from federation.registry.cel.costs import Estimate
from federation.registry.cel.programs import CompileError, Program
from federation.registry.cel.rules import compile_rule
from federation.registry.cel.sizes import REQUEST_BYTES_MAX, Shape, root_shape, smallest_size
from federation.registry.cel.trees import read_tree
from federation.registry.validation.fields import Causes, forbidden, invalid

RULE_COST_MAX: Final = 10_000_000
"""What one rule may cost, times the number of values it can meet in one object; Kubernetes' number."""
TOTAL_COST_MAX: Final = 100_000_000
"""What all rules of a schema may cost together."""
_KEY: Final = "x-kubernetes-validations"
_SHOWN_MAX: Final = 4
_ADVICE: Final = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)
_SHARE: Final = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_UNKNOWN: Final = Shape("unknown", 1)


@dataclass(frozen=True, slots=True)
class _Place:
    """What the way to a node says about it."""

    count: float = 1
    """How many values of the node one object can have, math.inf when nothing limits it."""
    uncorrelated: str = ""
    """The path of the outermost list above whose items have no identity, "" when there is none."""


@dataclass(slots=True)
class _Walk:
    causes: Causes = field(default_factory=list)
    costs: list[tuple[float, str]] = field(default_factory=list)


def rule_problems(raw: Mapping[str, Any], path: str) -> Causes:
    """Return what is wrong with the rules anywhere in an openAPIV3Schema at `path` of its definition."""
    walk = _Walk()
    _check(raw, path, _Place(), walk, is_root=True)
    total = sum(cost for cost, _ in walk.costs)
    if total > TOTAL_COST_MAX:
        dear = sorted((cost, at) for cost, at in walk.costs if cost >= TOTAL_COST_MAX / 100)[::-1]
        walk.causes += [forbidden(at, _SHARE) for _, at in dear[:_SHOWN_MAX]]
        name = f"{_KEY} estimated rule cost total for entire OpenAPIv3 schema"
        walk.causes.append(forbidden(path, _too_dear(name, total, TOTAL_COST_MAX)))
    return walk.causes


def _check(raw: Any, path: str, place: _Place, walk: _Walk, *, is_root: bool = False) -> None:
    if not isinstance(raw, Mapping):
        return
    if rules := raw.get(_KEY):
        shape = root_shape(raw, is_resource=is_root) or _UNKNOWN
        count = place.count
        if math.isinf(count):
            count = REQUEST_BYTES_MAX // ((smallest_size(raw) or 0) + 1)
        for index, rule in enumerate(rules):
            _check_rule(rule, f"{path}.{_KEY}[{index}]", shape, replace(place, count=count), walk)
    for name, child in (raw.get("properties") or {}).items():
        _check(child, f"{path}.properties[{name}]", place, walk)
    entries = replace(place, count=place.count * _most(raw.get("maxProperties")))
    _check(raw.get("additionalProperties"), f"{path}.additionalProperties", entries, walk)
    items = replace(place, count=place.count * _most(raw.get("maxItems")))
    if not items.uncorrelated and raw.get("x-kubernetes-list-type") != "map":
        items = replace(items, uncorrelated=path)
    _check(raw.get("items"), f"{path}.items", items, walk)


def _check_rule(raw: Mapping[str, Any], path: str, shape: Shape, place: _Place, walk: _Walk) -> None:
    causes, at = walk.causes, f"{path}.rule"
    try:
        rule = compile_rule({**raw, "messageExpression": ""})
        known = Shape("list", 1, of=_UNKNOWN) if rule.takes_absent else shape
        cost = _priced(rule.program, raw["rule"], shape, known, is_wrapped=rule.is_transition and rule.takes_absent)
    except CompileError as error:
        causes.append(invalid(at, dict(raw), str(error)))
        return
    _observe(walk, at, "estimated rule cost", _product(cost, place.count))
    if raw.get("messageExpression"):
        at = f"{path}.messageExpression"
        try:
            message = compile_rule(raw).message_program
            assert message is not None
            cost = _priced(message, raw["messageExpression"], shape, known, is_wrapped=rule.takes_absent)
        except CompileError as error:
            causes.append(invalid(at, dict(raw), f"messageExpression {error}"))
        else:
            _observe(walk, at, "estimated messageExpression cost", cost)
    if rule.is_transition and place.uncorrelated:
        text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
        causes.append(invalid(f"{path}.rule", raw["rule"], text))
    elif not rule.is_transition and raw.get("optionalOldSelf") is not None:
        text = "may not be set if oldSelf is not used in rule"
        causes.append(invalid(f"{path}.optionalOldSelf", raw["optionalOldSelf"], text))


def _priced(program: Program, text: str, shape: Shape, known: Shape, *, is_wrapped: bool) -> float:
    """Return what a program can cost at most; CompileError when it names a field that the schema does not have."""
    tree, places = read_tree(program.serialized())
    estimate = Estimate({"self": shape, "oldSelf": shape, "knownOld": known})
    cost = estimate.cost(tree)
    for node, why in estimate.undefined.items():
        # A text that was wrapped has no places of its own.
        at, line = ("", "") if is_wrapped else _where(text, places.get(node, 0))
        raise CompileError(f"compilation failed: ERROR: <input>{at}: {why}{line}")
    return cost


def _where(text: str, offset: int) -> tuple[str, str]:
    """Return the place of an error as ":line:column", and its line with an arrow to it."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:].partition("\n")[0]
    number = text.count("\n", 0, offset) + 1
    return f":{number}:{offset - start + 1}", f"\n | {line}\n | {'.' * (offset - start)}^"


def _observe(walk: _Walk, at: str, name: str, cost: float) -> None:
    if cost > RULE_COST_MAX:
        walk.causes.append(forbidden(at, _too_dear(name, cost, RULE_COST_MAX)))
    walk.costs.append((cost, at))


def _too_dear(name: str, cost: float, limit: int) -> str:
    factor = cost / limit
    shown = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} {_ADVICE}"


def _most(limit: Any) -> float:
    return math.inf if limit is None else max(0, limit)


def _product(cost: float, count: float) -> float:
    return 0 if not cost or not count else cost * count
