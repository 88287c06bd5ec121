from datetime import UTC, datetime

from federation.apimachinery import conditions

T0 = datetime(2026, 1, 1, tzinfo=UTC)
T1 = datetime(2026, 1, 2, tzinfo=UTC)


def test_a_new_condition_is_appended_with_its_time() -> None:
    result = conditions.set_condition(None, type_="Ready", status="True", reason="Ok", now=T0)
    assert result == [{"type": "Ready", "status": "True", "reason": "Ok", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    assert conditions.is_true(result, "Ready")
    assert not conditions.is_true(result, "Joined")


def test_the_transition_time_moves_only_with_the_status() -> None:
    first = conditions.set_condition(None, type_="Ready", status="True", reason="Ok", now=T0)
    message = conditions.set_condition(first, type_="Ready", status="True", reason="Ok", message="fine", now=T1)
    flipped = conditions.set_condition(message, type_="Ready", status="False", reason="Bad", now=T1)
    assert message[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert flipped[0]["lastTransitionTime"] == "2026-01-02T00:00:00Z"


def test_the_same_list_comes_back_when_nothing_changed() -> None:
    first = conditions.set_condition(None, type_="Ready", status="True", now=T0, time_fields=("lastUpdateTime",))
    again = conditions.set_condition(first, type_="Ready", status="True", now=T1, time_fields=("lastUpdateTime",))
    assert again is first
    newer = conditions.set_condition(first, type_="Ready", status="True", now=T1, reason="Other")
    assert newer is not first


def test_other_conditions_keep_their_place() -> None:
    given = [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]
    result = conditions.set_condition(given, type_="A", status="False", now=T0)
    assert [condition["type"] for condition in result] == ["A", "B"]
    assert given[0]["status"] == "True"


def test_removing_leaves_the_rest() -> None:
    given = [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]
    assert conditions.remove(given, "A") == [{"type": "B", "status": "True"}]
    assert conditions.remove(given, "C") is given
    assert conditions.remove(None, "C") == []
