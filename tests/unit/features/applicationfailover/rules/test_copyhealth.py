"""The health of one copy by its status."""

from collections.abc import Mapping
from typing import Any

import pytest

from federation.admission.rolloutgates import compile_gate
from federation.api.federatedtype import FederatedType, PathDefinition, default_type_configs, from_config
from federation.apimachinery.resources import Resource
from federation.planning.status.copyhealth import Health, health_of, waits_for

TYPES = {each.resource.plural: each for each in map(from_config, default_type_configs())}
JOBS = Resource("flink.apache.org", "v1", "FlinkDeployment", "flinkdeployments")
FLINK = FederatedType("flink", JOBS, (), PathDefinition(), health_expression='object.status.job.state == "RUNNING"')


def health(type_: FederatedType, status: Mapping[str, Any], *, waiting: bool | None = False, **spec: Any) -> Health:
    member = {"metadata": {"name": "web", "generation": 2}, "spec": spec, "status": status}
    return health_of(type_, member, compile_gate, lambda: waiting).health


@pytest.mark.parametrize(
    ("plural", "status", "expected"),
    [
        ("deployments", {"availableReplicas": 3, "observedGeneration": 2}, Health.HEALTHY),
        ("deployments", {"availableReplicas": 2, "observedGeneration": 2}, Health.UNHEALTHY),
        ("deployments", {"observedGeneration": 2}, Health.UNHEALTHY),
        ("deployments", {"availableReplicas": 2, "observedGeneration": 1}, Health.UNKNOWN),
        ("statefulsets", {"availableReplicas": 3}, Health.HEALTHY),
        ("clonesets", {"availableReplicas": 1}, Health.UNHEALTHY),
        ("daemonsets", {"numberReady": 0, "desiredNumberScheduled": 3}, Health.UNKNOWN),
        ("configmaps", {}, Health.UNKNOWN),
        ("jobs", {"active": 2, "ready": 2}, Health.HEALTHY),
        ("jobs", {"active": 2, "ready": 1}, Health.UNHEALTHY),
        ("jobs", {"succeeded": 2}, Health.HEALTHY),
        ("jobs", {}, Health.UNKNOWN),
        ("deployments", {"availableReplicas": "many", "observedGeneration": 2}, Health.UNHEALTHY),
    ],
)
def test_known_kinds(plural: str, status: Mapping[str, Any], expected: Health) -> None:
    assert health(TYPES[plural], status, replicas=3) is expected


@pytest.mark.parametrize(
    ("available", "ready", "expected"),
    [
        ("available", "", Health.UNHEALTHY),
        ("", "ready", Health.HEALTHY),
        ("available", "ready", Health.UNHEALTHY),
        ("", "", Health.UNKNOWN),
    ],
)
def test_available_replicas_count_or_else_ready_ones(available: str, ready: str, expected: Health) -> None:
    paths = PathDefinition(
        replicas_spec=("spec", "replicas"),
        available_replicas_status=("status", available) if available else (),
        ready_replicas_status=("status", ready) if ready else (),
    )
    type_ = FederatedType("widgets", Resource("example.com", "v1", "Widget", "widgets"), (), paths)
    assert health(type_, {"available": 1, "ready": 2}, replicas=2) is expected


def test_a_workload_without_replicas_is_healthy() -> None:
    assert health(TYPES["deployments"], {}, replicas=0) is Health.HEALTHY


@pytest.mark.parametrize(
    ("waiting", "expected"), [(True, Health.UNKNOWN), (None, Health.UNKNOWN), (False, "Unhealthy")]
)
def test_pods_that_wait_for_a_node_are_no_illness(waiting: bool | None, expected: str) -> None:
    assert health(TYPES["deployments"], {}, waiting=waiting, replicas=1) == expected
    assert health(TYPES["deployments"], {"availableReplicas": 1}, waiting=waiting, replicas=1) is Health.HEALTHY


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"job": {"state": "RUNNING"}}, Health.HEALTHY),
        ({"job": {"state": "FAILED"}}, Health.UNHEALTHY),
        ({}, Health.UNKNOWN),  # not reported yet
        ({"job": {"state": "x" * 70_000}}, Health.UNKNOWN),
    ],
)
def test_other_kinds_by_the_expression_of_their_type(status: Mapping[str, Any], expected: Health) -> None:
    assert health(FLINK, status) is expected


def test_a_copy_that_is_being_deleted_is_not_judged() -> None:
    member = {"metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"replicas": 1}}
    assert health_of(TYPES["deployments"], member, compile_gate, lambda: False).health is Health.UNKNOWN


@pytest.mark.parametrize(
    ("owner", "phase", "expected"),
    [("web", "Pending", True), ("web-6c5", "Pending", True), ("webshop", "Pending", False), ("web", "Running", False)],
)
def test_pods_belong_to_controllers_whose_names_begin_with_the_workload(owner: str, phase: str, expected: bool) -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = {"metadata": {"ownerReferences": [{"name": owner}]}, "status": {"phase": phase, "conditions": [unscheduled]}}
    assert waits_for(pod, "web") is expected
