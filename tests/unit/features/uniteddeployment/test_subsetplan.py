"""All subsets are planned together: strategies, conditions, requeues and status."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.clock import parse_rfc3339, to_rfc3339
from federation.apimachinery.conditions import find
from federation.features.uniteddeployment.names import (
    REASON_RECOVERED_SCALED_UP,
    REASON_REVISION_UPDATED,
    REASON_SUBSET_CREATED,
    SUBSET_REACHABLE,
    SUBSET_REVISION_LABEL,
)
from federation.features.uniteddeployment.rules.subsetcounts import AllocationError
from federation.features.uniteddeployment.rules.subsetplan import Current, ObservedSubset, SubsetPlan, plan_subsets
from federation.features.uniteddeployment.rules.subsetpods import check_pending
from federation.features.uniteddeployment.rules.subsetworkload import SubsetWorkload
from federation.features.uniteddeployment.rules.templaterevisions import RevisionPlan
from federation.features.uniteddeployment.rules.unitedstatus import (
    Observation,
    SubsetOutcome,
    compute_status,
    set_revision_condition,
)
from federation.features.uniteddeployment.rules.workloadkinds import KINDS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DEPLOYMENT = KINDS[-1]
ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 10, "unschedulableDuration": 60}}
RESERVING = {"type": "Adaptive", "adaptive": {**ADAPTIVE["adaptive"], "reserveUnschedulablePods": True}}  # type: ignore[dict-item]


def a_workload(subset: str, replicas: int, ready: int) -> SubsetWorkload:
    return SubsetWorkload(
        subset=subset,
        revision="rev",
        replicas=replicas,
        partition=0,
        is_partitioned=False,
        patch="",
        observed_generation=1,
        status_replicas=replicas,
        ready=ready,
        updated=ready,
        updated_ready=ready,
        reported_updated=ready,
    )


def a_pending_pod(name: str, age_s: float, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {SUBSET_REVISION_LABEL: "rev", **labels},
            "creationTimestamp": to_rfc3339(NOW - timedelta(seconds=age_s)),
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }


def a_spec(strategy: dict[str, Any], *subsets: str, replicas: int = 4) -> dict[str, Any]:
    listed = [{"name": name} for name in subsets]
    return {"replicas": replicas, "topology": {"subsets": listed, "scheduleStrategy": strategy}}


def plan(spec: dict[str, Any], status: dict[str, Any] | None = None, **observed: ObservedSubset) -> SubsetPlan:
    return plan_subsets(spec, DEPLOYMENT, Current(status or {}, [], "rev", observed), NOW)


def replicas(planned: SubsetPlan) -> dict[str, int]:
    return {name: target.replicas for name, target in planned.targets.items()}


def test_a_subset_whose_pods_wait_too_long_gives_its_replicas_away() -> None:
    waiting = [a_pending_pod("a", 11), a_pending_pod("b", 4)]
    planned = plan(a_spec(ADAPTIVE, "one", "two"), one=ObservedSubset(a_workload("one", 4, 2), waiting))
    assert replicas(planned) == {"one": 2, "two": 2}
    assert planned.requeue_after_s == 6
    condition = find(planned.outcomes["one"].conditions, names.SUBSET_SCHEDULABLE)
    assert condition is not None
    assert condition["status"] == "False"


def test_pods_that_do_not_wait_long_enough_are_checked_again() -> None:
    planned = plan(a_spec(ADAPTIVE, "one"), one=ObservedSubset(a_workload("one", 4, 3), [a_pending_pod("a", 10)]))
    assert planned.requeue_after_s == 0  # exactly at the limit: not over yet
    assert planned.outcomes["one"].conditions == []


def test_fixed_strategies_ignore_pending_pods_and_keep_conditions() -> None:
    status = {"subsetStatuses": [{"name": "one", "conditions": [{"type": "Schedulable", "status": "False"}]}]}
    waiting = ObservedSubset(a_workload("one", 4, 0), [a_pending_pod("a", 100)])
    planned = plan(a_spec({"type": "Fixed"}, "one"), status, one=waiting)
    assert replicas(planned) == {"one": 4}
    assert planned.requeue_after_s is None
    assert planned.outcomes["one"].conditions == [{"type": "Schedulable", "status": "False"}]


def test_workloads_of_removed_subsets_are_not_planned() -> None:
    planned = plan(a_spec({}, "one"), gone=ObservedSubset(a_workload("gone", 4, 4)))
    assert replicas(planned) == {"one": 4}


def test_reserved_pods_get_labels_and_substitutes() -> None:
    waiting = [a_pending_pod("a", 11), a_pending_pod("b", 11)]
    planned = plan(a_spec(RESERVING, "one", "two", replicas=2), one=ObservedSubset(a_workload("one", 2, 0), waiting))
    assert replicas(planned) == {"one": 2, "two": 2}
    assert planned.pod_labels == {"a": "true", "b": "true"}
    assert planned.targets["one"].unavailable_max == 2
    assert planned.outcomes["one"].reserved == 2


def test_a_new_subset_of_a_reserving_deployment_starts_unschedulable() -> None:
    status = {"subsetStatuses": [{"name": "one"}]}
    planned = plan(a_spec(RESERVING, "one", "new"), status)
    condition = find(planned.outcomes["new"].conditions, names.SUBSET_SCHEDULABLE)
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", REASON_SUBSET_CREATED)
    assert not planned.outcomes["one"].conditions


def test_an_unschedulable_subset_without_its_pods_stays_unschedulable() -> None:
    conditions = [{"type": "Schedulable", "status": "False", "reason": REASON_RECOVERED_SCALED_UP}]
    status = {"subsetStatuses": [{"name": "one", "conditions": conditions}]}
    planned = plan(a_spec(RESERVING, "one", replicas=2), status, one=ObservedSubset(a_workload("one", 2, 0)))
    assert planned.outcomes["one"].conditions == conditions


def test_counts_that_do_not_fit_are_an_error() -> None:
    spec = {"replicas": 1, "topology": {"subsets": [{"name": "one", "replicas": 2}]}}
    with pytest.raises(AllocationError):
        plan(spec)


REVISIONS = RevisionPlan("old", "new", 0)


def a_status(**outcomes: SubsetOutcome) -> dict[str, Any]:
    united = {"metadata": {"generation": 3}, "spec": a_spec(RESERVING, "one")}
    workloads = {"one": a_workload("one", 3, 2), "gone": a_workload("gone", 1, 1)}
    return compute_status(united, Observation(REVISIONS, workloads, outcomes))


def test_a_status_sums_all_workloads_and_lists_those_that_are_about_to_go() -> None:
    status = a_status(one=SubsetOutcome(replicas=5, partition=1, reserved=1))
    assert (status["replicas"], status["readyReplicas"], status["reservedPods"]) == (3, 3, 1)
    assert [entry["name"] for entry in status["subsetStatuses"]] == ["one", "gone"]
    assert status["subsetReplicas"] == {"one": 5, "gone": 0}
    assert status["updateStatus"] == {"updatedRevision": "new", "currentPartitions": {"one": 1, "gone": 0}}
    assert status["observedGeneration"] == 3


def test_the_current_revision_becomes_the_updated_one_when_all_pods_have_it() -> None:
    assert a_status()["currentRevision"] == "old"  # three of four
    assert a_status(one=SubsetOutcome(reserved=1))["currentRevision"] == "new"


def test_a_further_revision_starts_a_new_transition() -> None:
    first = set_revision_condition({}, REVISIONS, NOW)
    later = NOW + timedelta(minutes=5)
    same = set_revision_condition({"conditions": first, "updatedRevision": "new"}, REVISIONS, later)
    assert same == first
    other = set_revision_condition({"conditions": first, "updatedRevision": "new"}, RevisionPlan("old", "x", 0), later)
    assert other[0]["lastTransitionTime"] == to_rfc3339(later)
    done = set_revision_condition({"conditions": first}, RevisionPlan("new", "new", 0), later)
    assert (done[0]["status"], done[0]["reason"]) == ("True", REASON_REVISION_UPDATED)


def test_times_that_cannot_be_read_are_absent() -> None:
    assert parse_rfc3339("yesterday") is None
    pod = a_pending_pod("a", 0)
    pod["metadata"]["creationTimestamp"] = None
    assert check_pending(pod, 10, NOW).remaining_s == 10


@pytest.mark.parametrize(("strategy", "reserved"), [(ADAPTIVE, 0), (RESERVING, 2)])
def test_pods_of_an_unreachable_subset_decide_nothing(strategy: dict[str, Any], reserved: int) -> None:
    spec = {"replicas": 6, "topology": {"subsets": [{"name": "a"}, {"name": "b"}], "scheduleStrategy": strategy}}
    pending = [a_pending_pod("a-1", 100), a_pending_pod("a-2", 100)]
    condition = {"type": names.SUBSET_SCHEDULABLE, "status": "False" if reserved else "True", "reason": "r"}
    stored = {"subsetStatuses": [{"name": "a", "reservedPods": reserved, "conditions": [condition]}, {"name": "b"}]}
    observed = {
        "a": ObservedSubset(a_workload("a", 4, 2), pending),
        "b": ObservedSubset(a_workload("b", 2 + reserved, 2 + reserved)),
    }
    plan = plan_subsets(spec, DEPLOYMENT, Current(stored, [], "rev", observed, {"a": "cluster x is not ready"}), NOW)
    assert {name: target.replicas for name, target in plan.targets.items()} == {"a": 4, "b": 2 + reserved}
    assert plan.outcomes["a"].reserved == reserved
    assert find(plan.outcomes["a"].conditions, names.SUBSET_SCHEDULABLE) == condition
    reachable = find(plan.outcomes["a"].conditions, SUBSET_REACHABLE) or {}
    assert (reachable["status"], reachable["message"]) == ("False", "cluster x is not ready")
    assert not plan.pod_labels

    back = {"subsetStatuses": [{"name": "a", "conditions": plan.outcomes["a"].conditions}]}
    again = plan_subsets(spec, DEPLOYMENT, Current(back, [], "rev", {}), NOW)
    assert (find(again.outcomes["a"].conditions, SUBSET_REACHABLE) or {})["status"] == "True"
    assert find(again.outcomes["b"].conditions, SUBSET_REACHABLE) is None
