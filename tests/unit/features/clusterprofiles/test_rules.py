"""What a ClusterProfile says of its cluster."""

from datetime import UTC, datetime
from typing import Any

import pytest

from federation.features.clusterprofiles.names import MANAGER_LABEL
from federation.features.clusterprofiles.rules import changes_of, is_ours, to_profile, to_status

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


def a_cluster(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "east", "uid": "u", "labels": {MANAGER_LABEL: "forged", "a": "b"}}, "status": status}


def test_labels_of_a_cluster_do_not_make_it_anothers() -> None:
    assert to_profile(a_cluster())["metadata"]["labels"] == {MANAGER_LABEL: "federation", "a": "b"}


@pytest.mark.parametrize("spec", [{}, {"clusterManager": None}, {"clusterManager": {"name": "other"}}])
def test_a_profile_without_our_name_is_not_ours(spec: dict[str, Any]) -> None:
    assert not is_ours({"spec": spec})
    assert is_ours(to_profile(a_cluster()))


def test_a_profile_as_wanted_is_not_written() -> None:
    wanted = to_profile(a_cluster())
    assert changes_of(wanted, wanted) == {}
    other = {**wanted, "metadata": {**wanted["metadata"], "labels": {"old": "1"}}}
    assert changes_of(wanted, other) == {"metadata": {"labels": {"old": None, MANAGER_LABEL: "federation", "a": "b"}}}


def test_a_cluster_that_has_not_joined_is_unknown() -> None:
    status = to_status(a_cluster(), {}, NOW)
    assert {(each["type"], each["status"]) for each in status["conditions"]} == {
        ("ControlPlaneHealthy", "Unknown"),
        ("Joined", "Unknown"),
    }
    assert all(each["reason"] and each["message"] for each in status["conditions"])
    assert status["properties"] == [{"name": "cluster.clusterset.k8s.io", "value": "east"}]


def test_times_change_with_the_status_only() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "fine"}
    first = to_status(a_cluster(conditions=[ready]), {}, NOW)
    assert to_status(a_cluster(conditions=[ready]), first, LATER) == first
    lost = to_status(a_cluster(conditions=[{**ready, "status": "False"}]), first, LATER)
    assert {each["type"]: each["lastTransitionTime"] for each in lost["conditions"]} == {
        "ControlPlaneHealthy": "2026-01-02T00:00:00Z",
        "Joined": "2026-01-01T00:00:00Z",
    }


def test_a_value_of_a_member_stays_within_the_limits_of_the_kind() -> None:
    status = to_status(a_cluster(region="r" * 5000, resources={"allocatable": {"x" * 400: "1"}}), {}, NOW)
    assert all(len(each["name"]) <= 253 and 0 < len(each["value"]) <= 1024 for each in status["properties"])
