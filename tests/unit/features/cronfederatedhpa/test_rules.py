"""Due rules of a CronFederatedHPA: none is missed, none runs twice, whatever the times of the reconciles."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.clock import from_rfc3339
from federation.features.cronfederatedhpa.rules import due_rules, next_histories, next_time, schedule_problem

START = datetime(2026, 3, 28, 12, tzinfo=UTC)


def a_rule(name: str = "day", schedule: str = "0 8 * * *", **fields: Any) -> dict[str, Any]:
    return {"name": name, "schedule": schedule, "targetReplicas": 5, **fields}


def look(
    spec: dict[str, Any], histories: list[dict[str, Any]], now: datetime
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of the rules that run at a reconcile, and the next status."""
    due = due_rules(spec, histories, now)
    outcomes = {each.rule["name"]: (each, {"appliedReplicas": 5}, "") for each in due}
    return [each.rule["name"] for each in due], next_histories(spec, histories, outcomes, now)


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=30))
def test_each_time_runs_at_most_once_and_the_last_one_always(gaps: list[int]) -> None:
    spec = {"rules": [a_rule(schedule="*/30 * * * *")]}
    histories: list[dict[str, Any]] = []
    now = START + timedelta(minutes=7)
    ran: list[datetime] = []
    _, histories = look(spec, histories, now)
    for gap in gaps:
        before, now = now, now + timedelta(seconds=gap)
        names, histories = look(spec, histories, now)
        times = next_time(spec["rules"][0], before) <= now
        assert bool(names) == times
        if names:
            ran.append(from_rfc3339(histories[0]["successfulExecutions"][0]["scheduleTime"]))
            assert now - ran[-1] < timedelta(minutes=30), "of several missed times the last one runs"
    assert len(set(ran)) == len(ran)


def test_a_new_rule_waits_for_its_first_time_and_a_second_look_changes_nothing() -> None:
    spec = {"rules": [a_rule()]}
    names, histories = look(spec, [], START)
    assert names == []
    assert histories == [{"ruleName": "day", "nextExecutionTime": "2026-03-29T08:00:00Z"}]
    assert look(spec, histories, START + timedelta(hours=1)) == ([], histories)


def test_times_are_those_of_the_time_zone_over_a_change_of_the_clocks() -> None:
    rule = a_rule(timeZone="Europe/Berlin")
    assert next_time(rule, START - timedelta(days=1)) == datetime(2026, 3, 28, 7, tzinfo=UTC)
    assert next_time(rule, START) == datetime(2026, 3, 29, 6, tzinfo=UTC)


def test_a_suspended_rule_has_no_time_and_one_that_goes_on_makes_up_for_nothing() -> None:
    spec = {"rules": [a_rule()]}
    _, histories = look(spec, [], START)
    spec["rules"][0]["suspend"] = True
    later = START + timedelta(days=3)
    names, histories = look(spec, histories, later)
    assert names == []
    assert histories == [{"ruleName": "day"}]
    spec["rules"][0]["suspend"] = False
    names, histories = look(spec, histories, later)
    assert names == []
    assert histories[0]["nextExecutionTime"] == "2026-04-01T08:00:00Z"


def test_a_changed_schedule_gets_its_own_next_time() -> None:
    spec = {"rules": [a_rule()]}
    _, histories = look(spec, [], START)
    spec["rules"][0]["schedule"] = "0 20 * * *"
    _, histories = look(spec, histories, START)
    assert histories[0]["nextExecutionTime"] == "2026-03-28T20:00:00Z"


def test_histories_are_limited_and_hold_failures() -> None:
    spec = {"rules": [a_rule(failedHistoryLimit=1, successfulHistoryLimit=0)]}
    _, histories = look(spec, [], START)
    for day in range(1, 4):
        now = START + timedelta(days=day)
        (due,) = due_rules(spec, histories, now)
        histories = next_histories(spec, histories, {"day": (due, {}, f"failure {day}")}, now)
    (entry,) = histories
    assert [each["message"] for each in entry["failedExecutions"]] == ["failure 3"]
    assert "successfulExecutions" not in entry


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"schedule": "0 8 * *"}, "schedule"),
        ({"schedule": "61 8 * * *"}, "schedule"),
        ({"schedule": "0 0 30 2 *"}, "schedule"),
        ({"schedule": "@reboot"}, "schedule"),
        ({"timeZone": "Mars/Olympus"}, "timeZone"),
        ({"timeZone": "../etc/passwd"}, "timeZone"),
        ({"schedule": "@daily"}, ""),
        ({"timeZone": "Asia/Shanghai"}, ""),
    ],
)
def test_the_wrong_field_is_named(fields: dict[str, Any], field: str) -> None:
    assert schedule_problem(a_rule() | fields)[0] == field
