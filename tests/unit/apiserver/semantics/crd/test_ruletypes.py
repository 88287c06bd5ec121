"""Types of values in validation rules, which are checked when a definition is written. kube-apiserver decides alike."""

import pytest
from tests.support.rest import Object

from federation.apiserver.semantics.crd.rulevalidation import validate_rules


def problems(type_: str, rule: str) -> list[str]:
    schema = {"type": type_, "maxLength": 9} if type_ == "string" else {"type": type_}
    checked = {**schema, "x-kubernetes-validations": [{"rule": rule}]}
    return [each["field"] for each in validate_rules({"type": "object", "properties": {"a": checked}}, "s")]


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        ("string", "self > 3"),
        ("string", "self == oldSelf + 1"),
        ("integer", "self == 'x'"),
        ("integer", "self.startsWith('x')"),
        ("number", "self == 'x'"),
        ("boolean", "self > 3"),
        ("string", "semver(self) > 3"),
    ],
)
def test_a_rule_that_uses_a_scalar_as_another_type_is_refused(type_: str, rule: str) -> None:
    assert problems(type_, rule) == ["s.properties[a].x-kubernetes-validations[0].rule"]


@pytest.mark.parametrize(
    ("type_", "rule"),
    [
        ("string", "self.size() > 3 && self.matches('^a')"),
        ("string", "self == oldSelf"),
        ("string", "isSemver(self) && quantity(self).isGreaterThan(quantity('1'))"),
        ("integer", "self > 3 && self % 2 == 0"),
        ("number", "self > 3.5"),
        ("number", "self > 3"),
        ("integer", "self < 2.5"),
        ("boolean", "!self || self"),
    ],
)
def test_a_rule_whose_types_fit_is_accepted(type_: str, rule: str) -> None:
    assert problems(type_, rule) == []


TEXT: Object = {"type": "string", "maxLength": 9}
NUMBER: Object = {"type": "integer"}
SCHEMAS: dict[str, Object] = {
    "texts": {"type": "array", "maxItems": 5, "items": TEXT},
    "numbers": {"type": "object", "maxProperties": 5, "additionalProperties": NUMBER},
    "time": {"type": "string", "format": "date-time"},
    "duration": {"type": "string", "format": "duration"},
    "object": {
        "type": "object",
        "properties": {
            "a": TEXT,
            "b": NUMBER,
            "in": TEXT,
            "below": {"type": "object", "properties": {"c": NUMBER}},
            "parts": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"name": TEXT}}},
            "either": {"x-kubernetes-int-or-string": True, "maxLength": 9},
        },
    },
}


def causes(schema: str, rule: str) -> list[str]:
    checked = {**SCHEMAS[schema], "x-kubernetes-validations": [{"rule": rule}]}
    raw = {"type": "object", "properties": {"value": checked}}
    return [cause["message"] for cause in validate_rules(raw, "schema")]


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ("texts", "self.all(x, x > 1)"),
        ("texts", "self == 'x'"),
        ("texts", "1 in self"),
        ("texts", "self[0] == 1"),
        ("texts", "self.map(x, x + 1).size() > 0"),
        ("numbers", "self['a'] == 'x'"),
        ("numbers", "self.all(k, k > 1)"),
        ("time", "self > 3"),
        ("time", "self == {}"),
        ("time", "has(self.a)"),
        ("duration", "self.getFullYear() > 1"),
        ("duration", "self < timestamp('2030-01-01T00:00:00Z')"),
        ("object", "self.a > 3"),
        ("object", "has(self.a) && self.a + 1 == 2"),
        ("object", "self.below.c == 'x'"),
        ("object", "self['a'] == 'x'"),
        ("object", "self.all(k, k == 'a')"),
        ("object", "size(self) > 1"),
        ("object", "self == {}"),
        ("object", "self == 3"),
        ("object", "'a' in self"),
        ("object", "self.a == oldSelf.b"),
        ("texts", "[1, 'a'].size() == 2"),
        ("texts", "{1: 'a', 'b': 2}.size() == 2"),
        ("texts", "cel.bind(x, self, x == self)"),
        ("texts", "math.greatest(1, 2) == 2"),
        ("texts", "base64.encode(b'a') == ''"),
    ],
)
def test_a_value_of_another_type_is_refused(schema: str, rule: str) -> None:
    assert any("compilation failed: ERROR" in text for text in causes(schema, rule)), causes(schema, rule)


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        ("texts", "self.all(x, x.startsWith('a'))"),
        ("texts", "self == [] || 'a' in self"),
        ("texts", "self.map(x, size(x)).sum() > 1"),
        ("numbers", "self.all(k, self[k] > 1) && self.size() > 0"),
        ("numbers", "self.a == 1"),
        ("time", "self > timestamp('2020-01-01T00:00:00Z') && self.getFullYear() > 2000"),
        ("duration", "self > duration('1s')"),
        ("object", "has(self.a) && self.a.size() > 3 && self.b > 2.5"),
        ("object", "self == oldSelf || self != null"),
        ("object", "!has(self.below) || self.below != null && self.below.c == 1"),
        ("object", "self.?a.orValue('x') == 'x'"),
        ("object", "self.__in__ == 'x'"),
        ("object", "self.parts.all(x, self.parts.exists_one(y, has(y.name) && x.name == y.name))"),
        ("object", "self.either == 5 || self.either == 'x'"),
        ("object", "self in [self] && type(self.a) == string"),
        ("object", "self.b == oldSelf.b ? true : self.a != oldSelf.a"),
    ],
)
def test_what_fits_is_accepted(schema: str, rule: str) -> None:
    assert causes(schema, rule) == []


def test_a_refusal_reads_like_kube_apiservers() -> None:
    (text,) = causes("time", "self > 3")
    rule = (
        r'{"Rule":"self \u003e 3","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
        '"OptionalOldSelf":null}'
    )
    problem = "found no matching overload for '_>_' applied to '(timestamp, int)'"
    assert text == f"Invalid value: {rule}: compilation failed: ERROR: <input>:1:6: {problem}\n | self > 3\n | .....^"
