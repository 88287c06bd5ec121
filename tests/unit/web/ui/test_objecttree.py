"""The tree of an object from its delivery and its newest decision."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.diagnosis.objectsummary import Outcome
from federation.web.ui import objecttree
from federation.web.ui.objecttree import ObjectTree

PROPAGATED = {"type": "Propagated", "status": "True", "reason": "Propagated", "message": ""}


NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def grow(delivered: dict[str, Any], decision: Any, outcome: Outcome | None = None) -> ObjectTree:
    return objecttree.grow(delivered, decision, NOW, outcome)


def a_row(cluster: str = "east", **changes: Any) -> dict[str, Any]:
    row = {"placed": True, "wanted": 2, "applied": "yes", "ready": 2, "status": "OK", "message": ""}
    return {"cluster": cluster, **row, **changes}


def delivery(*rows: dict[str, Any], conditions: Any = (PROPAGATED,), **more: Any) -> dict[str, Any]:
    return {"conditions": list(conditions), "clusters": list(rows), **more}


@pytest.mark.parametrize(
    ("changes", "tone", "state"),
    [
        ({}, "good", "Ready"),
        ({"wanted": None, "ready": None}, "good", "Up to date"),
        ({"ready": 1}, "busy", "Starting"),
        ({"ready": None}, "busy", "Starting"),
        ({"applied": "outdated"}, "busy", "Earlier version"),
        ({"applied": "no", "status": ""}, "busy", "Not there yet"),
        ({"applied": "unknown"}, "unknown", "Last known"),
        ({"status": "ApplyOverridesFailed", "applied": "no"}, "bad", "Override does not apply"),
        ({"status": "ClusterNotReady"}, "unknown", "Last known state"),
        ({"status": "WaitingForUpdate", "applied": "outdated"}, "busy", "Waits for its update"),
        ({"status": "PendingCreate", "applied": "no"}, "busy", "Not there yet"),
        ({"status": "FromALaterVersion"}, "bad", "FromALaterVersion"),
        ({"placed": False}, "busy", "Leaving"),
    ],
)
def test_a_cluster_has_one_state(changes: dict[str, Any], tone: str, state: str) -> None:
    (branch,) = grow(delivery(a_row(**changes)), None).branches
    assert (branch.tone, branch.state) == (tone, state)


def test_the_object_is_as_good_as_its_worst_cluster() -> None:
    rows = [a_row("a"), a_row("b", ready=0), a_row("c", applied="unknown"), a_row("d", status="Refused")]
    states = [grow(delivery(*rows[: count + 1]), None).state for count in range(4)]
    assert states == ["Delivered", "On its way", "Last known state", "Not delivered"]


def test_an_object_without_clusters_says_why() -> None:
    unplaced = {"type": "Scheduled", "status": "False", "reason": "NoPolicy", "message": "no policy selects it"}
    tree = grow(delivery(conditions=[unplaced]), None)
    assert (tree.tone, tree.state) == ("bad", "Not placed")
    assert (tree.facts[0].title, tree.facts[0].text) == ("Not scheduled", "no policy selects it")
    assert grow(delivery(conditions=[]), None).state == "Not federated"


def test_policy_overrides_and_rejections_come_from_the_decision_and_the_delivery() -> None:
    policy = {"namespace": "default", "name": "divide"}
    tree = grow(delivery(a_row(), overridePolicies=["default/image", "wide"]), {"explanation": {"policy": policy}})
    assert tree.policy == policy
    assert tree.overrides == ({"namespace": "default", "name": "image"}, {"namespace": "", "name": "wide"})


@pytest.mark.parametrize(
    ("until", "note"),
    [
        ("2026-01-01T12:04:30Z", "for 4 min, until 12:04:30 UTC; then the object leaves"),
        ("2026-01-01T11:59:59Z", "not tolerated any more"),
    ],
)
def test_a_toleration_that_is_over_is_not_told_as_one_to_come(until: str, note: str) -> None:
    (branch,) = grow(delivery(a_row(toleratedUntil=until)), None).branches
    assert note in branch.notes[0]


@pytest.mark.parametrize(
    ("until", "end"),
    [("2026-01-01T12:00:01Z", "3 times; corrections pause until 12:00:01 UTC"), ("2026-01-01T12:00:00Z", "3 times")],
)
def test_a_pause_of_corrections_is_told_until_it_is_over(until: str, end: str) -> None:
    drift = {"message": "spec.replicas was changed", "corrections": 3, "pausedUntil": until}
    (branch,) = grow(delivery(a_row(drift=drift)), None).branches
    assert branch.notes[0].endswith(end)


def test_a_condition_about_clusters_does_not_repeat_what_each_of_them_says() -> None:
    waits = {"type": "Propagated", "status": "False", "reason": "CheckClusters", "message": "b: ClusterNotReady"}
    tree = grow(delivery(a_row("a"), a_row("b", status="ClusterNotReady"), conditions=[waits]), None)
    assert [(fact.tone, fact.text) for fact in tree.facts] == [("unknown", "1 of 2 clusters")]


def test_a_job_that_ended_has_no_replicas_to_wait_for() -> None:
    rows = [a_row("a", wanted=1, ready=0), a_row("b", wanted=1, ready=0)]
    tree = grow(delivery(*rows), None, Outcome.COMPLETE)
    assert (tree.wanted, tree.state, [branch.state for branch in tree.branches]) == (None, "Complete", ["Complete"] * 2)
    assert grow(delivery(*rows), None, Outcome.FAILED).tone == "bad"


def test_clusters_are_in_natural_order_and_rejections_are_grouped_by_reason() -> None:
    tree = grow(delivery(a_row("member-10"), a_row("member-2")), None)
    assert [branch.cluster for branch in tree.branches] == ["member-2", "member-10"]


@given(st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=5))
def test_totals_add_what_is_known(counts: list[tuple[int | None, int | None]]) -> None:
    tree = grow(delivery(*(a_row(str(n), wanted=w, ready=r) for n, (w, r) in enumerate(counts))), None)
    wanted, ready = [w for w, _ in counts if w is not None], [r for _, r in counts if r is not None]
    assert tree.wanted == (sum(wanted) if wanted else None)
    assert tree.ready == (sum(ready) if ready else None)
