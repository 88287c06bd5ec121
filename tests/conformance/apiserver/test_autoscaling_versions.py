"""autoscaling/v1 and v2 are two forms of the same HorizontalPodAutoscalers."""

import json

from tests.support.rest import Api, Object, refused

V1, V2 = "autoscaling/v1/horizontalpodautoscalers", "autoscaling/v2/horizontalpodautoscalers"
ALPHA = "autoscaling.alpha.kubernetes.io/"
TARGET: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "no"}
UTILIZATION: Object = {"type": "Utilization", "averageUtilization": 50}
CPU: Object = {"type": "Resource", "resource": {"name": "cpu", "target": UTILIZATION}}
AVERAGE: Object = {"type": "AverageValue", "averageValue": "2"}
PODS: Object = {"type": "Pods", "pods": {"metric": {"name": "p"}, "target": AVERAGE}}
BEHAVIOR: Object = {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}]}}


def an_autoscaler(**spec: object) -> Object:
    return {"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET, **spec}}


def test_annotations_carry_what_v1_cannot_express(api: Api) -> None:
    stored = api.create(V2, an_autoscaler(metrics=[CPU, PODS], behavior=BEHAVIOR))
    old = api.get(V1, "h")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50
    (other,) = json.loads(old["metadata"]["annotations"][f"{ALPHA}metrics"])
    assert other == {"type": "Pods", "pods": {"metricName": "p", "targetAverageValue": "2"}}
    assert f"{ALPHA}behavior" in old["metadata"]["annotations"]
    api.update(V1, old)
    new = api.get(V2, "h")
    assert new["spec"]["behavior"] == stored["spec"]["behavior"]
    assert sorted(new["spec"]["metrics"], key=str) == sorted(stored["spec"]["metrics"], key=str)


def test_a_write_in_v1_changes_the_v2_object(api: Api) -> None:
    stored = api.create(V2, an_autoscaler(metrics=[CPU, PODS], behavior=BEHAVIOR))
    api.patch(V1, "h", {"spec": {"maxReplicas": 7, "targetCPUUtilizationPercentage": 20}})
    new = api.get(V2, "h")
    assert new["spec"]["maxReplicas"] == 7
    assert new["spec"]["behavior"] == stored["spec"]["behavior"]
    assert [found["type"] for found in new["spec"]["metrics"]] == ["Pods", "Resource"]
    assert new["spec"]["metrics"][1]["resource"]["target"]["averageUtilization"] == 20
    assert "annotations" not in new["metadata"]


def test_v1_has_the_default_target_of_v2(api: Api) -> None:
    assert api.create(V1, an_autoscaler())["spec"]["targetCPUUtilizationPercentage"] == 80
    assert api.get(V2, "h")["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80


def test_the_status_in_annotations_belongs_to_the_status_subresource(api: Api) -> None:
    api.create(V2, an_autoscaler())
    condition = {"type": "ScalingActive", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    api.patch(V2, "h", {"status": {"desiredReplicas": 2, "conditions": [condition]}}, "status")
    old = api.get(V1, "h")
    assert json.loads(old["metadata"]["annotations"][f"{ALPHA}conditions"])[0]["type"] == "ScalingActive"
    api.patch(V1, "h", {"metadata": {"annotations": {f"{ALPHA}conditions": "[]", "kept": "yes"}}})
    new = api.get(V2, "h")
    assert new["status"]["conditions"][0]["type"] == "ScalingActive"
    assert new["metadata"]["annotations"] == {"kept": "yes"}


def test_an_annotation_that_cannot_be_read_is_dropped(api: Api) -> None:
    obj = an_autoscaler()
    obj["metadata"]["annotations"] = {f"{ALPHA}metrics": '[{"type":"Pods","pods":{"metricName":5}}]', "kept": "yes"}
    created = api.create(V1, obj)
    assert created["metadata"]["annotations"] == {"kept": "yes"}


def test_what_an_annotation_carries_is_validated(api: Api) -> None:
    obj = an_autoscaler()
    metrics = '[{"type":"Pods","pods":{"metricName":"","targetAverageValue":"1"}}]'
    obj["metadata"]["annotations"] = {f"{ALPHA}metrics": metrics}
    with refused(422, "Invalid") as caught:
        api.create(V1, obj)
    assert caught.value.fields == ["spec.metrics[0].pods.metric.name"]


def test_a_list_in_v1_shows_v1_objects(api: Api) -> None:
    api.create(V2, an_autoscaler(metrics=[PODS]))
    (found,) = api.list(V1)["items"]
    assert found["spec"].keys() == {"scaleTargetRef", "minReplicas", "maxReplicas"}
