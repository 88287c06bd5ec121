"""Entries of the time line of decisions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.web.ui.decisionline import in_force_before, moves_of, to_entry, to_link, to_words

PLACED = st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.integers(0, 5))


def a_record(outcome: str = "Scheduled", **explanation: Any) -> dict[str, Any]:
    about = {"group": "apps", "kind": "Deployment", "namespace": "default", "name": "web"}
    times = {"at": "2026-01-01T00:02:00.000000Z", "lastAt": "2026-01-01T00:02:00.000000Z", "repeats": 0}
    return {**about, **times, "outcome": outcome, "durationMs": 1.0, "explanation": explanation}


def decided(previous: Any, placements: Any, **more: Any) -> dict[str, Any]:
    return {"unit": {"kind": "Deployment"}, "previous": previous, "placements": placements, **more}


def test_moves_are_the_clusters_that_changed_the_largest_first() -> None:
    before, after = {"a": 1, "b": 5, "c": 2, "e": None}, {"a": 2, "b": 1, "c": 2, "d": None}
    moves = [(move.cluster, move.before, move.after, move.tone) for move in moves_of(decided(before, after))]
    assert moves == [
        ("b", "5", "1", "bad"),
        ("a", "1", "2", "good"),
        ("d", "-", "all", "good"),
        ("e", "all", "-", "bad"),
    ]


def test_a_failed_decision_moves_nothing() -> None:
    assert moves_of(decided({"a": 1}, {})) == []
    entry = to_entry(a_record("NoFeasibleCluster", **decided({"a": 1}, {}), reason="none fits"))
    assert (entry.tone, entry.outcome, entry.reason, entry.stays) == ("bad", "No feasible cluster", "none fits", 1)


def test_a_deferred_decision_names_its_trigger() -> None:
    entry = to_entry(a_record("Deferred", placements={"a": 1}, because=["clusterTaintsHash"], reason="clusterJoined"))
    assert entry.cause.startswith("changed: ")
    assert entry.reason.startswith("a cluster joined; the policy does not follow that")
    assert (entry.tone, entry.is_decided) == ("unknown", False)


def test_a_first_decision_says_so_and_missing_replicas_are_a_warning() -> None:
    entry = to_entry(a_record(**decided({}, {"a": 2}, unplaced=3)))
    assert (entry.cause, entry.tone) == ("first placement", "warn")


@pytest.mark.parametrize(
    ("group", "namespace", "path"),
    [
        ("apps", "default", "/ui/decisions/apps/Deployment/default/web"),
        ("", "", "/ui/decisions/core/Deployment/-/web"),
    ],
)
def test_the_link_of_a_decision_names_its_object_and_time(group: str, namespace: str, path: str) -> None:
    link = to_link({**a_record(), "group": group, "namespace": namespace})
    assert link == f"{path}?at=2026-01-01T00%3A02%3A00.000000Z"


def test_the_decision_to_compare_with_is_the_last_one_that_ran() -> None:
    ran, deferred = a_record(**decided({}, {"a": 1})), a_record("Deferred", placements={})
    assert in_force_before([ran, deferred, ran], 0) is ran
    assert in_force_before([ran, deferred], 0) is deferred
    assert in_force_before([ran], 0) is None


@pytest.mark.parametrize(("reason", "words"), [("PluginFailed", "Plugin failed"), ("Sticky", "Kept"), ("", "")])
def test_reasons_are_shown_as_words(reason: str, words: str) -> None:
    assert to_words(reason) == words


@given(PLACED, PLACED.filter(bool))
def test_every_cluster_has_moved_or_stays(before: dict[str, int | None], after: dict[str, int | None]) -> None:
    moves = moves_of(decided(before, after))
    assert {move.cluster for move in moves} == {
        name for name in {*before, *after} if (name in before, before.get(name)) != (name in after, after.get(name))
    }
    assert all(move.before != move.after for move in moves)
    entry = to_entry(a_record(**decided(before, after)))
    assert len(entry.moves) + entry.moves_more == len(moves)
    assert entry.stays == len(after) - sum(move.after != "-" for move in moves)
