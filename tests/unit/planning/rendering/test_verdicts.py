"""The kinds whose creation some admission configuration of the host may refuse."""

from typing import Any

import pytest

from federation.planning.rendering.verdicts import compile_concerns


@pytest.mark.parametrize(
    ("rule", "pairs"),
    [
        ({"operations": ["CREATE"], "apiGroups": ["apps"], "resources": ["deployments"]}, {("apps", "deployments")}),
        ({"operations": ["*"], "apiGroups": [""], "resources": ["pods", "pods/exec"]}, {("", "pods")}),
        ({"operations": ["CREATE"], "apiGroups": [""], "resources": ["*/*"]}, {("", "*")}),
        ({"operations": ["CREATE"]}, {("*", "*")}),
        ({"operations": ["UPDATE", "DELETE"], "apiGroups": ["apps"], "resources": ["deployments"]}, set()),
        ({"operations": None}, set()),
        ({}, set()),
    ],
)
def test_only_rules_about_creations_matter(rule: dict[str, Any], pairs: set[tuple[str, str]]) -> None:
    webhook = {"metadata": {"name": "w"}, "webhooks": [{"rules": [rule]}, {"rules": None}, {}]}
    assert compile_concerns([webhook], [], []).pairs == pairs
    policy = {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": [rule]}}}
    bound, other = {"spec": {"policyName": "p"}}, {"spec": {"policyName": "q"}}
    assert compile_concerns([], [policy], [bound]).pairs == pairs
    assert compile_concerns([], [policy], [other, {}]).pairs == set()
