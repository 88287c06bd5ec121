"""Debouncing and collection."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.planning.status.collection import collect, replicaset_digests, to_entry
from federation.planning.status.debounce import Coalescer, Pace


def test_a_change_waits_for_quiet_but_not_for_ever() -> None:
    pace: Coalescer[str] = Coalescer(Pace(quiet_s=0.5, wait_s_max=2.0))
    assert pace.note("a", 0.0) == 0.5
    assert pace.note("a", 0.4) == 0.5
    for step in range(1, 6):
        pace.note("a", 0.4 * step)
    assert pace.remaining_s("a", 2.0) == 0.0
    pace.take("a")
    assert pace.remaining_s("a", 2.0) == 0.0
    assert pace.note("a", 3.0) == 0.5


def test_writes_keep_a_minimum_interval() -> None:
    pace: Coalescer[str] = Coalescer(Pace(quiet_s=0.1, wait_s_max=1.0, interval_s=2.0))
    pace.wrote("a", 10.0)
    assert pace.note("a", 10.5) == 1.5
    pace.forget("a")
    assert pace.note("a", 10.5) == 0.1 or pace.remaining_s("a", 10.6) < 0.1


def test_an_urgent_change_does_not_wait_for_quiet_but_keeps_the_interval() -> None:
    pace: Coalescer[str] = Coalescer(Pace(quiet_s=0.5, wait_s_max=2.0, interval_s=1.0))
    assert pace.note("a", 0.0) == 0.5
    assert pace.note("a", 0.1, is_urgent=True) == 0.0
    assert pace.note("a", 0.2) == 0.0
    pace.take("a")
    pace.wrote("a", 0.2)
    assert pace.note("a", 0.7, is_urgent=True) == 0.5


_BURST = Pace(quiet_s=0.2, wait_s_max=2.0, interval_s=1.0, burst=3, spacing_s=0.1)


def test_a_change_of_a_settled_key_is_due_at_once() -> None:
    pace: Coalescer[str] = Coalescer(_BURST)
    assert pace.note("a", 0.0) == 0.2, "nothing was processed yet: more changes follow"
    pace.take("a")
    pace.settle("a")
    assert pace.note("a", 0.3) == 0.0
    assert pace.note("a", 0.31) == 0.0, "another change does not delay the first one"


def test_changes_that_follow_a_write_share_the_next_one() -> None:
    pace: Coalescer[str] = Coalescer(_BURST)
    pace.wrote("a", 1.0)
    assert pace.note("a", 1.02) == pytest.approx(0.08)
    assert pace.note("a", 1.04) == pytest.approx(0.06)


def test_a_series_of_changes_has_a_burst_of_writes_and_then_one_per_interval() -> None:
    pace: Coalescer[str] = Coalescer(_BURST)
    pace.settle("a")
    written = []
    for tenth in range(60):
        now_s = tenth / 10
        if pace.note("a", now_s) == 0.0:
            pace.take("a")
            pace.wrote("a", now_s)
            written.append(now_s)
    assert written == [0.0, 0.1, 0.2, 1.0, 2.0, 3.0, 4.0, 5.0]
    pace.take("a")
    assert pace.note("a", 9.0) == 0.0, "after a pause the next one is due at once"


def test_changes_that_are_held_wait_the_whole_time_unless_an_urgent_one_comes() -> None:
    pace: Coalescer[str] = Coalescer(_BURST)
    pace.settle("a")
    pace.note("a", 0.0)
    pace.hold("a")
    assert pace.note("a", 0.5) == pytest.approx(1.5)
    assert pace.note("a", 0.6, is_urgent=True) == 0.0


def test_patient_changes_of_a_settled_key_wait_the_whole_time_unless_an_urgent_one_comes() -> None:
    pace: Coalescer[str] = Coalescer(_BURST)
    pace.settle("a")
    assert pace.note("a", 10.0, is_patient=True) == 2.0
    assert pace.note("a", 10.5) == 1.5  # no pause ends the wait, and no change that is not patient
    assert pace.note("a", 11.0, is_urgent=True) == 0.0
    pace.take("a")
    assert pace.note("a", 12.0) == 0.0


_SHARED = Pace(quiet_s=0.2, wait_s_max=4.0, share_s=0.2, stretch_max=15.0)


def _crowd(size: int) -> Coalescer[str]:
    pace: Coalescer[str] = Coalescer(_SHARED)
    for number in range(size):
        pace.note(str(number), 0.0, is_patient=True)
    return pace


@pytest.mark.parametrize(("keys", "wait_s"), [(1, 4.0), (20, 4.0), (40, 8.0), (300, 60.0), (5000, 60.0)])
def test_patient_changes_wait_longer_the_more_keys_have_open_changes(keys: int, wait_s: float) -> None:
    pace, now_s = _crowd(keys), 0.0
    while (remaining_s := pace.remaining_s("0", now_s)) > 0:
        now_s += remaining_s
    assert now_s == wait_s


def test_a_key_that_others_made_wait_is_due_soon_after_they_are_processed() -> None:
    pace = _crowd(300)
    assert pace.remaining_s("0", 4.0) == 4.0, "half of the way to the next look"
    for number in range(1, 300):
        pace.take(str(number))
    assert pace.remaining_s("0", 8.0) == 0.0


def test_urgent_and_settled_changes_do_not_wait_for_others() -> None:
    pace: Coalescer[str] = Coalescer(Pace(0.2, 4.0, interval_s=1.0, burst=5, share_s=0.2, stretch_max=15.0))
    pace.settle("settled")
    for number in range(300):
        pace.note(str(number), 0.0, is_patient=True)
    assert pace.note("settled", 1.0) == 0.0
    assert pace.note("0", 1.0, is_urgent=True) == 0.0


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_waits_grow_with_the_keys_within_their_bounds(few: int, more: int) -> None:
    few, more = sorted((few, more))
    assert 1.0 <= _SHARED.stretch(few) <= _SHARED.stretch(more) <= 15.0


def test_missing_fields_are_named_and_the_others_kept() -> None:
    obj = {"metadata": {"generation": 2}, "spec": {"replicas": 3}}
    fields = (("metadata", "generation"), ("status",), ("spec", "replicas", "deep"))
    collected, error = collect(obj, fields)
    assert collected == {"metadata": {"generation": 2}}
    assert error == "Failed to get those fields: spec.replicas.deep: spec.replicas is not a map, status: not found"
    assert "error" not in to_entry("a", obj, (("spec", "replicas"),))


def test_collecting_never_changes_the_members_object() -> None:
    obj = {"status": {"a": {"b": 1, "c": 2}}}
    collected, _ = collect(obj, (("status",), ("status", "a", "b")))
    assert obj == {"status": {"a": {"b": 1, "c": 2}}}
    assert collected["status"]["a"]["b"] == 1


def test_digests_come_from_members_that_report_them() -> None:
    annotations = {
        names.LATEST_REPLICASET_PREFIX + "name": "web-1",
        names.LATEST_REPLICASET_PREFIX + "replicas": "3",
        names.SOURCE_GENERATION: "7",
    }
    found = replicaset_digests({"a": {"metadata": {"annotations": annotations}}, "b": {"metadata": {}}})
    assert found == '[{"clusterName":"a","replicasetName":"web-1","replicas":3,"sourceGeneration":7}]'
    assert replicaset_digests({"b": {}}) is None
