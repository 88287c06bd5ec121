"""Types of scalars in validation rules, which are checked when a definition is written."""

import pytest

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
