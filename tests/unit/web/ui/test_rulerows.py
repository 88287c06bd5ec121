"""Rules in a row: what they are about, what they do, what they act on now, until when, and what cannot be read."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.web.ui.test_policytext import JSON

from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DELIVERY_SUSPENSIONS,
    CLUSTER_TAINT_POLICIES,
    DELIVERY_SUSPENSIONS,
    REMEDIES,
)
from federation.apimachinery.resources import Resource
from federation.web.ui.rulerows import RESOURCES, RuleRow, sort_rows, to_row

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
"""A Saturday."""
WEEKEND = {"schedule": "0 18 * * 5", "duration": "62h", "timeZone": "Europe/Berlin"}
OLD = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
SINCE = "2026-11-28T11:00:00Z"
FIELDS = (
    "clusters", "clusterSelector", "clusterAffinity", "namespaces", "objects", "when", "taints", "actions", "holds",
    "windows", "until", "owner", "reason", "holdSeconds",
)  # fmt: skip


def row_of(resource: Resource, spec: Any, status: Any = None) -> RuleRow:
    namespace = {"namespace": "shop"} if resource.namespaced else {}
    return to_row(resource, {"metadata": {"name": "one", **namespace}, "spec": spec, "status": status}, NOW)


@pytest.mark.parametrize(
    ("resource", "spec", "words"),
    [
        (CHANGE_FREEZES, {"windows": [WEEKEND]}, ("busy", "Holds", "2026-11-30T07:00:00Z", "2026-12-04T17:00:00Z")),
        (
            CHANGE_FREEZES,
            {"windows": [WEEKEND, {"start": "2026-11-20T00:00:00Z", "end": "2026-12-06T00:00:00Z"}]},
            ("busy", "Holds", "2026-12-07T07:00:00Z", "2026-12-11T17:00:00Z"),
        ),
        (CHANGE_FREEZES, {"windows": [OLD]}, ("unknown", "Over", "", "")),
        (
            CHANGE_FREEZES,
            {"windows": [OLD, {"start": "2026-12-23T00:00:00Z", "end": "2027-01-02T00:00:00Z"}]},
            ("good", "Between windows", "", "2026-12-23T00:00:00Z"),
        ),
        (CHANGE_FREEZES, {"windows": [{"schedule": "x", "duration": "1h"}]}, ("bad", "Cannot be read", "", "")),
        (DELIVERY_SUSPENSIONS, {}, ("busy", "Holds", "", "")),
        (DELIVERY_SUSPENSIONS, {"until": SINCE}, ("unknown", "Over", SINCE, "")),
        (
            CLUSTER_DELIVERY_SUSPENSIONS,
            {"until": "2026-12-01T00:00:00Z"},
            ("busy", "Holds", "2026-12-01T00:00:00Z", ""),
        ),
        (CLUSTER_DELIVERY_SUSPENSIONS, {"until": "soon"}, ("bad", "Cannot be read", "", "")),
    ],
)
def test_a_freeze_or_suspension_says_whether_it_holds_and_until_when(
    resource: Resource, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    row = row_of(resource, spec)
    assert (row.tone, row.state, row.until, row.next) == words
    assert bool(row.problem) == (row.tone == "bad")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, ("unknown", "Not looked at yet")),
        ({"active": 0}, ("good", "Nothing to do")),
        ({"active": 0, "clusters": [{"name": "a", "state": "Pending"}]}, ("busy", "Pending in 1 cluster")),
        ({"active": 2, "clusters": [{"name": "a", "state": "Active"}]}, ("warn", "Active in 2 clusters")),
        ({"active": 1, "problem": "no"}, ("bad", "Cannot be read")),
    ],
)
def test_a_rule_for_clusters_says_where_it_is_active(status: Any, words: tuple[str, str]) -> None:
    row = row_of(REMEDIES, {}, status)
    assert (row.tone, row.state) == words
    assert [each.name for each in row.clusters] == [each["name"] for each in (status or {}).get("clusters", ())]


def test_rows_say_what_they_are_about_and_what_they_do() -> None:
    when = [
        {"conditions": [{"type": "Ready", "operator": "NotIn", "values": ["True"]}]},
        {"metrics": [{"measure": "Free", "resource": "cpu", "below": "2%"}]},
    ]
    taint = {"key": "trouble", "effect": "NoSchedule"}
    row = row_of(CLUSTER_TAINT_POLICIES, {"clusterSelector": {"tier": "rented"}, "when": when, "taints": [taint]})
    assert row.scope == "clusters with tier=rented"
    assert row.does == "Taints them trouble:NoSchedule when Ready is not True or Free cpu below 2% for 60 seconds"
    assert row.href == "/ui/objects/core.kubeadmiral.io/v1alpha1/clustertaintpolicies/-/one"
    row = row_of(REMEDIES, {"actions": [{"type": "Cordon"}, {"type": "Taint", "taint": taint}, {"type": "Event"}]})
    assert row.does == "Cordons them, taints them trouble:NoSchedule, writes an Event always"
    labels = {"labelSelector": {"matchLabels": {"app": "db"}}}
    row = row_of(DELIVERY_SUSPENSIONS, {"clusters": ["east"], "objects": [{"kind": "StatefulSet", **labels}]})
    assert row.scope == "east; StatefulSet with app=db; namespace shop"
    assert row.key == "DeliverySuspension/shop/one"
    row = row_of(CHANGE_FREEZES, {"holds": ["Updates", "Moves"], "namespaces": ["a", "b"], "windows": [WEEKEND]})
    assert (row.scope, row.does) == ("all clusters; namespaces a, b", "Holds moves and updates")
    assert row_of(CHANGE_FREEZES, {"windows": [OLD]}).does == "Holds moves, evictions and updates"


def test_rules_that_need_somebody_come_first() -> None:
    broken = row_of(CHANGE_FREEZES, {"windows": [{"schedule": "x", "duration": "1h"}]})
    rows = [row_of(CHANGE_FREEZES, {"windows": [OLD]}), row_of(DELIVERY_SUSPENSIONS, {}), broken]
    assert [row.state for row in sort_rows(rows, "")] == ["Cannot be read", "Holds", "Over"]
    assert [row.state for row in sort_rows(rows, "-now")] == ["Over", "Holds", "Cannot be read"]
    assert sort_rows(rows, "kind")[-1].kind == "DeliverySuspension"


@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON, JSON)
def test_any_spec_and_status_have_a_row(spec: Any, status: Any) -> None:
    for resource in RESOURCES:
        assert row_of(resource, spec, status).state
