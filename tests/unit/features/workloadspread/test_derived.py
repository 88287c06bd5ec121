"""What a member gets of a WorkloadSpread, and the status over all members."""

from typing import Any

import pytest

from federation.apimachinery.clock import ManualClock
from federation.features.workloadspread.rules.derived import Divided, federated_status, local_subsets, running_replicas

DIVIDED = Divided({"a": {"east": 3, "west": 1}, "b": {"east": 2}}, {"a": 5})
NOW = ManualClock().now()


def a_spread(kind: str = "Deployment", limit: Any = "50%", **spec: Any) -> dict[str, Any]:
    subsets = [{"name": "a", "maxReplicas": limit}, {"name": "b"}, {"name": "c", "maxReplicas": limit}]
    target = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    return {"metadata": {"generation": 3}, "spec": {"targetRef": target, "subsets": subsets, **spec}}


def test_limits_are_the_quotas_of_the_cluster() -> None:
    spread = a_spread()
    assert local_subsets(spread, "east", [True, True, True], DIVIDED) == [
        {"name": "a", "maxReplicas": 3},
        {"name": "b"},
        {"name": "c", "maxReplicas": 0},
    ]
    assert local_subsets(spread, "west", [True, False, False], DIVIDED) == [{"name": "a", "maxReplicas": 1}]
    assert local_subsets(spread, "north", [False, False, False], DIVIDED) == []
    assert spread == a_spread()


def test_copies_of_a_workload_keep_the_limits() -> None:
    assert local_subsets(a_spread(), "east", [True, False, False], None) == [{"name": "a", "maxReplicas": "50%"}]


@pytest.mark.parametrize(
    ("type_", "expected"), [("Adaptive", {"name": "c"}), ("Fixed", {"name": "c", "maxReplicas": 0})]
)
def test_the_last_of_several_adaptive_subsets_has_no_limit(type_: str, expected: dict[str, Any]) -> None:
    spread = a_spread(scheduleStrategy={"type": type_})
    assert local_subsets(spread, "east", [True, False, True], DIVIDED)[-1] == expected


def test_the_first_limit_of_a_stateful_set_includes_the_ordinals_below() -> None:
    spread = a_spread("StatefulSet", limit=4)
    assert local_subsets(spread, "east", [True, False, True], DIVIDED, 10) == [
        {"name": "a", "maxReplicas": 13},
        {"name": "c", "maxReplicas": 0},
    ]
    assert local_subsets(a_spread(), "east", [True, False, False], DIVIDED, 10) == [{"name": "a", "maxReplicas": 3}]


def test_the_status_sums_reports_and_the_quotas_of_all_others() -> None:
    reported = {"east": {"subsetStatuses": [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 4}]}}
    assert federated_status(a_spread(), DIVIDED, reported, (), NOW) == {
        "observedGeneration": 3,
        "subsetStatuses": [
            {"name": "a", "replicas": 3, "missingReplicas": 2, "maxReplicas": 5},
            {"name": "b", "replicas": 4, "missingReplicas": -1},
            {"name": "c", "replicas": 0, "missingReplicas": -1},
        ],
    }


def test_conditions_name_clusters_that_cannot_run_or_enforce_a_subset() -> None:
    failing = {"name": "a", "replicas": 1, "conditions": [{"type": "Schedulable", "status": "False"}]}
    status = federated_status(a_spread(), DIVIDED, {"east": {"subsetStatuses": [failing]}}, ["west"], NOW)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in status["subsetStatuses"][0]["conditions"]}
    assert conditions == {"Schedulable": ("False", "PodUnschedulable"), "Enforced": ("False", "KindNotServed")}
    assert "conditions" not in status["subsetStatuses"][1]
    spread = {**a_spread(), "status": status}
    after = federated_status(spread, DIVIDED, {}, [], NOW)
    conditions = {c["type"]: (c["status"], c["reason"]) for c in after["subsetStatuses"][0]["conditions"]}
    assert conditions == {"Enforced": ("True", "KindServed")}
    assert federated_status({**a_spread(), "status": after}, DIVIDED, {}, [], NOW) == after


ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}


def a_report(name: str, status: str, **fields: Any) -> dict[str, Any]:
    entry = {"name": name, "conditions": [{"type": "Schedulable", "status": status}], **fields}
    return {"subsetStatuses": [{"name": "other"}, entry]}


def test_marked_subsets_keep_the_replicas_that_have_a_node() -> None:
    reported = {
        "east": a_report("a", "False", replicas=5, unschedulableReplicas=3),
        "north": a_report("b", "False", replicas=2),
        "south": a_report("a", "True", replicas=4),
        "west": a_report("gone", "False", replicas=4),
        "empty": {},
    }
    kept = {"silent": {"a": 1}, "east": {"b": 7}}
    expected = {"east": {"a": 2}, "north": {"b": 2}, "silent": {"a": 1}}
    assert running_replicas(a_spread(scheduleStrategy=ADAPTIVE), reported, kept) == expected


@pytest.mark.parametrize(
    "spread",
    [
        a_spread(),
        a_spread(scheduleStrategy={"type": "Adaptive"}),
        a_spread(scheduleStrategy={"type": "Fixed"}),
        a_spread("StatefulSet", scheduleStrategy=ADAPTIVE),
    ],
    ids=["no strategy", "no time", "fixed", "volumes"],
)
def test_without_a_time_and_for_stateful_sets_nothing_is_marked(spread: dict[str, Any]) -> None:
    assert running_replicas(spread, {"east": a_report("a", "False", replicas=5)}, {"west": {"a": 1}}) == {}


@pytest.mark.parametrize(
    "statuses",
    [
        5,
        "text",
        [None, 3, "a", []],
        [{"name": "a", "replicas": "5", "conditions": 7}],
        [{"name": "a", "replicas": -5, "conditions": [None, "x"]}],
        [{"name": "a", "replicas": 10**30, "unschedulableReplicas": [1], "conditions": {"type": "Schedulable"}}],
    ],
)
def test_nonsense_of_a_member_counts_as_nothing(statuses: Any) -> None:
    reported, spread = {"east": {"subsetStatuses": statuses}}, a_spread(scheduleStrategy=ADAPTIVE)
    assert running_replicas(spread, reported, {}) == {}
    first = federated_status(spread, DIVIDED, reported, (), NOW)["subsetStatuses"][0]
    assert first == {"name": "a", "replicas": 1, "missingReplicas": 4, "maxReplicas": 5}
