"""What counts of members that do not answer."""

from datetime import UTC, datetime, timedelta
from typing import Any

from federation.api import names
from federation.planning.status.staleness import last_known, with_stale_condition

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_silent_member_counts_at_most_the_wanted_replicas() -> None:
    member = {"status": {"replicas": 5, "readyReplicas": 2, "availableReplicas": True, "observedGeneration": 9}}
    assert last_known(member, 3)["status"] == {**member["status"], "replicas": 3}
    assert last_known(member, None) is member
    assert last_known({}, 3) == {}


def test_the_condition_names_silent_clusters_and_keeps_its_time() -> None:
    other: dict[str, Any] = {"type": "Available", "status": "True"}
    stale = with_stale_condition({"conditions": [other]}, {}, ["west", "east"], NOW)
    kept, condition = stale["conditions"]
    assert kept == other
    assert (condition["type"], condition["status"]) == (names.STATUS_STALE, "True")
    assert condition["message"] == "clusters [east,west] do not answer; what they reported last counts"
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    later = with_stale_condition({"conditions": [other, condition]}, stale, ["east"], NOW + timedelta(days=1))
    assert [entry["type"] for entry in later["conditions"]] == ["Available", names.STATUS_STALE]
    assert later["conditions"][1]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert with_stale_condition(stale, stale, [], NOW)["conditions"] == [other]
    assert with_stale_condition({"replicas": 1}, {}, [], NOW) == {"replicas": 1}


def test_many_silent_clusters_are_counted() -> None:
    clusters = [f"c{number:02}" for number in range(22)]
    (condition,) = with_stale_condition({}, {}, clusters, NOW)["conditions"]
    assert condition["message"].startswith("clusters [c00,c01,")
    assert "c19] and 2 more do not answer" in condition["message"]
    (condition,) = with_stale_condition({}, {}, clusters[:20], NOW)["conditions"]
    assert "c19] do not answer" in condition["message"]
