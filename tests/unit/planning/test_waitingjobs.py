"""The place of an object in its queue, for people."""

from datetime import UTC, datetime

import pytest

from federation.planning.waitingjobs import describe_alternatives, place_of, start_of

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_the_place_is_that_of_the_object_and_of_no_other_kind() -> None:
    job = {"kind": "Job", "name": "train", "position": 3, "waitsFor": "needs 4 cores"}
    queues = [{"metadata": {"name": "team"}, "status": {"waiting": [job]}}, {"metadata": {"name": "empty"}}]
    expected = "position 3 of JobQueue team; needs 4 cores; its start is not known"
    assert place_of(queues, "Job", "train", NOW) == expected
    assert place_of(queues, "RayJob", "train", NOW) == ""


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-01-01T11:00:00Z", "expected to start now"),
        ("2026-01-01T12:07:00Z", "expected to start in 7 min"),
        ("2026-01-01T14:07:00Z", "expected to start in 2 h 7 min"),
    ],
)
def test_a_start_is_said_as_the_time_until_then(time: str, text: str) -> None:
    assert start_of({"estimatedStartTime": time}, NOW) == text


def test_alternatives_are_described() -> None:
    found = [
        {"cluster": "west", "startsAt": "S", "endsBy": "E", "cost": 1.25, "isMet": True},
        {"cluster": "spot", "isSpot": True, "cost": 12, "measure": "carbon"},
        {"cluster": "new"},
    ]
    assert describe_alternatives(found) == [
        "west: starts S, ends by E, costs 1.25, in time",
        "spot (spot): start not known, emits 12 g CO2e, too late",
        "new: start not known, cost not known, too late",
    ]
