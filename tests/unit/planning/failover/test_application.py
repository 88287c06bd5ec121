"""The record of the failover of an application, and the state that is handed over."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.failover.application import (
    ApplicationRecord,
    ApplicationRules,
    PurgeMode,
    State,
    StateRule,
    avoided_clusters,
    compile_application,
    handed_states,
    is_purge_confirmed,
    record_of,
    record_text,
    removed_first,
    rules_of,
    rules_text,
)
from federation.planning.failover.handover import (
    handed_entry,
    merged,
    path_problem,
    rule_problems,
    state_of,
    with_state,
)

RECORD = (
    '{"evicted":{"east":{"at":"2026-01-01T00:00:00Z","reason":"bad"}},'
    '"purges":{"east":{"at":"2026-01-01T00:00:00Z","mode":"Directly"}},"template":"t","wasHealthy":true}'
)


def a_federated(placed: list[str], **annotations: str | None) -> dict[str, Any]:
    placement = [{"cluster": name} for name in placed]
    return {
        "metadata": {"name": "web", "annotations": {k: v for k, v in annotations.items() if v}},
        "spec": {"placements": [{"controller": names.GLOBAL_SCHEDULER, "placement": placement}]},
    }


def test_rules_and_records_survive_their_annotations() -> None:
    source = {
        "purgeMode": "Never",
        "statePreservation": {"rules": [{"fieldPath": "spec.a", "jsonPath": "{.b}"}]},
    }
    rules = compile_application(source)
    assert rules == ApplicationRules(300, 600, 3, PurgeMode.NEVER, (StateRule("{.b}", field_path="spec.a"),))
    annotations = {names.APPLICATION_FAILOVER_RULES: rules_text(rules), names.APPLICATION_FAILOVER: RECORD}
    federated = a_federated([], **annotations)
    assert rules_of(federated) == rules
    assert record_text(record_of(federated)) == RECORD
    assert avoided_clusters(federated) == {"east": "bad"}
    assert compile_application(None) is None
    assert rules_text(None) is None
    assert record_text(ApplicationRecord()) is None


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"evicted":{"east":{}}}'])
def test_a_malformed_record_is_no_record(text: str | None) -> None:
    rules = {names.APPLICATION_FAILOVER_RULES: rules_text(ApplicationRules())}
    federated = a_federated(["east"], **{names.APPLICATION_FAILOVER: text}, **rules)
    assert record_of(federated) == ApplicationRecord()
    assert avoided_clusters(federated) == {}


def test_a_record_without_rules_has_no_effect_on_the_scheduler() -> None:
    assert avoided_clusters(a_federated([], **{names.APPLICATION_FAILOVER: RECORD})) == {}


@pytest.mark.parametrize(
    ("placed", "departed", "expected"),
    [
        (["west"], '["east"]', {"east"}),
        (["west"], None, set()),
        (["east", "west"], '["east"]', set()),
        (["west"], '["north"]', set()),
    ],
)
def test_a_new_copy_waits_until_the_old_one_is_gone(
    placed: list[str], departed: str | None, expected: set[str]
) -> None:
    annotations = {names.APPLICATION_FAILOVER: RECORD, names.DEPARTED_CLUSTERS: departed}
    assert removed_first(a_federated(placed, **annotations)) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [(None, False), ("east", True), ("west, east", True), ("all", True), ("eastern", False)]
)
def test_a_user_names_the_copies_that_he_gives_up(text: str | None, expected: bool) -> None:
    assert is_purge_confirmed(a_federated([], **{names.PURGE: text}), "east") is expected


def test_new_copies_get_the_state_and_keep_it() -> None:
    state = State("east", {"example.com/a": "1"})
    text = record_text(ApplicationRecord(state=state))
    federated = a_federated([], **{names.APPLICATION_FAILOVER: text})
    handed = handed_entry(federated, {"east": 1}, {"west": 1})
    federated = a_federated([], **{names.APPLICATION_FAILOVER: text, names.HANDED_STATE: handed})
    assert handed_states(federated) == {"west": state}
    assert handed_entry(federated, {"west": 1}, {"west": 2}) == handed, "a copy that stays keeps it"
    assert handed_entry(federated, {"west": 1}, {}) is None
    consumed = a_federated([], **{names.HANDED_STATE: handed})
    assert handed_entry(consumed, {"west": 1}, {"west": 1, "north": 1}) == handed, "a later copy gets none"


def test_copies_that_leave_hand_over_their_states_in_turn() -> None:
    gone = [State("east", labels={"s": "1"}), State("west", labels={"s": "2"})]
    entry = handed_entry(a_federated([]), {"east": 1, "west": 1}, dict.fromkeys("abc", 1), gone)
    handed = handed_states(a_federated([], **{names.HANDED_STATE: entry}))
    assert {name: state.source for name, state in handed.items()} == {"a": "east", "b": "west", "c": "east"}


STATUS = {
    "job": {"savepoint": "s3://a/1", "tries": 2, "ok": True, "none": None, "map": {"a": 1}},
    "list": [{"name": "x", "path": "p"}, {"name": "y", "path": "q"}],
    "long": "x" * 5000,
}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            StateRule("{.job.savepoint}", field_path="spec.job.from"),
            State("east", fields={"spec.job.from": "s3://a/1"}),
        ),
        (StateRule("{ .job.tries }", label="example.com/n"), State("east", {"example.com/n": "2"})),
        (StateRule(".job.ok", annotation="example.com/n"), State("east", annotations={"example.com/n": "true"})),
        (StateRule("{.list[1].path}", label="a"), State("east", {"a": "q"})),
        (StateRule('{.list[?(@.name=="x")].path}', label="a"), State("east", {"a": "p"})),
        (StateRule("{.job.savepoint}", label="a"), None),  # no label can have it
        (StateRule("{.job.map}", annotation="a"), None),
        (StateRule("{.job.none}", annotation="a"), None),
        (StateRule("{.job.absent}", annotation="a"), None),
        (StateRule("{.long}", annotation="a"), None),
        (StateRule("{.list[*].path}", annotation="a"), None),
        (StateRule("{.job.tries}", label="kubernetes.io/name"), None),
    ],
)
def test_scalars_of_the_status_are_handed_over(rule: StateRule, expected: State | None) -> None:
    found, missing = state_of((rule,), "east", {"status": STATUS})
    assert found == expected
    assert missing == ([] if expected else [rule.json_path])


def test_state_is_written_over_the_template_and_shares_the_rest() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"job": {"x": 1}, "other": {}}}
    state = State("east", {"l": "1"}, {"a": "2"}, {"spec.job.from": "s", "spec.new.field": 3})
    result = with_state(obj, state)
    assert result == {
        "metadata": {"name": "a", "labels": {"l": "1"}, "annotations": {"a": "2"}},
        "spec": {"job": {"x": 1, "from": "s"}, "other": {}, "new": {"field": 3}},
    }
    assert obj == {"metadata": {"name": "a"}, "spec": {"job": {"x": 1}, "other": {}}}
    assert result["spec"]["other"] is obj["spec"]["other"]


def test_newer_state_wins_and_what_nothing_consumed_stays() -> None:
    old, new = State("east", {"a": "1", "b": "1"}), State("west", {"b": "2"})
    assert merged(old, new) == State("west", {"a": "1", "b": "2"})
    assert merged(old, None) is old
    assert merged(None, new) is new


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        ((StateRule("{.a}", label="x"), StateRule("{.b}", label="x")), ["statePreservation.rules[1].aliasLabelName"]),
        ((StateRule("{.a[*]}", annotation="x"),), ["statePreservation.rules[0].jsonPath"]),
        ((StateRule("{.a", annotation="kubeadmiral.io/x"),), ["statePreservation.rules[0].annotation"]),
        ((StateRule("{.a}", field_path="spec.replicas"),), ["statePreservation.rules[0].fieldPath"]),
        ((StateRule("{.a}", label="apps.kubernetes.io/x"),), ["statePreservation.rules[0].aliasLabelName"]),
        ((StateRule("{.b}", field_path="spec.x"), StateRule("{.a}", label="x")), []),
    ],
)
def test_mistakes_in_rules_are_named(rules: tuple[StateRule, ...], fields: list[str]) -> None:
    assert [field for field, _ in rule_problems(rules)] == fields


@pytest.mark.parametrize("path", ["", "{}", "{.a[}", "{.a[?(@.b>1)].c}", "{range .a}", "{ .a .b }"])
def test_paths_that_cannot_be_evaluated_are_refused(path: str) -> None:
    assert "such as {.jobStatus" in path_problem(path)
