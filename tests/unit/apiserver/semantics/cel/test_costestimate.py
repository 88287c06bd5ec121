"""Cost estimates of rules equal those of kube-apiserver 1.32 for the same rules and schema."""

from typing import Any

import pytest

from federation.apiserver.semantics.cel.checkedexpr import parse_checked_expr
from federation.apiserver.semantics.cel.programs import compile_expression
from federation.apiserver.semantics.crd.rulevalidation import validate_rules

TEXT, SHORT = {"type": "string"}, {"type": "string", "maxLength": 10}


def a_list(items: dict, most: int | None = None) -> dict[str, Any]:
    return {"type": "array", "items": items, **({} if most is None else {"maxItems": most})}


def an_object(**fields: dict) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def a_map(values: dict, most: int | None = None) -> dict[str, Any]:
    limit = {} if most is None else {"maxProperties": most}
    return {"type": "object", "additionalProperties": values, **limit}


PARTS = an_object(n=TEXT, m=SHORT, k=a_list(SHORT, 5), x=a_list(an_object(y=SHORT), 8))
SPEC = an_object(
    s=TEXT,
    s10=SHORT,
    i={"type": "integer"},
    port={"x-kubernetes-int-or-string": True},
    l=a_list(TEXT),
    l10=a_list(SHORT, 10),
    lo16=a_list(PARTS, 16),
    lo64=a_list(an_object(m=SHORT), 64),
    m=a_map(TEXT),
    m10=a_map(SHORT, 10),
    o=an_object(a=TEXT, free={"x-kubernetes-preserve-unknown-fields": True}),
    **{"a-b": TEXT, "namespace": TEXT},
)


def errors_of(rule: str, spec: dict | None = None, **more: Any) -> list[str]:
    described = {**(spec or SPEC), "x-kubernetes-validations": [{"rule": rule, **more}]}
    schema = {"type": "object", "properties": {"spec": described}}
    return [f"{cause['field']}: {cause['message']}" for cause in validate_rules(schema, "at")]


@pytest.mark.parametrize(
    "rule",
    [
        "self.s.matches('^[a-z]+$')",
        "self.l.all(x, x == 'a')",
        "self.l10.all(x, self.l10.exists_one(y, x == y))",
        "self.lo64.all(x, self.lo64.all(y, self.lo64.all(z, x.m == y.m)))",
        "self.lo16.all(x, x.x.all(y, self.lo16.exists(z, z.x.exists(w, w.y == y.y))))",
        "self.m10.all(k, self.m10[k].matches('^[a-z]+$'))",
        "self.lo16.map(x, x.m).exists(y, y == 'a')",
        "has(self.lo16) ? self.lo16.all(x, has(x.k) && x.k.all(y, y != 'a')) : true",
        "type(self.port) == int || self.port.matches('^[0-9]+$')",
        "quantity(self.s).isGreaterThan(quantity('1')) && isURL(self.s) && url(self.s).getHost() == 'a'",
        "self.a__dash__b == self.__namespace__ && self.?s.orValue('') == 'a'",
        "self.s10.split(',').all(x, x.size() < 2) && self.s10.replace('a', 'b') == 'a'",
    ],
)
def test_rules_within_the_cost_limit_are_accepted(rule: str) -> None:
    assert errors_of(rule) == []


@pytest.mark.parametrize(
    ("rule", "factor"),
    [
        ("self.lo16.all(x, self.lo16.exists_one(y, x.n == y.n))", "8.1x"),
        ("self.l.filter(x, x == 'a').size() == 1", "1.6x"),
        ("self.l.all(x, self.l.exists(y, x == y))", "more than 100x"),
        ("self.m.all(k, self.m[k].matches('^[a-z]+$'))", "more than 100x"),
        ("self.s.contains(self.s)", "more than 100x"),
        ("self.l.isSorted()", "more than 100x"),
        ("self.l.join(',') == 'a'", "more than 100x"),
        ("self.l.indexOf('a') == 1", "more than 100x"),
    ],
)
def test_rules_above_the_cost_limit_are_refused_with_the_factor(rule: str, factor: str) -> None:
    found = errors_of(rule)[0]
    assert found.startswith("at.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost")
    assert f"exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems" in found


@pytest.mark.parametrize(
    ("rule", "value", "factor"),
    [
        ("(self + self).all(x, x == 'a')", a_list(SHORT, 10), ""),
        ("(self + self).all(x, x.matches('^[a-z]+$'))", a_list(SHORT, 10_000), "4.0x"),
        ("self.filter(x, x != 'a').all(x, x.matches('^[a-z]+$'))", a_list(SHORT, 100_000), "more than 100x"),
        ("self.map(x, x).all(x, x.all(k, k == 'a'))", a_list(a_map(SHORT, 10), 10), ""),
        ("self.all(x, isIP(x))", a_list(TEXT, 100), "3.1x"),
        ("self.all(x, isURL(x))", a_list(TEXT, 100), ""),
        ("self.all(x, cidr('10.0.0.0/8').containsIP(x))", a_list(SHORT, 1000), ""),
    ],
)
def test_items_of_a_computed_list_are_as_large_as_self(rule: str, value: dict, factor: str) -> None:
    """As kube-apiserver 1.36 answers: it finds sizes by paths from `self`, and a computed list has none."""
    found = errors_of(rule, value)
    assert f"factor of {factor} " in found[0] if factor else found == []


def test_cost_of_a_rule_below_lists_is_multiplied_by_their_items() -> None:
    rule = "self.l10.all(x, x == 'a')"
    ruled = {**SPEC, "x-kubernetes-validations": [{"rule": rule}]}
    few = {"type": "object", "properties": {"spec": a_list(ruled, 100)}}
    many = {"type": "object", "properties": {"spec": a_list(a_list(ruled, 1000), 1000)}}
    assert validate_rules(few, "at") == []
    (found,) = validate_rules(many, "at")
    assert found["field"] == "at.properties[spec].items.items.x-kubernetes-validations[0].rule"
    most = {"type": "object", "properties": {"spec": a_list(a_list(ruled, 1000), 10_000)}}
    share, total = validate_rules(most, "at")[1:]
    assert share["message"].startswith("Forbidden: contributed to estimated rule cost total exceeding cost limit")
    assert (total["field"], "for entire OpenAPIv3 schema exceeds budget" in total["message"]) == ("at", True)


def test_message_expression_has_a_cost() -> None:
    (found, *_) = errors_of("self.s10 == 'x'", messageExpression="self.l.map(x, x + self.s).join(',')")
    assert found.startswith("at.properties[spec].x-kubernetes-validations[0].messageExpression: Forbidden")
    assert "estimated messageExpression cost exceeds budget" in found


@pytest.mark.parametrize(
    ("rule", "place", "line"),
    [
        ("self.nope == 1", "1:5", "self.nope == 1\n | ....^"),
        ("has(self.o.nope)", "1:4", "has(self.o.nope)\n | ...^"),
        ("self.o.free == 1", "1:7", "self.o.free == 1\n | ......^"),
        ("self.i == 1 &&\n self.lo16.all(x, x.nope)", "2:20", " self.lo16.all(x, x.nope)\n | ...................^"),
    ],
)
def test_undefined_field_is_reported_with_its_position(rule: str, place: str, line: str) -> None:
    (found,) = errors_of(rule)
    name = "free" if "free" in rule else "nope"
    assert f"compilation failed: ERROR: <input>:{place}: undefined field '{name}'\n | {line}" in found


def test_parsed_tree_has_the_nodes_of_the_expression() -> None:
    tree, places = parse_checked_expr(compile_expression("self.a.all(x, x > -2 || 'b' in [x])", ("self",)).serialized())
    assert (tree.kind, tree.name, tree.target.name if tree.target else "") == ("loop", "x", "a")
    step = tree.parts[2]
    either = step.parts[1]
    assert (step.name, either.name, [part.name for part in either.parts]) == ("_&&_", "_||_", ["_>_", "@in"])
    assert either.parts[0].parts[1].value == -2
    assert either.parts[1].parts[0].value == "b"
    assert places[either.parts[0].id] == len("self.a.all(x, x ")
