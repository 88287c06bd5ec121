"""The aggregated status of Deployments and of kinds without vectors."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api.federatedtype import default_type_configs, from_config
from federation.planning.aggregation import daemonset, deployment, replicaset, service, statefulset
from federation.planning.aggregation.aggregators import merge_of
from federation.planning.aggregation.context import Context

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def context(*placed: str, is_observed: bool = True) -> Context:
    return Context(NOW, is_observed=is_observed, placed=frozenset(placed))


def copy(replicas: int, available: str = "True", progressing: str = "NewReplicaSetAvailable", **more: Any) -> Any:
    conditions = [
        {"type": "Available", "status": available},
        {"type": "Progressing", "status": "True", "reason": progressing},
        *more.pop("conditions", []),
    ]
    return {"status": {"replicas": replicas, "availableReplicas": replicas, "conditions": conditions, **more}}


def source(**status: Any) -> dict[str, Any]:
    return {"metadata": {"generation": 3}, "status": status}


def condition(status: Any, type_: str) -> Any:
    return next((c for c in status["conditions"] if c["type"] == type_), None)


def test_counts_are_summed_and_zeros_left_out() -> None:
    status = deployment.merge(source(), {"a": copy(2), "b": copy(0)}, context("a", "b"))
    assert status is not None
    assert status["replicas"] == 2
    assert "readyReplicas" not in status
    assert status["observedGeneration"] == 3


def test_a_member_object_without_a_status_counts_as_zero_and_is_named() -> None:
    status = deployment.merge(source(), {"a": copy(2), "b": {}}, context("a", "b", is_observed=False))
    assert status is not None
    assert status["replicas"] == 2
    assert "observedGeneration" not in status
    assert condition(status, "Available")["message"].endswith("in clusters [b].")
    assert condition(status, "Progressing")["reason"] == "ReplicaSetUpdated"


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (("NewReplicaSetAvailable", "NewReplicaSetAvailable"), "NewReplicaSetAvailable"),
        (("NewReplicaSetAvailable", "ReplicaSetUpdated"), "ReplicaSetUpdated"),
        (("FoundNewReplicaSet", "ReplicaSetUpdated"), "ReplicaSetUpdated"),
    ],
)
def test_a_rollout_is_complete_when_it_is_in_every_cluster(reasons: tuple[str, str], expected: str) -> None:
    members = {name: copy(1, progressing=reason) for name, reason in zip("ab", reasons, strict=True)}
    status = deployment.merge(source(), members, context("a", "b"))
    assert condition(status, "Progressing")["reason"] == expected


def test_a_deadline_anywhere_is_a_deadline() -> None:
    members = {"a": copy(2), "b": copy(1, progressing="ProgressDeadlineExceeded")}
    found = condition(deployment.merge(source(), members, context("a", "b")), "Progressing")
    assert (found["status"], found["reason"]) == ("False", "ProgressDeadlineExceeded")


def test_a_deployment_without_clusters_exceeds_its_deadline() -> None:
    unscheduled = source() | {"spec": {"progressDeadlineSeconds": 60}}
    early = Context(NOW, unscheduled_since=NOW - timedelta(seconds=59))
    status = deployment.merge(unscheduled, {}, early)
    assert status is not None
    assert condition(status, "Progressing") is None
    assert status["observedGeneration"] == 3  # or `kubectl rollout status` waits for it for ever
    assert deployment.deadline_in_s(unscheduled, early.unscheduled_since, NOW) == 1
    late = Context(NOW, unscheduled_since=NOW - timedelta(seconds=60))
    found = condition(deployment.merge(unscheduled, {}, late), "Progressing")
    assert (found["status"], found["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert deployment.deadline_in_s(unscheduled, None, NOW) is None


def test_a_failure_to_make_pods_is_passed_on() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}
    status = deployment.merge(source(), {"a": copy(2, conditions=[failure])}, context("a"))
    assert condition(status, "ReplicaFailure")["message"] == "[a]: quota"


def test_a_merged_status_is_stable_and_keeps_others_conditions() -> None:
    scheduled = {"type": "Scheduled", "status": "True"}
    members = {"a": copy(2)}
    first = deployment.merge(source(conditions=[scheduled]), members, context("a"))
    assert first is not None
    later = Context(datetime(2027, 1, 1, tzinfo=UTC), is_observed=True, placed=frozenset({"a"}))
    assert deployment.merge(source(**first), members, later) == first
    assert condition(first, "Scheduled") == scheduled


def test_nowhere_placed_is_not_available() -> None:
    status = deployment.merge(source(), {}, context())
    assert condition(status, "Available")["status"] == "False"


def test_the_status_of_one_stateful_set_is_copied_and_several_are_summed() -> None:
    one = {"status": {"replicas": 2, "readyReplicas": 2, "currentRevision": "r1", "observedGeneration": 9}}
    status = statefulset.merge(source(), {"a": one}, context("a"))
    assert status == {"replicas": 2, "readyReplicas": 2, "currentRevision": "r1", "observedGeneration": 3}
    both = statefulset.merge(source(), {"a": one, "b": one}, context("a", "b"))
    assert both is not None
    assert (both["replicas"], both["currentRevision"]) == (4, "r1")
    assert statefulset.merge(source(), {}, context()) is None


def test_daemon_sets_and_replica_sets_are_summed() -> None:
    node = {"status": {"desiredNumberScheduled": 3, "numberReady": 2}}
    found = daemonset.merge(source(), {"a": node, "b": node}, context("a", "b"))
    assert found is not None
    assert (found["desiredNumberScheduled"], found["numberReady"], found["numberMisscheduled"]) == (6, 4, 0)
    sets = replicaset.merge(source(), {"a": {"status": {"replicas": 3}}, "b": {}}, context("a", "b"))
    assert sets is not None
    assert sets["replicas"] == 3


def test_load_balancers_are_listed_once() -> None:
    point = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    merged = service.merge(source(), {"a": point, "b": point, "c": {}}, context())
    assert merged == {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}


def test_a_kind_without_a_merge_has_none() -> None:
    types = {type_.resource.kind: type_ for type_ in map(from_config, default_type_configs())}
    assert merge_of(types["Deployment"]) is deployment.merge
    # The host itself writes the status of these.
    for kind in ("ConfigMap", "CustomResourceDefinition", "Namespace", "ResourceQuota", "ServiceExport"):
        assert merge_of(types[kind]) is None
