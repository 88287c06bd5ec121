"""Warnings about numbers of budgets and autoscalers that hold in each cluster while their workload is divided."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.manifests import a_policy

from federation.admission.autoscalers import AutoscalerAdmission
from federation.admission.dividednumbers import DividedNumbersAdmission
from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import POD_DISRUPTION_BUDGETS, Object, Resource
from federation.apiserver.admission.requests import AdmissionRequest

AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")


def a_divided_workload(*clusters: str, name: str = "web") -> Object:
    replicas = [
        {"cluster": each, "patches": [{"op": "replace", "path": "/spec/replicas", "value": 2}]} for each in clusters
    ]
    return {
        "metadata": {"name": f"{name}-deployments.apps", "namespace": "default"},
        "spec": {
            "template": {
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": {"template": {"metadata": {"labels": {"app": name}}}},
            },
            "placements": [
                {"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": each} for each in clusters]}
            ],
            "overrides": [{"controller": names.GLOBAL_SCHEDULER, "clusters": replicas}],
        },
    }


async def warnings(
    resource: Resource, spec: Object, *, mode: str = "Duplicate", federated: Sequence[Object] = (), **policy: Any
) -> list[str]:
    made = a_policy({}, **policy)
    made["spec"] |= {"schedulingMode": mode}
    stored = {PROPAGATION_POLICIES: [made], FEDERATED_OBJECTS: federated}

    async def listed(kind: Resource, namespace: str) -> Sequence[Object]:  # the store's signature
        return stored.get(kind, [])

    labels = {names.PROPAGATION_POLICY_LABEL: made["metadata"]["name"]}
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web", "namespace": "default", "labels": labels},
        "spec": spec,
    }
    request = AdmissionRequest(
        "1", "CREATE", resource, (resource.version,), "", "default", "web", {}, False, obj, None, {}
    )
    await DividedNumbersAdmission(listed, AutoscalerAdmission(listed)).validate(request, lambda *_: True)  # type: ignore[arg-type]  # not asked
    return request.warnings


WEB = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minAvailable": 4, "selector": WEB}, "minAvailable"),
        ({"maxUnavailable": 1, "selector": WEB}, "maxUnavailable"),
        ({"minAvailable": "50%", "selector": WEB}, ""),
        ({"minAvailable": 0, "selector": WEB}, ""),
        ({"minAvailable": 4, "selector": {"matchLabels": {"app": "other"}}}, ""),
        ({"minAvailable": 4}, ""),
    ],
)
async def test_a_budget_of_a_divided_workload_is_warned_about(spec: Object, field: str) -> None:
    found = await warnings(POD_DISRUPTION_BUDGETS, spec, federated=[a_divided_workload("east", "west")])
    assert [text.split(":")[0] for text in found] == ([f"spec.{field}"] if field else [])
    if field:
        assert found[0].endswith("divided over several; a percentage holds for any number of replicas")


async def test_a_workload_in_one_cluster_is_not_divided() -> None:
    spec = {"minAvailable": 1, "selector": WEB}
    assert not await warnings(POD_DISRUPTION_BUDGETS, spec, federated=[a_divided_workload("east")])


@pytest.mark.parametrize(("policy", "count"), [({}, 1), ({"maxClusters": 1}, 0)])
async def test_a_budget_that_comes_before_its_workload_is_judged_by_its_policy(policy: Any, count: int) -> None:
    spec = {"minAvailable": 1, "selector": WEB}
    assert len(await warnings(POD_DISRUPTION_BUDGETS, spec, mode="Divide", **policy)) == count


async def test_limits_of_an_autoscaler_hold_in_each_cluster() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"minReplicas": 2, "maxReplicas": 9, "scaleTargetRef": target}
    found = await warnings(AUTOSCALERS, spec, federated=[a_divided_workload("east", "west")])
    assert [text.split(":")[0] for text in found] == ["spec.minReplicas", "spec.maxReplicas"]
    other = {**spec, "scaleTargetRef": {**target, "name": "other"}}
    assert not await warnings(AUTOSCALERS, other, federated=[a_divided_workload("east", "west")])
