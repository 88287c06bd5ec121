"""The status of a federated object: when it is written, when it is complete, and which clusters' pods count by it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import Object
from federation.delivery.rules.status import (
    departing_clusters,
    is_fully_observed,
    outdated_clusters,
    plan_status,
    reason_of,
)
from federation.planning.status.staleness import without_updated


def published(**statuses: str) -> Object:
    """Return a federated object that is placed in "east" and "north"."""
    clusters = [{"cluster": name, "status": status} for name, status in statuses.items()]
    placement = [{"cluster": "east"}, {"cluster": "north"}]
    return {"spec": {"placements": [{"controller": "c", "placement": placement}]}, "status": {"clusters": clusters}}


def test_a_cluster_that_left_the_placement_and_keeps_pods_is_departing() -> None:
    found = published(east="WaitingForReplicas", north="OK", west="WaitingForReplicas", south="WaitingForRemoval")
    assert departing_clusters(found) == {"west"}
    assert departing_clusters({}) == frozenset()


def test_pods_of_departing_clusters_and_of_old_templates_are_outdated() -> None:
    found = published(east="WaitingForUpdate", north="WaitingForReplicas", west="WaitingForReplicas")
    assert outdated_clusters(found) == {"east", "west"}


def test_outdated_pods_count_except_as_updated() -> None:
    status = {"replicas": 2, "updatedReplicas": 2, "updatedReadyReplicas": 1}
    assert without_updated({"status": status})["status"] == {"replicas": 2}
    assert without_updated({"metadata": {}})["status"] == {}


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _synced(**more: Any) -> dict[str, Any]:
    """Return what `is_fully_observed` gets of an object that is, with changes by path."""
    found: dict[str, Any] = {
        "source": {"metadata": {"generation": 3}},
        "federated": published(east="OK", north="OK"),
        "members": {name: {"status": {"observedGeneration": 5}} for name in ("east", "north")},
    }
    federated = found["federated"]
    federated["metadata"] = {"generation": 7, "annotations": {names.PENDING_CONTROLLERS: "[]"}}
    federated["spec"]["template"] = {"metadata": {"generation": 3}}
    federated["status"]["syncedGeneration"] = 7
    for entry in federated["status"]["clusters"]:
        entry["lastObservedGeneration"] = 5
    for path, value in more.items():
        *parents, last = path.split("__")
        target: Any = found
        for step in parents:
            target = target[int(step) if step.isdigit() else step]
        target[int(last) if last.isdigit() else last] = value
    return found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, True),
        ({"members__east__status": {"observedGeneration": 6}}, True),
        ({"federated__status__clusters__0__status": "Kept", "members__east__status": {}}, True),
        ({"source__metadata__generation": 4}, False),
        ({"federated__metadata__generation": 8}, False),
        ({"federated__metadata__annotations": {names.PENDING_CONTROLLERS: '[["x"]]'}}, False),
        ({"federated__status__clusters__0__status": "UpdateFailed"}, False),
        ({"federated__status__clusters__0__cluster": "south", "members__south": {}}, False),
        ({"members__east__status": {"observedGeneration": 4}}, False),
        ({"members__east": None}, False),
        ({"federated__status__clusters__0__lastObservedGeneration": None, "members__east": None}, True),
        ({"federated__status": None}, False),
    ],
)
def test_an_object_is_observed_when_all_its_clusters_have_its_newest_generation(
    change: dict[str, Any], expected: bool
) -> None:
    assert is_fully_observed(**_synced(**change)) is expected


def _plan(status: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any] | None:
    given: dict[str, Any] = {"generation": 2, "statuses": {"b": "OK", "a": "OK"}, "generations": {"a": 1}, "now": NOW}
    return plan_status(status or {}, **{**given, **more})


def test_a_status_lists_clusters_in_order_with_what_is_known_of_them() -> None:
    failing = {"b": "OK", "a": "UpdateFailed"}
    planned = _plan(statuses=failing, messages={"a": "x" * 2000, "b": "unused"}, message="a: UpdateFailed")
    assert planned is not None
    assert planned["syncedGeneration"] == 2
    assert planned["clusters"] == [
        {"cluster": "a", "status": "UpdateFailed", "lastObservedGeneration": 1, "message": "x" * 1024},
        {"cluster": "b", "status": "OK", "lastObservedGeneration": 0},
    ]
    (condition,) = planned["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", names.REASON_CHECK_CLUSTERS)
    assert condition["message"] == "a: UpdateFailed"
    assert _plan(planned, statuses=failing, messages={"a": "x" * 2000}, message="a: UpdateFailed") is None


@pytest.mark.parametrize(
    ("change", "is_written", "is_transition", "is_refreshed"),
    [
        ({}, False, False, False),
        ({"generation": 3}, True, False, False),
        ({"statuses": {"b": "OK"}}, True, False, True),
        ({"generations": {"a": 2}}, True, False, True),
        ({"resources_updated": True}, True, False, True),
        ({"message": "other"}, True, False, True),
        ({"statuses": {"b": "OK", "a": "UpdateFailed"}}, True, True, True),
        ({"reason": "Other"}, True, True, True),
    ],
    ids=["nothing", "generation", "clusters", "member generation", "operation", "message", "failure", "reason"],
)
def test_a_status_is_written_when_it_changed_and_its_times_say_what_did(
    change: dict[str, Any], is_written: bool, is_transition: bool, is_refreshed: bool
) -> None:
    before = _plan()
    assert before is not None
    after = _plan(before, now=NOW + timedelta(days=1), **change)
    assert (after is not None) is is_written
    if after is not None:
        (condition,) = after["conditions"]
        late, early = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"
        assert condition["lastTransitionTime"] == (late if is_transition else early)
        assert condition["lastUpdateTime"] == (late if is_refreshed else early)


def test_kept_objects_are_as_wanted_and_another_reason_wins() -> None:
    assert reason_of({"a": "OK", "b": "Kept"}) == ""
    assert reason_of({"a": "OK", "b": "PendingCreate"}) == names.REASON_CHECK_CLUSTERS
    assert reason_of({"a": "OK"}, "NoPolicy") == "NoPolicy"
