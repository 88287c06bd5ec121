"""The aggregated status of CronJobs, volumes, autoscalers, disruption budgets, pods and custom resources."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.api.federatedtype import FederatedType, PathDefinition, default_type_configs, from_config
from federation.apimachinery.resources import Resource
from federation.planning.aggregation.aggregators import merge_of
from federation.planning.aggregation.context import Context
from federation.planning.aggregation.mergedconditions import merge_conditions
from federation.planning.aggregation.plausibility import plausible
from federation.planning.aggregation.volumes import merge_volume
from federation.planning.status.completeness import is_degraded, is_in_progress
from federation.planning.status.staleness import last_known

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00Z"
TYPES = {type_.resource.kind: type_ for type_ in map(from_config, default_type_configs())}
WIDGET = FederatedType(
    "widgets.example.com",
    Resource("example.com", "v1", "Widget", "widgets"),
    (),
    PathDefinition(replicas_spec=("spec", "size"), replicas_status=("status", "size")),
)
ALL = {
    **TYPES,
    "Pod": FederatedType("pods", Resource("", "v1", "Pod", "pods"), ()),
    "ReplicaSet": FederatedType("replicasets.apps", Resource("apps", "v1", "ReplicaSet", "replicasets"), ()),
}
JOB = {"kind": "Job", "name": "nightly-1"}


def context(*placed: str, is_observed: bool = True, stale: tuple[str, ...] = ()) -> Context:
    return Context(NOW, is_observed=is_observed, placed=frozenset(placed), stale=frozenset(stale))


def merged(type_: FederatedType, before: dict[str, Any], at: Context | None = None, **members: Any) -> Any:
    merge = merge_of(type_)
    assert merge is not None
    copies = {cluster: {"status": status} for cluster, status in members.items()}
    source = {"metadata": {"generation": 3}, "status": before}
    status = merge(source, copies, at or context(*members))
    if status is not None:
        again = merge({**source, "status": status}, copies, at or context(*members))
        assert again == status, "a merged status is stable"
    return status


def condition(status: Any, type_: str) -> Any:
    found = next((each for each in status["conditions"] if each["type"] == type_), {})
    return {key: value for key, value in found.items() if key not in ("type", "lastTransitionTime")}


def test_a_lost_cluster_counts_for_no_more_than_it_should_run_also_under_other_names() -> None:
    member = {"status": {"size": 9, "ready": 9}}
    paths = PathDefinition(replicas_status=("status", "size"))
    assert last_known(member, 4, paths) == {"status": {"size": 4, "ready": 9}}


def test_a_status_that_is_nested_too_deeply_counts_as_none() -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"a": deep}
    assert plausible({"status": deep}, "example.com", "Widget")[0] == {"status": {}}


@pytest.mark.parametrize(
    "kind", ["CronJob", "PersistentVolumeClaim", "PersistentVolume", "HorizontalPodAutoscaler", "PodDisruptionBudget"]
)
def test_nothing_is_merged_without_a_member_object(kind: str) -> None:
    assert merged(TYPES[kind], {}) is None


def test_a_cron_job_has_succeeded_when_it_has_in_every_cluster() -> None:
    east = {"active": [JOB], "lastScheduleTime": "2026-01-01T02:00:00Z", "lastSuccessfulTime": "2026-01-01T01:00:09Z"}
    north = {"lastScheduleTime": "2026-01-01T01:00:00Z", "lastSuccessfulTime": "2026-01-01T01:00:05Z"}
    assert merged(TYPES["CronJob"], {}, east=east, north=north) == {
        "active": [JOB],
        "lastScheduleTime": "2026-01-01T02:00:00Z",
        "lastSuccessfulTime": "2026-01-01T01:00:05Z",
    }
    del north["lastSuccessfulTime"]
    assert "lastSuccessfulTime" not in merged(TYPES["CronJob"], {}, east=east, north=north)
    assert merged(TYPES["CronJob"], {}, east={}) == {}


@pytest.mark.parametrize(
    ("phases", "expected"),
    [(["Bound", "Bound"], "Bound"), (["Bound", "Pending"], "Pending"), (["Bound", None], "Pending"), (["Lost", "Pending"], "Lost")],
)  # fmt: skip
def test_a_claim_is_bound_when_it_is_bound_everywhere(phases: list[str | None], expected: str) -> None:
    east, north = ({"phase": phase} if phase else {} for phase in phases)
    assert merged(TYPES["PersistentVolumeClaim"], {}, east=east, north=north)["phase"] == expected


def test_a_claim_offers_what_it_has_in_every_cluster() -> None:
    east = {"phase": "Bound", "capacity": {"storage": "10Gi", "odd": "x"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}  # fmt: skip
    north = {"phase": "Bound", "capacity": {"storage": "8Gi", "odd": "y"}, "accessModes": ["ReadWriteOnce"]}
    status = merged(TYPES["PersistentVolumeClaim"], {}, east=east, north=north)
    assert status == {"phase": "Bound", "capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"]}
    del north["capacity"]
    assert "capacity" not in merged(TYPES["PersistentVolumeClaim"], {}, east=east, north=north)


def test_a_volume_has_the_worst_phase_since_it_changed() -> None:
    status = merged(
        TYPES["PersistentVolume"], {}, east={"phase": "Bound"}, north={"phase": "Failed", "message": "gone"}
    )
    assert status == {"phase": "Failed", "message": "[north]: gone", "lastPhaseTransitionTime": STAMP}
    before = {"phase": "Bound", "lastPhaseTransitionTime": "2025-01-01T00:00:00Z"}
    assert merged(TYPES["PersistentVolume"], before, east={"phase": "Bound"}) == before


@pytest.mark.parametrize(
    ("phase", "is_deleted", "expected"),
    [("Bound", True, "Released"), ("Bound", False, None), ("Failed", True, None)],
)
def test_a_deleted_volume_that_no_member_has_is_bound_nowhere(
    phase: str, is_deleted: bool, expected: str | None
) -> None:
    source = {"metadata": {"deletionTimestamp": STAMP} if is_deleted else {}, "status": {"phase": phase}}
    status = merge_volume(source, {}, Context(NOW))
    assert (status or {}).get("phase") == expected


def test_an_autoscaler_sums_replicas_and_merges_conditions() -> None:
    able, limited = {"type": "AbleToScale", "status": "True"}, {"type": "ScalingLimited", "status": "False"}
    east = {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": [{}], "conditions": [able, limited]}
    north = {
        "currentReplicas": 1,
        "desiredReplicas": 1,
        "lastScaleTime": STAMP,
        "conditions": [able, {**limited, "status": "True", "reason": "TooManyReplicas", "message": "capped"}],
    }
    status = merged(TYPES["HorizontalPodAutoscaler"], {}, east=east, north=north)
    assert (status["currentReplicas"], status["desiredReplicas"], status["observedGeneration"]) == (3, 4, 3)
    assert status["lastScaleTime"] == STAMP
    assert "currentMetrics" not in status
    assert condition(status, "AbleToScale")["status"] == "True"
    limit = condition(status, "ScalingLimited")
    assert limit == {"status": "True", "reason": "TooManyReplicas", "message": "in clusters [north]: capped"}
    assert merged(TYPES["HorizontalPodAutoscaler"], {}, east=east)["currentMetrics"] == [{}]


def test_a_disruption_budget_sums_what_clusters_allow() -> None:
    east = {"currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 1, "expectedPods": 3}
    north = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
    status = merged(TYPES["PodDisruptionBudget"], {}, east=east, north=north)
    assert {key: status[key] for key in east} == {
        "currentHealthy": 4,
        "desiredHealthy": 3,
        "disruptionsAllowed": 1,
        "expectedPods": 4,
    }
    assert condition(status, "DisruptionAllowed") == {
        "status": "True",
        "reason": "SufficientPods",
        "message": "in clusters [east]",
        "observedGeneration": 3,
    }
    status = merged(TYPES["PodDisruptionBudget"], {}, north=north)
    assert condition(status, "DisruptionAllowed")["status"] == "False"


def test_a_pod_is_ready_when_it_is_in_every_cluster() -> None:
    type_ = FederatedType("pods", Resource("", "v1", "Pod", "pods"), ())
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert condition(merged(type_, {}, east=running), "Ready")["status"] == "True"
    starting = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "reason": "NotReady"}]}
    assert condition(merged(type_, {}, east=running, north=starting), "Ready")["status"] == "False"


def test_a_custom_resource_has_the_conditions_of_all_clusters() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Running", "observedGeneration": 7}
    failing = {"type": "Ready", "status": "False", "reason": "Broken", "message": "no disk"}
    status = merged(WIDGET, {}, east={"conditions": [ready]}, north={"conditions": [failing]})
    assert condition(status, "Ready") == {
        "status": "False",
        "reason": "Broken",
        "message": "in clusters [north]: no disk",
    }
    status = merged(WIDGET, {}, east={"conditions": [ready]}, north={"conditions": [ready]})
    found = condition(status, "Ready")
    assert (found["status"], found["reason"], found["observedGeneration"]) == ("True", "Running", 3)
    assert status["observedGeneration"] == 3


def test_a_cluster_that_has_not_reported_is_unknown_and_one_that_does_not_answer_does_not_count() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "False"}]}
    status = merged(WIDGET, {}, context("east", "north"), east=ready)
    found = condition(status, "Ready")
    assert found == {"status": "Unknown", "reason": "NotReported", "message": "not reported by clusters [north]"}
    assert condition(status, "Stalled")["status"] == "False"
    status = merged(WIDGET, {}, context("east", "north", stale=("north",)), east=ready)
    assert condition(status, "Ready")["status"] == "True"
    status = merged(WIDGET, {}, context("east", stale=("east",)), east=ready)
    assert condition(status, "Ready")["reason"] == names.REASON_CLUSTERS_DO_NOT_ANSWER


def test_a_custom_resource_keeps_what_clusters_agree_on_and_sums_its_replicas() -> None:
    status = merged(WIDGET, {}, east={"size": 2, "phase": "Up", "ip": "1"}, north={"size": 3, "phase": "Up", "ip": "2"})
    assert status == {"size": 5, "phase": "Up", "observedGeneration": 3}
    assert merged(WIDGET, {}, context(is_observed=False), east={"ip": "1", "observedGeneration": 9}) == {"ip": "1"}
    assert merged(WIDGET, {}, east={}) is None


def test_condition_times_change_with_the_status_only() -> None:
    before = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}]}
    ready, later = {"conditions": [{"type": "Ready", "status": "True"}]}, NOW + timedelta(hours=1)
    at = Context(later, placed=frozenset({"east"}))
    (found,) = merged(WIDGET, before, at, east=ready)["conditions"]
    assert found["lastTransitionTime"] == "2025-01-01T00:00:00Z"


def test_conditions_of_the_federation_stay() -> None:
    ours = {"type": names.SCHEDULED, "status": "True", "lastTransitionTime": STAMP}
    members = {"east": {"status": {"conditions": [{"type": names.SCHEDULED, "status": "False"}]}}}
    assert merge_conditions({"status": {"conditions": [ours]}}, members, context("east")) == [ours]


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["True", "False", "Unknown", "", "odd"]),
        min_size=1,
    )
)
def test_ready_is_true_only_if_it_is_true_everywhere(statuses: dict[str, str]) -> None:
    members = {name: {"conditions": [{"type": "Ready", "status": status}]} for name, status in statuses.items()}
    found = condition(merged(WIDGET, {}, **members), "Ready")
    assert (found["status"] == "True") == (set(statuses.values()) == {"True"})
    assert found["status"] in ("True", "False", "Unknown")


@pytest.mark.parametrize(
    ("group", "kind", "status", "is_plausible"),
    [
        ("batch", "CronJob", {"active": [{}]}, True),
        ("batch", "CronJob", {"active": 1}, False),
        ("batch", "Job", {"active": [{}]}, False),
        ("batch", "CronJob", {"lastScheduleTime": 5}, False),
        ("", "PersistentVolumeClaim", {"capacity": "much"}, False),
        ("", "PersistentVolumeClaim", {"accessModes": [1]}, False),
        ("policy", "PodDisruptionBudget", {"disruptionsAllowed": -1}, False),
        ("example.com", "Widget", {"ready": "yes", "replicas": "2"}, True),
        ("example.com", "Widget", {"conditions": "yes"}, False),
        ("example.com", "Widget", {"conditions": [{"type": "Ready"}]}, True),
        ("example.com", "Widget", {"observedGeneration": "1"}, False),
        ("example.com", "Widget", "text", False),
    ],
)
def test_only_a_plausible_status_counts(group: str, kind: str, status: Any, is_plausible: bool) -> None:
    assert bool(plausible({"status": status}, group, kind)[0]["status"]) is is_plausible


def test_fields_of_other_types_are_no_replicas() -> None:
    assert not is_degraded({"ready": True}, {"ready": "no"})
    assert is_in_progress({"spec": {"replicas": 2}}, {"readyReplicas": "2"})
    assert last_known({"status": {"replicas": "many", "readyReplicas": 5}}, 3)["status"] == {
        "replicas": "many",
        "readyReplicas": 3,
    }


def test_the_numbers_of_clone_sets_are_summed_and_revisions_kept_where_all_agree() -> None:
    east = {
        "replicas": 3,
        "readyReplicas": 2,
        "updatedReplicas": 1,
        "updatedReadyReplicas": 1,
        "expectedUpdatedReplicas": 3,
        "updateRevision": "web-b",
        "currentRevision": "web-a",
        "labelSelector": "app=web",
        "conditions": [{"type": "FailedScale", "status": "True", "reason": "Quota", "message": "exceeded"}],
    }
    north = {**east, "replicas": 2, "currentRevision": "web-b", "expectedUpdatedReplicas": 2, "conditions": []}
    status = merged(TYPES["CloneSet"], {}, east=east, north=north)
    assert {key: status[key] for key in status if key != "conditions"} == {
        "replicas": 5,
        "readyReplicas": 4,
        "updatedReplicas": 2,
        "updatedReadyReplicas": 2,
        "expectedUpdatedReplicas": 5,
        "updateRevision": "web-b",
        "labelSelector": "app=web",
        "observedGeneration": 3,
    }
    assert condition(status, "FailedScale") == {
        "status": "True",
        "reason": "Quota",
        "message": "in clusters [east]: exceeded",
    }


RUNNING = {"type": "Running", "status": "True", "reason": "JobRunning", "lastTransitionTime": STAMP}
UNKNOWN = {"type": "Running", "status": "Unknown", "reason": "NotPlaced", "message": "no cluster has it: it waits"}
SUSPENDED = {"type": "Suspended", "status": "True", "reason": "NotPlaced", "message": "no cluster has it: it waits"}


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        (
            "Job",
            {"active": 15, "ready": 15, "succeeded": 2, "startTime": STAMP},
            {
                "succeeded": 2,
                "startTime": STAMP,
                "conditions": [{**SUSPENDED, "lastTransitionTime": STAMP, "lastProbeTime": STAMP}],
            },
        ),
        ("Job", {}, {"conditions": [{**SUSPENDED, "lastTransitionTime": STAMP, "lastProbeTime": STAMP}]}),
        ("Job", {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}, None),
        (
            "Pod",
            {"phase": "Running", "containerStatuses": [{"name": "c (a)"}]},
            {"phase": "Pending", "message": "no cluster has it: it waits"},
        ),
        ("Pod", {"phase": "Succeeded"}, None),
        ("CronJob", {"active": [JOB], "lastScheduleTime": STAMP}, {"lastScheduleTime": STAMP}),
        ("Service", {"loadBalancer": {"ingress": [{"ip": "100.64.0.1"}]}}, {"loadBalancer": {}}),
        ("Ingress", {"loadBalancer": {"ingress": [{"ip": "100.64.0.1"}]}}, {"loadBalancer": {}}),
        ("ReplicaSet", {"replicas": 3, "readyReplicas": 3, "observedGeneration": 3}, {"replicas": 0}),
        (
            "StatefulSet",
            {"replicas": 3, "readyReplicas": 3, "observedGeneration": 3},
            {"replicas": 0, "availableReplicas": 0},
        ),
        ("PersistentVolumeClaim", {"phase": "Bound"}, None),
        ("PersistentVolume", {"phase": "Bound"}, None),
    ],
)
def test_an_object_that_no_cluster_has_shows_nothing_that_runs(kind: str, before: Any, after: Any) -> None:
    nowhere = Context(NOW, is_observed=True, unscheduled_since=NOW, unscheduled="it waits")
    assert merged(ALL[kind], before, nowhere) == after


def test_a_daemon_set_that_no_cluster_has_is_not_rolled_out() -> None:
    nowhere = Context(NOW, is_observed=True, unscheduled_since=NOW)
    found = merged(TYPES["DaemonSet"], {"numberReady": 3, "observedGeneration": 3}, nowhere)
    assert found["numberReady"] == 0
    assert "observedGeneration" not in found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            {"size": 3, "state": "Running", "observedGeneration": 3},
            {"size": 0, "observedGeneration": 3, "state": "Running"},
        ),
        ({"conditions": [RUNNING]}, {"conditions": [{**UNKNOWN, "lastTransitionTime": STAMP}]}),
        ({}, None),
    ],
    ids=["numbers are zero, all else stays", "conditions are unknown", "it never ran"],
)
def test_a_custom_resource_that_no_cluster_has_shows_nothing_that_runs(before: Any, after: Any) -> None:
    nowhere = Context(NOW, is_observed=True, unscheduled_since=NOW, unscheduled="it waits")
    assert merged(WIDGET, before, nowhere) == after


def test_a_custom_resource_that_has_finished_keeps_its_status_without_clusters() -> None:
    job = FederatedType("pytorchjobs", Resource("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs"), ())
    merge = merge_of(job)
    assert merge is not None
    status = {"conditions": [{"type": "Succeeded", "status": "True"}], "replicaStatuses": {"Worker": {"succeeded": 7}}}
    source = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {}, "status": status}
    assert merge(source, {}, Context(NOW, unscheduled_since=NOW)) is None
