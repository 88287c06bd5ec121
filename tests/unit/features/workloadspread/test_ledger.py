"""The ledger of admission: which subset a new pod gets, and what is recorded."""

from typing import Any

import pytest
from tests.support.spreads import NOW, SpreadWorkload, a_pod, a_spread, seconds_ago

from federation.apimachinery.errors import InvalidInput
from federation.features.workloadspread.names import MATCHED_WORKLOAD_SPREAD
from federation.features.workloadspread.rules.ledger import (
    Choice,
    Match,
    choose_subset,
    creation_records,
    initial_entry,
    parse_match,
    record_deletion,
    without_creations,
)
from federation.features.workloadspread.rules.subsets import uses_percentages
from federation.features.workloadspread.rules.versions import VERSION_IGNORED

A2_B = [{"name": "a", "maxReplicas": 2}, {"name": "b"}]
ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 30}}


def _chosen(spread: dict[str, Any], pod: dict[str, Any], total: int = 0, **options: Any) -> str | None:
    choice = choose_subset(spread, pod, version=VERSION_IGNORED, total=total, uid="new", now=NOW, **options)
    return None if choice.subset is None else choice.subset["name"]


def _with_entry(spread: dict[str, Any], *statuses: dict[str, Any], overall: Any = None) -> dict[str, Any]:
    return {
        **spread,
        "status": {"versionedSubsetStatuses": {VERSION_IGNORED: list(statuses)}, "subsetStatuses": overall},
    }


def _mark(status: str) -> dict[str, Any]:
    return {"conditions": [{"type": "Schedulable", "status": status}]}


def test_subsets_are_filled_in_order_and_a_removed_pod_gives_its_place_back() -> None:
    workload = SpreadWorkload(a_spread([*A2_B[:1], {"name": "b", "maxReplicas": 1}]))
    assert [workload.create(f"pod-{number}") for number in range(4)] == ["a", "a", "b", None]
    workload.reconcile()
    workload.delete("pod-0")
    assert [workload.create(), workload.create()] == ["a", None]


def test_negative_counts_of_other_writers_are_full() -> None:
    spread = _with_entry(a_spread(A2_B), {"name": "a", "missingReplicas": -5}, {"name": "b", "missingReplicas": -1})
    assert _chosen(spread, a_pod("pod-0")) == "b"
    assert record_deletion(spread, a_pod("pod-0", "a"), version=VERSION_IGNORED, total=0, now=NOW) is None


def test_a_retry_gets_the_same_subset_and_writes_nothing() -> None:
    workload = SpreadWorkload(a_spread(A2_B))
    assert workload.create("pod-0") == "a"
    before = workload.spread
    assert workload.create("pod-0") == "a"
    assert workload.spread is before


def test_a_record_of_a_removed_subset_does_not_decide() -> None:
    spread = _with_entry(
        a_spread(A2_B),
        {"name": "gone", "missingReplicas": 0, "creatingPods": {"pod-0": "2026-01-01T12:00:00Z"}},
        {"name": "a", "missingReplicas": 1},
    )
    assert _chosen(spread, a_pod("pod-0")) == "a"


def test_a_pod_without_a_name_is_recorded_by_its_id() -> None:
    pod = {"metadata": {"generateName": "web-", "ownerReferences": []}, "spec": {}}
    choice = choose_subset(a_spread(A2_B), pod, version="v1", total=0, uid="id-1", now=NOW)
    assert choice.uid == "id-1"
    assert choice.status is not None
    assert list(choice.status["versionedSubsetStatuses"]["v1"][0]["creatingPods"]) == ["id-1"]


@pytest.mark.parametrize("where", ["this version", "all versions"])
def test_an_unschedulable_subset_is_skipped(where: str) -> None:
    marked = {"name": "a", "missingReplicas": 2, **_mark("False")}
    plain = {"name": "a", "missingReplicas": 2, **_mark("True")}
    spread = _with_entry(a_spread(A2_B), marked if where == "this version" else plain, overall=[marked])
    assert _chosen(spread, a_pod("pod-0")) == "b"
    assert _chosen(_with_entry(a_spread(A2_B), plain, overall=[plain]), a_pod("pod-0")) == "a"


def test_limits_follow_the_current_total_and_the_current_spec() -> None:
    workload = SpreadWorkload(a_spread([{"name": "a", "maxReplicas": "50%"}, {"name": "b", "maxReplicas": "50%"}]))
    workload.total = 2
    assert [workload.create() for _ in range(3)] == ["a", "b", None]
    workload.total = 4
    assert [workload.create() for _ in range(3)] == ["a", "b", None], "before any reconcile"
    workload.spread = {**workload.spread, "spec": a_spread([{"name": "a"}, {"name": "b"}])["spec"]}
    assert workload.create() == "a"


def test_a_subset_that_joins_the_spec_has_no_pods_yet() -> None:
    spread = _with_entry(a_spread([{"name": "new", "maxReplicas": 1}, *A2_B]), {"name": "a", "missingReplicas": 0})
    assert _chosen(spread, a_pod("pod-0")) == "new"


def test_deletions_above_the_limit_free_no_place() -> None:
    workload = SpreadWorkload(a_spread([{"name": "a", "maxReplicas": 4}, {"name": "b"}]))
    for number in range(4):
        workload.create(f"pod-{number}")
    workload.spread = {**workload.spread, "spec": a_spread(A2_B)["spec"]}
    workload.reconcile()
    workload.delete("pod-0")
    assert workload.create() == "b"
    workload.delete("pod-1")
    workload.delete("pod-2")
    assert workload.create() == "a"


def test_pods_of_stateful_sets_are_placed_by_ordinal() -> None:
    subsets = [{"name": "a", "maxReplicas": 2}, {"name": "b", "maxReplicas": 2}]
    spread = a_spread(subsets, "StatefulSet")
    assert [_chosen(spread, a_pod(name)) for name in ("db-0", "db-1", "db-2", "db-3", "db-4", "db")] == [
        *("a", "a", "b", "b", None, "a")
    ]
    marked = {**spread, "status": {"subsetStatuses": [{"name": "a", **_mark("False")}]}}
    assert [_chosen(marked, a_pod(name)) for name in ("db-0", "db-2")] == ["b", None]
    assert record_deletion(spread, a_pod("db-0", "a"), version=VERSION_IGNORED, total=0, now=NOW) is None


def test_simulation_is_asked_only_when_it_is_on_and_never_about_the_last_subset() -> None:
    asked: list[str] = []

    def fits(subset: dict[str, Any]) -> bool:
        asked.append(subset["name"])
        return False

    spread = a_spread(A2_B, scheduleStrategy=ADAPTIVE)
    assert _chosen(spread, a_pod("pod-0"), fits=fits) == "b"
    assert asked == ["a"]
    off = {"type": "Adaptive", "adaptive": {"disableSimulationSchedule": True}}
    for strategy in (off, {"type": "Fixed"}, None):
        assert _chosen(a_spread(A2_B, scheduleStrategy=strategy), a_pod("pod-0"), fits=fits) == "a"
    assert asked == ["a"]


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("pod-0"),
        a_pod("pod-0", "unknown"),
        a_pod("pod-0", "b"),
        a_pod("", "a"),
        a_pod("pod-0", "a", phase="Failed"),
        {"metadata": {**a_pod("pod-0", "a")["metadata"], "ownerReferences": []}},
        {"metadata": {**a_pod("pod-0", "a")["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {
            "metadata": {
                **a_pod("pod-0")["metadata"],
                "annotations": {MATCHED_WORKLOAD_SPREAD: '{"name":"x","subset":"a"}'},
            }
        },
    ],
    ids=[
        "unmanaged",
        "unknown subset",
        "unlimited",
        "no name",
        "ended",
        "no controller",
        "terminating",
        "another spread",
    ],
)
def test_deletions_that_change_no_count_are_not_recorded(pod: dict[str, Any]) -> None:
    spread = _with_entry(a_spread(A2_B), {"name": "a", "missingReplicas": 0}, {"name": "b", "missingReplicas": -1})
    assert record_deletion(spread, pod, version=VERSION_IGNORED, total=0, now=NOW) is None


def test_a_deletion_is_recorded_once() -> None:
    spread = _with_entry(a_spread(A2_B), {"name": "a", "missingReplicas": 0})
    status = record_deletion(spread, a_pod("pod-0", "a"), version=VERSION_IGNORED, total=0, now=NOW)
    assert status is not None
    recorded = status["versionedSubsetStatuses"][VERSION_IGNORED][0]
    assert recorded == {"name": "a", "missingReplicas": 1, "deletingPods": {"pod-0": "2026-01-01T12:00:00Z"}}
    again = {**spread, "status": status}
    assert record_deletion(again, a_pod("pod-0", "a"), version=VERSION_IGNORED, total=0, now=NOW) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name":"ws","subset":"a"}', Match("ws", "a")),
        ('{"Name":"ws","Subset":"a","UID":"x"}', Match("ws", "a", "x")),
        ('{"name":"ws"}', None),
        ('{"name":1,"subset":"a"}', None),
        ("[]", None),
        ("{", None),
        (None, None),
        (7, None),
    ],
)
def test_annotations_of_any_content_are_read(text: Any, expected: Match | None) -> None:
    assert parse_match({"metadata": {"annotations": {MATCHED_WORKLOAD_SPREAD: text}}}) == expected


@pytest.mark.parametrize("limit", ["5", "5.5%", "%", "a%", True, 1.5, "٣%"])
def test_limits_that_are_no_numbers_are_errors(limit: Any) -> None:
    with pytest.raises(InvalidInput):
        initial_entry([{"name": "a", "maxReplicas": limit}], 10)


def test_only_percentages_need_the_total() -> None:
    assert uses_percentages([{"name": "a"}, {"name": "b", "maxReplicas": "5%"}])
    assert not uses_percentages([{"name": "a"}, {"name": "b", "maxReplicas": 5}])


def test_negative_limits_and_unknown_totals_count_as_zero() -> None:
    entry = initial_entry([{"name": "a", "maxReplicas": -1}, {"name": "b", "maxReplicas": "-5%"}], 10)
    entry += initial_entry([{"name": "c", "maxReplicas": "50%"}], -1)
    assert [status["missingReplicas"] for status in entry] == [0, 0, 0]


@pytest.mark.parametrize(("labels", "expected"), [({"kubeadmiral.io/managed": "true"}, "b"), ({}, None)])
def test_the_mark_of_the_last_subset_of_a_delivered_spread_only_reports(
    labels: dict[str, str], expected: str | None
) -> None:
    marked = [{"name": name, **_mark("False")} for name in ("a", "b")]
    spread = _with_entry(a_spread(A2_B, scheduleStrategy=ADAPTIVE), overall=marked)
    spread["metadata"] = {**spread["metadata"], "labels": labels}
    assert _chosen(spread, a_pod("pod-0")) == expected


def _recorded(**records: Any) -> dict[str, Any]:
    """Return a WorkloadSpread whose subset `a` has two pods, all it may have, and these records."""
    status = {"name": "a", "replicas": 2, "maxReplicas": 2, "missingReplicas": 0, **records}
    return _with_entry(a_spread(A2_B), status, {"name": "b", "replicas": 0, "missingReplicas": -1})


def _choice(spread: dict[str, Any], pod: dict[str, Any]) -> Choice:
    return choose_subset(spread, pod, version=VERSION_IGNORED, total=0, uid="new", now=NOW)


def test_a_recorded_deletion_frees_no_place_and_is_named() -> None:
    choice = _choice(_recorded(deletingPods={"pod-0": seconds_ago(1)}), a_pod("pod-9"))
    assert choice.subset is not None
    assert (choice.subset["name"], choice.leaving) == ("b", {"pod-0"})
    assert _choice(_recorded(), a_pod("pod-9")).leaving == frozenset()


def test_a_deletion_in_a_subset_that_stays_full_is_not_waited_for() -> None:
    spread = _recorded(replicas=3, deletingPods={"pod-0": seconds_ago(1)})
    assert _choice(spread, a_pod("pod-9")).leaving == frozenset()


@pytest.mark.parametrize(("age_s", "is_written"), [(14, False), (15, True)])
def test_the_record_of_a_pod_that_is_admitted_again_is_renewed_when_it_is_old(
    age_s: float, *, is_written: bool
) -> None:
    choice = _choice(_recorded(replicas=1, creatingPods={"pod-9": seconds_ago(age_s)}), a_pod("pod-9"))
    assert choice.subset is not None
    assert choice.subset["name"] == "a"
    assert (choice.status is not None) is is_written
    if choice.status is not None:
        assert choice.status["versionedSubsetStatuses"][VERSION_IGNORED][0]["creatingPods"] == {"pod-9": seconds_ago(0)}


def test_a_pod_without_a_name_is_found_by_its_id_when_its_write_is_decided_again() -> None:
    pod = a_pod("")
    first = _choice(_recorded(replicas=1), pod)
    again = _choice({**_recorded(), "status": first.status}, pod)
    assert (again.subset, again.status, again.uid) == (first.subset, None, "new")


def test_records_are_removed_and_their_places_are_free() -> None:
    spread = _recorded(replicas=1, creatingPods={"pod-9": seconds_ago(1)})
    assert creation_records(spread) == {"pod-9": seconds_ago(1)}
    assert without_creations(spread, {"pod-8"}, 0) is None
    status = without_creations(spread, {"pod-9"}, 0)
    assert status is not None
    found = status["versionedSubsetStatuses"][VERSION_IGNORED][0]
    assert (found["missingReplicas"], "creatingPods" in found) == (1, False)
