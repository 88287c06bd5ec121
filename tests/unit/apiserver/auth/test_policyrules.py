"""Policy rules: which requests and which other rules one covers, and which roles an aggregation rule selects."""

from typing import Any

import pytest

from federation.apiserver.auth.identity import Attributes
from federation.apiserver.auth.policyrules import PolicyRule, aggregate_matches, path_matches, to_rules


def rule(verbs: str = "get", groups: str = "", resources: str = "pods", names: str = "", paths: str = "") -> PolicyRule:
    texts = [frozenset(text.split(",")) for text in (verbs, groups, resources)]
    return PolicyRule(*texts, frozenset(filter(None, names.split(","))), tuple(filter(None, paths.split(","))))


GET = Attributes("get", "", "v1", "pods", "", "default", "a")


@pytest.mark.parametrize(
    ("held", "changes", "expected"),
    [
        (rule(), {}, True),
        (rule("list,get"), {}, True),
        (rule("*"), {"verb": "delete"}, True),
        (rule(), {"verb": "delete"}, False),
        (rule(groups="apps"), {}, False),
        (rule(groups="apps,"), {}, True),
        (rule(groups="*"), {"group": "apps"}, True),
        (rule(), {"resource": "secrets"}, False),
        (rule(resources="*"), {"resource": "secrets"}, True),
        (rule(), {"subresource": "log"}, False),
        (rule(resources="pods/log"), {"subresource": "log"}, True),
        (rule(resources="pods/log"), {}, False),
        (rule(resources="*/log"), {"subresource": "log"}, True),
        (rule(resources="*/log"), {"subresource": "exec"}, False),
        (rule(resources="*"), {"subresource": "exec"}, True),
        (rule(names="a,b"), {}, True),
        (rule(names="b"), {}, False),
        (rule(names="a"), {"name": ""}, False),
        (rule(paths="/metrics"), {"path": "/metrics"}, True),
        (rule(), {"path": "/metrics"}, False),
    ],
)
def test_a_rule_allows_what_it_names(held: PolicyRule, changes: dict[str, str], expected: bool) -> None:
    assert held.allows(GET._replace(**changes)) is expected


@pytest.mark.parametrize(
    ("held", "other", "expected"),
    [
        (rule(), rule(), True),
        (rule("*", "*", "*"), rule("get,list", "apps", "pods/log", "x"), True),
        (rule("get"), rule("get,list"), False),
        (rule(resources="pods"), rule(resources="pods,secrets"), False),
        (rule(resources="*/log"), rule(resources="pods/log"), True),
        (rule(resources="pods"), rule(resources="*"), False),
        (rule(groups=""), rule(groups="*"), False),
        (rule(names="a,b"), rule(names="a"), True),
        (rule(names="a"), rule(names="a,b"), False),
        (rule(names="a"), rule(), False),
        (rule(), rule(names="a"), True),
    ],
)
def test_a_rule_covers_others_with_all_their_parts(held: PolicyRule, other: PolicyRule, expected: bool) -> None:
    parts = other.split()
    assert len(parts) == other.size
    assert all(held.covers(part) for part in parts) is expected


def test_paths_are_covered_by_patterns() -> None:
    (path,) = PolicyRule(frozenset({"get"}), frozenset(), frozenset(), frozenset(), ("/a/b",)).split()
    for pattern, expected in (("/a/b", True), ("/a/*", True), ("*", True), ("/a", False), ("/a/b/*", False)):
        held = PolicyRule(frozenset({"get"}), frozenset(), frozenset(), frozenset(), (pattern,))
        assert held.covers(path) is expected, pattern
    assert not PolicyRule.all_resources().covers(path)
    assert PolicyRule.all_paths().covers(path)
    assert path_matches(("/b", "/a"), "/a")
    assert not path_matches((), "/a")


MATCH_A, MATCH_AB = {"matchLabels": {"a": "1"}}, {"matchLabels": {"a": "1", "b": "1"}}


def _term(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selectors", "labels", "expected"),
    [
        ([], {"a": "1"}, False),
        ([MATCH_A], {"a": "1"}, True),
        ([MATCH_A], {"a": "2"}, False),
        ([MATCH_AB, MATCH_A], {"a": "1"}, True),
        ([MATCH_AB], {"a": "1"}, False),
        ([MATCH_AB], {"a": "1", "b": "1"}, True),
        ([_term("In", "1", "2")], {"a": "2"}, True),
        ([_term("In", "1", "2")], {}, False),
        ([_term("NotIn", "1")], {"a": "1"}, False),
        ([_term("NotIn", "1")], {}, True),
        ([_term("Exists")], {"a": ""}, True),
        ([_term("Exists")], {}, False),
        ([_term("DoesNotExist")], {}, True),
        ([_term("DoesNotExist")], {"a": ""}, False),
        ([_term("Near")], {"a": "1"}, False),
        ([{**MATCH_A, **_term("DoesNotExist")}], {"a": "1"}, False),
    ],
)
def test_one_of_the_selectors_is_enough(selectors: list[Any], labels: dict[str, str], expected: bool) -> None:
    assert aggregate_matches(selectors, labels) is expected


def test_malformed_rules_grant_nothing() -> None:
    malformed = [{"verbs": "get", "apiGroups": [""], "resources": ["pods"]}, {"verbs": ["get"]}]
    assert not any(held.allows(GET) for held in to_rules(malformed))
