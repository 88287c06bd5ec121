from typing import Any

import pytest

from federation.api import selectors
from federation.apimachinery.resources import GroupKind
from federation.apimachinery.selectors import SelectorError


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({}, False),
        ({"matchExpressions": []}, False),
        ({"matchExpressions": [expression("nodes", "Gt", "5")]}, True),
        ({"matchExpressions": [expression("nodes", "Lt", "5")]}, False),
        ({"matchExpressions": [expression("region", "Gt", "5")]}, False),
        ({"matchExpressions": [expression("absent", "Gt", "5")]}, False),
        ({"matchFields": [expression("metadata.name", "In", "c1")]}, True),
        ({"matchFields": [expression("metadata.name", "NotIn", "c1")]}, False),
        ({"matchFields": [expression("metadata.name", "NotIn", "c2")]}, True),
        (
            {
                "matchExpressions": [expression("region", "In", "eu")],
                "matchFields": [expression("metadata.name", "In", "c2")],
            },
            False,
        ),
    ],
)
def test_a_cluster_term_holds_when_all_its_expressions_do(term: Any, expected: bool) -> None:
    terms = selectors.compile_cluster_terms([term])
    assert terms.matches("c1", {"region": "eu", "nodes": "10"}) is expected


def test_cluster_terms_are_ored_and_an_empty_list_matches_nothing() -> None:
    terms = selectors.compile_cluster_terms(
        [{"matchFields": [expression("metadata.name", "In", "c9")]}, {"matchExpressions": [expression("a", "Exists")]}]
    )
    assert terms.matches("c1", {"a": ""})
    assert not selectors.compile_cluster_terms([]).matches("c1", {"a": ""})
    assert not selectors.compile_cluster_terms(None).matches("c1", None)


@pytest.mark.parametrize(
    "term",
    [
        {"matchFields": [expression("metadata.uid", "In", "1")]},
        {"matchFields": [expression("metadata.name", "Exists")]},
        {"matchFields": [expression("metadata.name", "In", "a", "b")]},
        {"matchExpressions": [expression("a", "Gt", "x")]},
        {"matchExpressions": [expression("a", "Gt", "9223372036854775808")]},
    ],
)
def test_an_invalid_cluster_term_fails_when_it_is_reached_and_not_before(term: Any) -> None:
    matching = {"matchExpressions": [expression("a", "Exists")]}
    assert selectors.compile_cluster_terms([matching, term]).matches("c", {"a": ""})
    with pytest.raises(SelectorError):
        selectors.compile_cluster_terms([term, matching]).matches("c", {"a": ""})


def test_an_invalid_name_requirement_is_an_error_only_where_labels_match() -> None:
    wrong = {
        "matchExpressions": [expression("a", "Exists")],
        "matchFields": [expression("metadata.name", "In", "x", "y")],
    }
    terms = selectors.compile_cluster_terms([wrong, {"matchExpressions": [expression("b", "Exists")]}])
    assert terms.matches("c", {"b": ""})
    assert not terms.matches("c", {})
    with pytest.raises(SelectorError, match="exactly one value"):
        terms.matches("c", {"a": "", "b": ""})


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Matches", "value": "v"}, False),
    ],
)
def test_tolerations_match_taints_as_in_kubernetes(toleration: Any, expected: bool) -> None:
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    assert selectors.tolerates(toleration, taint) is expected


def test_resource_selectors_name_objects_by_kind_and_then_by_name_or_label() -> None:
    compiled = selectors.compile_resource_selectors(
        [
            {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}},
            {"apiVersion": "v1", "kind": "Secret", "name": "token"},
        ]
    )
    deployment, secret = GroupKind("apps", "Deployment"), GroupKind("", "Secret")
    assert compiled.matches(deployment, "any", {"app": "web"})
    assert not compiled.matches(deployment, "any", {"app": "db"})
    assert not compiled.matches(GroupKind("extensions", "Deployment"), "any", {"app": "web"})
    assert compiled.matches(secret, "token", None)
    assert not compiled.matches(secret, "other", None)
    assert not selectors.compile_resource_selectors(None).matches(secret, "token", None)
