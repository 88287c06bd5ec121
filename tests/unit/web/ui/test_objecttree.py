"""The tree of an object from its delivery and its newest decision."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.web.ui.objecttree import grow

PROPAGATED = {"type": "Propagated", "status": "True", "reason": "Propagated", "message": ""}


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
        ({"status": "ApplyOverridesFailed", "applied": "no"}, "bad", "ApplyOverridesFailed"),
        ({"placed": False}, "busy", "Leaving"),
    ],
)
def test_a_cluster_has_one_state(changes: dict[str, Any], tone: str, state: str) -> None:
    (branch,) = grow(delivery(a_row(**changes)), None).branches
    assert (branch.tone, branch.state) == (tone, state)


def test_the_object_is_as_good_as_its_worst_cluster() -> None:
    rows = [a_row("a"), a_row("b", ready=0), a_row("c", applied="unknown"), a_row("d", status="Refused")]
    states = [grow(delivery(*rows[: count + 1]), None).state for count in range(4)]
    assert states == ["Delivered", "On its way", "Partly unknown", "Not delivered"]


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


def test_drift_and_tolerations_are_notes() -> None:
    drift = {"message": "spec.replicas was changed", "corrections": 3, "pausedUntil": "12:00"}
    row = a_row(drift=drift, toleratedUntil="2026-01-01T00:00:00Z", scaler="web")
    (branch,) = grow(delivery(row), None).branches
    assert len(branch.notes) == 3
    assert branch.notes[2] == "drift: spec.replicas was changed; written back 3 times; corrections pause until 12:00"


@given(st.lists(st.tuples(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9)), max_size=5))
def test_totals_add_what_is_known(counts: list[tuple[int | None, int | None]]) -> None:
    tree = grow(delivery(*(a_row(str(n), wanted=w, ready=r) for n, (w, r) in enumerate(counts))), None)
    wanted, ready = [w for w, _ in counts if w is not None], [r for _, r in counts if r is not None]
    assert tree.wanted == (sum(wanted) if wanted else None)
    assert tree.ready == (sum(ready) if ready else None)
