"""A repeated write of the same manifest stores nothing, whatever form its values have; a manager's time stays."""

from typing import Any

import pytest
from tests.conformance.registry.conftest import APPLY, MERGE, STRATEGIC, Api

Object = dict[str, Any]
LABELS = {"a": "b"}
SELECTOR = {"matchLabels": LABELS}


def a_pod(more: Object | None = None, **container: Any) -> Object:
    return {"containers": [{"name": "a", "image": "i", **container}], **(more or {})}


def a_template(spec: Object) -> Object:
    return {"metadata": {"labels": LABELS}, "spec": spec}


def a_workload(kind: str, spec: Object, **more: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": kind, "spec": {"selector": SELECTOR, "template": a_template(spec), **more}}


def a_core(kind: str, **parts: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, **parts}


def a_network(kind: str, spec: Object) -> Object:
    return {"apiVersion": "networking.k8s.io/v1", "kind": kind, "spec": spec}


FIELD = {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
AMOUNT = {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
DOWNWARD = {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
METRIC = {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1000m"}}
SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
SHAPES = {
    "deployments amounts": a_workload(
        "Deployment", a_pod(resources={"requests": {"cpu": "1000m", "memory": "1024Mi"}})
    ),
    "deployments environment": a_workload("Deployment", a_pod(env=[FIELD, AMOUNT, {"name": "B", "value": ""}])),
    "deployments volumes": a_workload(
        "Deployment",
        a_pod(
            {"volumes": [{"name": "e", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "d", "downwardAPI": DOWNWARD}]}
        ),
    ),
    "deployments empty": a_workload("Deployment", a_pod({"volumes": [], "tolerations": []}, env=[], resources={})),
    "deployments nulls": a_workload("Deployment", a_pod({"nodeSelector": None}, command=None)),
    "deployments probes": a_workload("Deployment", a_pod(livenessProbe={"httpGet": {"port": 80}})),
    "replicasets": a_workload("ReplicaSet", a_pod(resources={"limits": {"cpu": "1000m"}})),
    "daemonsets": a_workload("DaemonSet", a_pod(resources={"limits": {"cpu": ".5"}})),
    "statefulsets claims": a_workload(
        "StatefulSet", a_pod(), volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": STORAGE}]
    ),
    "jobs": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"template": {"spec": a_pod({"restartPolicy": "Never"})}},
    },
    "cronjobs": {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "spec": {
            "schedule": "@daily",
            "jobTemplate": {
                "spec": {
                    "template": {"spec": a_pod({"restartPolicy": "Never"}, resources={"requests": {"cpu": "0.5"}})}
                }
            },
        },
    },
    "pods": a_core("Pod", spec=a_pod(resources={"requests": {"cpu": "0.1", "memory": "1000Ki"}})),
    "podtemplates": a_core("PodTemplate", template=a_template(a_pod(resources={"limits": {"cpu": "1000m"}}))),
    "services": a_core("Service", spec={"selector": LABELS, "ports": [{"port": 80}]}),
    "services balanced": a_core(
        "Service", spec={"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}
    ),
    "secrets": a_core("Secret", stringData={"a": "b"}, data={"x": "eQ=="}),
    "configmaps": a_core("ConfigMap", metadata={"creationTimestamp": None, "annotations": {}}, data={"c": "d"}),
    "persistentvolumeclaims": a_core("PersistentVolumeClaim", spec=STORAGE),
    "resourcequotas": a_core("ResourceQuota", spec={"hard": {"requests.cpu": "1000m", "memory": "1024Mi"}}),
    "limitranges": a_core("LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "1000m"}}]}),
    "endpoints": a_core("Endpoints", subsets=[{"addresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 80}]}]),
    "networkpolicies": a_network("NetworkPolicy", {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}),
    "ingresses": a_network("Ingress", {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}),
    "rolebindings": {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
        "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "default"}, {"kind": "User", "name": "u"}],
    },
    "horizontalpodautoscalers": {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": 3, "scaleTargetRef": SCALED, "metrics": [{"type": "Pods", "pods": METRIC}]},
    },
    "endpointslices": {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
        "ports": [{"port": 80}],
    },
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_repeated_writes_of_a_manifest_store_nothing(api: Api, shape: str) -> None:
    plural = shape.partition(" ")[0]
    manifest = SHAPES[shape] | {"metadata": {**SHAPES[shape].get("metadata", {}), "name": "x", "namespace": "default"}}
    made = await api.patch(plural, "x", manifest, type_=APPLY, field_manager="m")
    async with api.watching(plural, resource_version=made["metadata"]["resourceVersion"], timeout_s=1) as events:
        for _ in range(3):
            await api.clock.advance(2)
            assert await api.patch(plural, "x", manifest, type_=APPLY, field_manager="m") == made
        assert await api.update(plural, made, field_manager="m") == made
        assert await api.patch(plural, "x", {"metadata": {"labels": {}}}, type_=MERGE, field_manager="m") == made
        assert await api.patch(plural, "x", {"metadata": {"labels": {}}}, type_=STRATEGIC, field_manager="m") == made
        changed = await api.patch(plural, "x", {"metadata": {"labels": {"new": "1"}}}, type_=MERGE, field_manager="m")
        assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
        assert (await events.next())[1]["metadata"]["labels"]["new"] == "1"


async def test_an_apply_of_another_value_has_a_new_time(api: Api) -> None:
    made = await api.patch("configmaps", "x", SHAPES["configmaps"], type_=APPLY, field_manager="m")
    await api.clock.advance(2)
    other = SHAPES["configmaps"] | {"data": {"c": "e"}}
    changed = await api.patch("configmaps", "x", other, type_=APPLY, field_manager="m")
    assert changed["metadata"]["managedFields"][0]["time"] > made["metadata"]["managedFields"][0]["time"]


async def test_another_manager_of_equal_values_is_recorded(api: Api) -> None:
    manifest = a_core("ConfigMap", data={"c": "d"})
    await api.patch("configmaps", "x", manifest, type_=APPLY, field_manager="m")
    both = await api.patch("configmaps", "x", manifest, type_=APPLY, field_manager="n")
    assert [entry["manager"] for entry in both["metadata"]["managedFields"]] == ["m", "n"]
