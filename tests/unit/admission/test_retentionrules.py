"""Retention rules: which value of a field is delivered over a member object."""

from typing import Any

import pytest

from federation.admission.retentionrules import parse_type
from federation.apimachinery.resources import Object
from federation.planning.rendering.retention import RetentionError, retain_for_apply

SOURCE = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets", "scope": "Namespaced"}
LARGER = "member > template ? member : template"
AUTOSCALED = "'scaled' in object.metadata.?labels.orValue({}) ? member : template"


def delivered(template: Object, live: Object, *rules: Object, **metadata: Any) -> Object:
    """Return what is applied over a member object, without its head."""
    config = {"metadata": {"name": "widgets"}, "spec": {"sourceType": SOURCE, "retention": list(rules)}}
    head = {"apiVersion": "example.com/v1", "kind": "Widget"}
    wanted = {**head, "metadata": {"name": "a"}, **template}
    held = {**head, "metadata": {"name": "a", **metadata}, **live}
    found = retain_for_apply(wanted, held, rules=parse_type(config).retention)
    return {key: value for key, value in found.items() if key in template}


@pytest.mark.parametrize(
    ("template", "live", "rule", "expected"),
    [
        ({"spec": {"size": 1}}, {"spec": {"size": 2}}, {"path": "spec.size"}, {"spec": {"size": 2}}),
        ({"spec": {"size": 1}}, {"spec": {}}, {"path": "spec.size"}, {"spec": {"size": 1}}),
        ({"spec": {"size": 1}}, {}, {"path": "spec.size"}, {"spec": {"size": 1}}),
        ({"spec": {}}, {"spec": {"size": 2}}, {"path": "spec.size"}, {"spec": {}}),
        ({"spec": {"size": 1}}, {"spec": {"size": 2}}, {"path": "spec.size", "expression": LARGER}, {"spec": {"size": 2}}),
        ({"spec": {"size": 3}}, {"spec": {"size": 2}}, {"path": "spec.size", "expression": LARGER}, {"spec": {"size": 3}}),
        ({"spec": {"size": 3}}, {"spec": {}}, {"path": "spec.size", "expression": LARGER}, {"spec": {"size": 3}}),
        ({"spec": {"size": 3}}, {"spec": {"size": 2}}, {"path": "spec.size", "expression": "null"}, {"spec": {}}),
        ({"data": {"a.b": "1"}}, {"data": {"a.b": "2"}}, {"path": "/data/a.b"}, {"data": {"a.b": "2"}}),
        (
            {"spec": {"parts": [{"name": "x", "image": "1"}, {"name": "y", "image": "1"}]}},
            {"spec": {"parts": [{"name": "y", "image": "2"}]}},
            {"path": "spec.parts[].image"},
            {"spec": {"parts": [{"name": "x", "image": "1"}, {"name": "y", "image": "2"}]}},
        ),
    ],
)  # fmt: skip
def test_a_rule_chooses_between_template_and_member(
    template: Object, live: Object, rule: Object, expected: Object
) -> None:
    assert delivered(template, live, rule) == expected


@pytest.mark.parametrize(("labels", "size"), [({"scaled": ""}, 2), ({}, 1)])
def test_an_expression_sees_the_member_object(labels: dict[str, str], size: int) -> None:
    rule = {"path": "spec.size", "expression": AUTOSCALED}
    assert delivered({"spec": {"size": 1}}, {"spec": {"size": 2}}, rule, labels=labels) == {"spec": {"size": size}}


@pytest.mark.parametrize("expression", ["member >", "member > 'a'", "object.spec.missing"])
def test_a_rule_that_fails_is_an_error_of_the_object(expression: str) -> None:
    with pytest.raises(RetentionError, match="a retention rule of its FederatedTypeConfig fails: "):
        delivered({"spec": {"size": 1}}, {"spec": {"size": 2}}, {"path": "spec.size", "expression": expression})
