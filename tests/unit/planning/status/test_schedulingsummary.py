"""The Scheduled condition of a source object."""

from typing import Any

import orjson

from federation.api import names
from federation.planning.status.schedulingsummary import describe_move, scheduled_condition


def a_federated(placement: dict[str, int | None] | None, summary: str = "", **condition: str) -> dict[str, Any]:
    annotations = {names.SCHEDULING: orjson.dumps({"placement": placement}).decode()} if placement else {}
    if summary:
        annotations[names.SCHEDULING_SUMMARY] = summary
    stated = [{"type": names.SCHEDULED, **condition}] if condition else []
    return {"metadata": {"annotations": annotations}, "status": {"conditions": stated}}


def message(fed_object: dict[str, Any]) -> str:
    condition = scheduled_condition(fed_object)
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", names.REASON_SCHEDULED)
    return str(condition["message"])


def test_the_message_names_available_clusters_and_placement() -> None:
    placed = {"west": 1, "east": 2, "north": 1}
    assert message(a_federated(placed, "3/3 clusters are available")) == (
        "3/3 clusters are available; east 2, north 1, west 1"
    )
    assert message(a_federated({"west": None, "east": None})) == "east, west"


def test_a_long_placement_is_shortened() -> None:
    text = message(a_federated({f"c{number:03}": 1 for number in range(500)}))
    assert text.endswith("c019 1, and 480 more clusters")


def test_a_failed_attempt_is_reported_instead_of_the_last_placement() -> None:
    unscheduled = a_federated(
        {"east": 2}, "1/1 clusters are available", status="False", reason="NoPolicy", message="none"
    )
    assert scheduled_condition(unscheduled) == {
        "type": names.SCHEDULED,
        "status": "False",
        "reason": "NoPolicy",
        "message": "none",
    }


def test_no_condition_before_the_first_decision() -> None:
    assert scheduled_condition(a_federated(None)) is None
    broken = {"metadata": {"annotations": {names.SCHEDULING: "nonsense"}}}
    assert scheduled_condition(broken) is None


def test_a_move_names_added_removed_and_changed_clusters() -> None:
    before = {"east": 2, "west": 1, "same": 1, "all": None}
    after = {"east": 5, "new": 3, "copy": None, "same": 1, "all": 4}
    assert describe_move(before, after) == "all all → 4, +copy, east 2 → 5, +new 3, -west"
    assert describe_move({"a": 1}, {"a": None}) == "a 1 → all"


def test_a_first_placement_is_described_completely_up_to_a_limit() -> None:
    assert describe_move({}, {"west": 2, "east": 4}) == "east 4, west 2"
    assert describe_move({}, {"west": None, "east": None}) == "east, west"
    many = describe_move({}, {f"c{number:02}": 1 for number in range(22)})
    assert many.endswith("c19 1, and 2 more clusters")
