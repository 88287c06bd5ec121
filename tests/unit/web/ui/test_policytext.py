"""Policies in a line: what they select, where they place it, what they change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.web.ui.policiesscreen import PolicyRow, sort_rows, to_row
from federation.web.ui.policytext import describe_overrides, describe_propagation, describe_selectors

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "resourceSelectors", "placement", "clusterSelector", "clusterGroups", "clusterAffinity", "maxClusters",
    "overrideRules", "schedulingMode",
)  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "Copies to all clusters"),
        ({"schedulingMode": "Divide", "maxClusters": 3}, "Divides replicas over all clusters, at most 3"),
        (
            {"placement": [{"cluster": "a", "preferences": {"weight": 2}}, {"cluster": "b"}]},
            "Copies to a ×2, b",  # noqa: RUF001
        ),
        ({"clusterSelector": {"region": "eu"}}, "Copies to clusters with region=eu"),
        ({"clusterAffinity": [{"matchExpressions": []}]}, "Copies to clusters that its affinity selects"),
        ({"clusterGroups": [{"name": "own"}, {"name": "cloud"}]}, "Copies to groups own, cloud"),
    ],
)
def test_a_propagation_policy_says_where(spec: dict[str, Any], words: str) -> None:
    assert describe_propagation(spec) == words


def test_selectors_name_kinds_and_labels() -> None:
    labels = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "t", "operator": "In", "values": ["a", "b"]}]}
    selectors = [{"kind": "Deployment", "labelSelector": labels}, {"kind": "Secret", "name": "keys"}]
    assert describe_selectors({"resourceSelectors": selectors}) == "Deployment with app=web, t In (a, b), Secret keys"
    assert describe_selectors({}) == ""


def test_an_override_policy_says_what_changes_where() -> None:
    rule = {"overriders": {"image": [], "jsonpatch": []}, "targetClusters": {"clusters": ["a", "b"]}}
    assert describe_overrides({"overrideRules": [rule, rule]}) == "2 rules: image, jsonpatch, in a, b"
    assert describe_overrides({"overrideRules": [{}]}) == "1 rule, in clusters that its rules select"
    assert describe_overrides({}) == "No rules"


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_spec_has_a_row(spec: dict[str, Any]) -> None:
    for resource in (PROPAGATION_POLICIES, OVERRIDE_POLICIES):
        row = to_row(resource, {"metadata": {"name": "p", "namespace": "n"}, "spec": spec, "status": {"refCount": "x"}})
        assert row.objects == 0
        assert row.does


def test_rows_are_sorted_by_a_column_and_stay_in_their_usual_order_where_it_is_equal() -> None:
    rows = [PolicyRow("K", "n", name, "", "", "", count, "") for name, count in (("p-10", 1), ("p-2", 5), ("p-1", 1))]
    names = lambda sort: [row.name for row in sort_rows(rows, sort)]  # noqa: E731
    assert names("") == names("unknown") == ["p-1", "p-2", "p-10"]
    assert names("-objects") == ["p-2", "p-1", "p-10"]
    assert names("-name") == ["p-10", "p-2", "p-1"]
