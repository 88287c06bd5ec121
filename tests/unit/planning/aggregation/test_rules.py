"""Fields of a status that the rules of a FederatedTypeConfig compute, with the engine that the control plane uses."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.admission.statusrules import compile_status_rule
from federation.api import names
from federation.api.federatedtype import StatusRule
from federation.planning.aggregation.context import Context
from federation.planning.aggregation.rules import MEMBER_BYTES_MAX, VALUE_BYTES_MAX, Computed, RuleError, apply_rules

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = "members.all(m, m.status.?phase.orValue('') == 'Ready') ? 'Ready' : 'Pending'"
STRICT = "members.all(m, m.status.phase == 'Ready') ? 'Ready' : 'Pending'"
COUNT = "members.map(m, int(m.status.?count.orValue(0))).sum()"


def computed(
    rules: dict[str, str],
    members: dict[str, Any],
    *,
    before: dict[str, Any] | None = None,
    merged: dict[str, Any] | None = None,
    placed: tuple[str, ...] = (),
    stale: tuple[str, ...] = (),
    has_time: Callable[[], bool] = lambda: True,
) -> Computed:
    return apply_rules(
        [StatusRule(tuple(path.split(".")), expression) for path, expression in rules.items()],
        compile_status_rule,
        has_time,
        merged or {},
        {"metadata": {"name": "w", "generation": 2}, "spec": {"size": 4}, "status": before or {}},
        {cluster: {"metadata": {"generation": 1}, "status": status} for cluster, status in members.items()},
        Context(NOW, placed=frozenset(placed or members), stale=frozenset(stale)),
    )


def test_fields_are_computed_from_all_members_and_the_source() -> None:
    rules = {
        "status.phase": READY,
        "status.total.count": COUNT,
        "status.summary": "string(size(members)) + ' clusters of size ' + string(int(source.spec.size))",
    }
    members = {"a": {"phase": "Ready", "count": 2}, "b": {"phase": "Ready", "count": 3}}
    found = computed(rules, members, merged={"other": 1, "total": {"kept": True}})
    assert found.status == {
        "other": 1,
        "phase": "Ready",
        "total": {"kept": True, "count": 5},
        "summary": "2 clusters of size 4",
    }
    assert found.problems == ()


def test_a_cluster_without_a_member_object_has_an_empty_status() -> None:
    found = computed({"status.phase": READY}, {"a": {"phase": "Ready"}}, placed=("a", "b"))
    assert found.status == {"phase": "Pending"}


def test_members_have_the_name_of_their_cluster_its_generation_and_whether_it_answers() -> None:
    rules = {"status.seen": "members.map(m, m.cluster + ':' + string(int(m.generation)) + ':' + string(m.stale))"}
    found = computed(rules, {"b": {}, "a": {}}, placed=("a", "b", "c"), stale=("b",))
    assert found.status["seen"] == ["a:1:false", "b:1:true", "c:0:false"]


def test_null_removes_the_field() -> None:
    found = computed({"status.phase": "null", "status.a.b": "null"}, {"a": {}}, merged={"phase": "x", "a": {"c": 1}})
    assert found.status == {"a": {"c": 1}}


def test_a_rule_that_fails_keeps_its_field_and_no_other() -> None:
    rules = {"status.phase": "source.spec.absent", "status.count": COUNT}
    found = computed(rules, {"a": {"count": 1}}, before={"phase": "Old", "count": 9}, merged={"phase": "merged"})
    assert found.status == {"phase": "Old", "count": 1}
    assert found.fallback == {"phase": "Old", "count": 9}
    (problem,) = found.problems
    assert problem.startswith("spec.statusAggregation.rules[0].expression: no such key: absent")


@pytest.mark.parametrize(
    "hostile",
    [{"phase": {"x": 1}, "count": "many"}, {"count": [1]}, {"count": 2**64 - 1}, {"count": 1e300}, {"count": None}],
    ids=repr,
)
def test_the_status_of_one_member_does_not_break_the_others(hostile: dict[str, Any]) -> None:
    members = {"good": {"phase": "Ready", "count": 2}, "hostile": hostile}
    found = computed({"status.phase": READY, "status.count": COUNT}, members)
    assert found.status == {"phase": "Pending", "count": 2}
    assert any("clusters [hostile]" in problem for problem in found.problems)


def test_a_member_that_the_expression_fails_for_never_makes_the_object_ready() -> None:
    members = {"good": {"phase": "Ready"}, "bad": {}}
    found = computed({"status.phase": STRICT}, members, before={"phase": "Pending"})
    assert found.status == {"phase": "Pending"}
    assert "no such key: phase" in found.problems[0]


def test_a_large_status_counts_as_empty() -> None:
    members = {"good": {"phase": "Ready", "count": 2}, "large": {"phase": "Ready", "x": "y" * MEMBER_BYTES_MAX}}
    found = computed({"status.phase": READY, "status.count": COUNT}, members)
    assert found.status == {"phase": "Pending", "count": 2}
    assert "clusters [large] is larger than 16384 bytes" in found.problems[0]


def test_many_members_share_the_limit_of_their_statuses() -> None:
    members = {f"c{index:03}": {"count": 1, "x": "y" * 6000} for index in range(100)}
    found = computed({"status.count": COUNT}, members)
    assert found.status == {"count": 0}
    assert "clusters [c000,c001,c002,c003,c004,…]" in found.problems[0]


def test_a_large_source_is_not_evaluated() -> None:
    found = computed({"status.count": COUNT}, {"a": {"count": 1}}, before={"count": 7, "x": "y" * 300_000})
    assert found.status == {"count": 7}
    assert "larger than 256 KiB" in found.problems[0]


def test_a_status_that_takes_all_iterations_counts_as_empty() -> None:
    rule = {"status.count": "members.map(m, m.status.?l.orValue([]).filter(x, x == 1).size()).sum()"}
    members = {"good": {"l": [1] * 900}, "hostile": {"l": [1] * 7500}}
    found = computed(rule, members)
    assert found.status == {"count": 900}
    assert "clusters [hostile]" in found.problems[0]


def test_a_value_that_is_too_large_is_not_written() -> None:
    members = {f"c{index}": {"x": "y" * 10_000} for index in range(4)}
    found = computed({"status.all": "members.map(m, m.status.x)"}, members, before={"all": []})
    assert found.status == {"all": []}
    assert f"larger than {VALUE_BYTES_MAX // 1024} KiB" in found.problems[0]


def test_rules_end_when_their_time_is_over() -> None:
    calls = iter([True, False, False])
    rules = {"status.count": COUNT, "status.phase": READY, "status.third": COUNT}
    found = computed(
        rules, {"a": {"count": 1, "phase": "Ready"}}, before={"phase": "Old"}, has_time=lambda: next(calls)
    )
    assert found.status == {"count": 1, "phase": "Old"}
    assert [problem.partition("]")[2] for problem in found.problems] == [
        ".expression: the time limit for the rules of one object is exceeded"
    ] * 2


def test_conditions_have_times_and_keep_those_of_the_federation() -> None:
    expression = "[{'type': 'Ready', 'status': members.all(m, m.status.?ok.orValue(false)) ? 'True' : 'False'}]"
    before = {
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"},
            {"type": names.STATUS_STALE, "status": "True"},
        ]
    }
    found = computed({"status.conditions": expression}, {"a": {"ok": True}}, before=before)
    assert found.status["conditions"] == before["conditions"]
    found = computed({"status.conditions": expression}, {"a": {"ok": False}}, before=before)
    assert found.status["conditions"][0] == {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    "expression",
    [
        "[{'type': 'Ready', 'status': 'Yes'}]",
        "[{'status': 'True'}]",
        "[{'type': 'A', 'status': 'True'}, {'type': 'A', 'status': 'True'}]",
        "['Ready']",
        "members[0].status",
        "[{'type': 'Ready', 'status': 'True', 'message': 5}]",
    ],
)
def test_conditions_that_are_none_are_not_written(expression: str) -> None:
    found = computed({"status.conditions": expression}, {"a": {"x": 1}})
    assert found.status == {}
    assert "condition" in found.problems[0]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("members[0].status.", "Syntax error"),
        ("source.foo", "undefined field 'foo'"),
        ("members.status", "cannot be the operand of a select operation"),
        ("other.x", "undeclared reference to 'other.x'"),
        ("timestamp('2026-01-01T00:00:00Z')", "must evaluate to a JSON value but got timestamp"),
        ("b'x'", "must evaluate to a JSON value but got bytes"),
        ("[source.kind]" + ".map(a, a+a+a+a+a+a+a+a+a+a)" * 6, "bytes exceeds the limit of 33554432 bytes"),
    ],
)
def test_expressions_that_cannot_work_or_cost_too_much_do_not_compile(expression: str, message: str) -> None:
    with pytest.raises(RuleError) as error:
        compile_status_rule(expression)
    assert message in str(error.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional={"phase": JSON, "count": JSON, "l": JSON}))
def test_no_status_raises_or_makes_an_object_more_ready(hostile: dict[str, Any]) -> None:
    members = {"good": {"phase": "Pending", "count": 2}, "hostile": hostile}
    found = computed({"status.phase": READY, "status.count": COUNT, "status.strict": STRICT}, members)
    assert found.status["phase"] == "Pending"
    assert found.status.get("strict") in (None, "Pending")
