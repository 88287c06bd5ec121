"""Which services a member calls for an object, and which workloads are behind them."""

from typing import Any

import pytest

from federation.api.federatedtype import FederatedType, PathDefinition
from federation.apimachinery.resources import (
    API_SERVICES,
    CRDS,
    DAEMON_SETS,
    DEPLOYMENTS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.delivery.rules.webhookservices import ServiceName, called_services, has_ready_pods, is_behind

SERVICE = {"namespace": "operator", "name": "webhook"}


def an_object(resource: Resource, **fields: Any) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "one"}, **fields}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (an_object(VALIDATING_WEBHOOKS, webhooks=[{"clientConfig": {"service": SERVICE}}] * 2), ["operator/webhook"]),
        (an_object(MUTATING_WEBHOOKS, webhooks=[{"clientConfig": {"url": "https://a/"}}]), []),
        (
            an_object(
                VALIDATING_WEBHOOKS, webhooks=[{"clientConfig": {"service": SERVICE}, "failurePolicy": "Ignore"}]
            ),
            [],
        ),
        (an_object(VALIDATING_WEBHOOKS), []),
        (an_object(API_SERVICES, spec={"service": SERVICE}), ["operator/webhook"]),
        (an_object(API_SERVICES, spec={"group": "apps"}), []),
        (an_object(CRDS, spec={"conversion": {"webhook": {"clientConfig": {"service": SERVICE}}}}), []),
    ],
)
def test_the_services_whose_absence_makes_requests_fail(obj: Object, expected: list[str]) -> None:
    assert [str(each) for each in called_services(obj)] == [f"Service {each}" for each in expected]
    assert all(isinstance(each, ServiceName) for each in called_services(obj))


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ({"app": "a"}, {"app": "a", "tier": "b"}, True),
        ({"app": "a", "tier": "c"}, {"app": "a", "tier": "b"}, False),
        ({}, {"app": "a"}, False),
        (None, {"app": "a"}, False),
        ({"app": "a"}, None, False),
    ],
)
def test_pods_of_a_workload_belong_to_a_service_with_a_matching_selector(
    selector: object, labels: object, expected: bool
) -> None:
    workload = {"spec": {"template": {"metadata": {"labels": labels}}}}
    assert is_behind({"spec": {"selector": selector}}, workload) is expected


@pytest.mark.parametrize(
    ("resource", "status", "expected"),
    [
        (DEPLOYMENTS, {"readyReplicas": 1}, True),
        (DEPLOYMENTS, {"readyReplicas": 0}, False),
        (DEPLOYMENTS, {"readyReplicas": "1"}, False),
        (DAEMON_SETS, {"numberReady": 2}, True),
        (DAEMON_SETS, {}, False),
    ],
)
def test_a_workload_is_ready_with_its_first_ready_pod(resource: Resource, status: Object, expected: bool) -> None:
    assert has_ready_pods(FederatedType("one", resource, ()), {"status": status}) is expected


def test_a_type_may_have_its_ready_replicas_elsewhere() -> None:
    paths = PathDefinition(ready_replicas_status=("status", "running"))
    assert has_ready_pods(FederatedType("one", DEPLOYMENTS, (), paths), {"status": {"running": 1}})
