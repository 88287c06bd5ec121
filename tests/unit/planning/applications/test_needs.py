"""What an application needs in a cluster."""

from typing import Any

import pytest

from federation.api.federatedtype import FederatedType, default_type_configs, from_config
from federation.api.shippedcomponents import shipped_components
from federation.apimachinery.resources import GroupKind, Resource
from federation.planning.applications.graph import Application, applications, identity_of_object
from federation.planning.applications.needs import (
    PRIORITY_CLASS,
    STORAGE_CLASS,
    kinds_of,
    lacking,
    needs_of,
)

TYPES = {(type_.resource.group, type_.resource.kind): type_ for type_ in map(from_config, default_type_configs())}


def a_workload(pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "web"}}, "spec": {"containers": [{"name": "c"}], **(pod or {})}}
    metadata = {"name": "web", "namespace": "shop"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {"template": template, **spec},
    }


def another(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "shop"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def needed(*objects: dict[str, Any]) -> list[str]:
    [application] = applications(objects, lambda group, kind: TYPES.get((group, kind)))
    return [f"{need.title} of {need.by}" for need in needs_of(application, TYPES["apps", "StatefulSet"])]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (a_workload(), []),
        (a_workload({"priorityClassName": "gold"}), ["PriorityClass gold of statefulset/web"]),
        (a_workload({"priorityClassName": "system-node-critical"}), []),
        (a_workload({"priorityClassName": 7}), []),
        (a_workload({"runtimeClassName": "gvisor"}), ["RuntimeClass gvisor of statefulset/web"]),
        (a_workload(volumeClaimTemplates=[{"spec": {"storageClassName": "fast"}}, {"spec": {"storageClassName": "fast"}}]), ["StorageClass fast of statefulset/web"]),
        (a_workload(volumeClaimTemplates=[{"spec": {}}]), ["default StorageClass of statefulset/web"]),
        (a_workload(volumeClaimTemplates=[{"spec": {"storageClassName": ""}}]), []),
        (a_workload({"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}]}), ["StorageClass fast of statefulset/web"]),
    ],
)  # fmt: skip
def test_pods_and_claims_need_classes(workload: dict[str, Any], expected: list[str]) -> None:
    assert needed(workload) == expected


def test_parts_need_classes_too() -> None:
    claim = {"volumes": [{"persistentVolumeClaim": {"claimName": "it"}}]}
    volume = another("v1", "PersistentVolumeClaim", {"storageClassName": "slow"})
    bound = another("v1", "PersistentVolumeClaim", {"volumeName": "pv-1"})
    assert needed(a_workload(claim), volume) == ["StorageClass slow of persistentvolumeclaim/it"]
    assert needed(a_workload(claim), bound) == []
    service = another("v1", "Service", {"selector": {"a": "web"}})
    backend = {"http": {"paths": [{"backend": {"service": {"name": "it"}}}]}}
    ingress = another("networking.k8s.io/v1", "Ingress", {"ingressClassName": "nginx", "rules": [backend]})
    assert needed(a_workload(), service, ingress) == ["IngressClass nginx of ingress/it"]
    devices = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "it"}]}
    request = {"spec": {"devices": {"requests": [{"exactly": {"deviceClassName": "gpu.example.com"}}]}}}
    template = another("resource.k8s.io/v1", "ResourceClaimTemplate", request)
    assert needed(a_workload(devices), template) == ["DeviceClass gpu.example.com of resourceclaimtemplate/it"]


def test_each_component_of_a_workload_has_needs() -> None:
    resource = Resource("ray.io", "v1", "RayCluster", "rayclusters")
    ray = FederatedType("rayclusters.ray.io", resource, (), components=shipped_components("ray.io", "RayCluster"))
    pod = {"template": {"spec": {"priorityClassName": "gold", "containers": [{"name": "c"}]}}}
    cluster = another("ray.io/v1", "RayCluster", {"headGroupSpec": pod})
    application = Application(cluster, identity_of_object(cluster))
    assert [need.title for need in needs_of(application, ray)] == ["PriorityClass gold"]
    assert needs_of(application, None) == []


def test_a_cluster_lacks_what_it_does_not_have_and_unknown_is_not_lacking() -> None:
    workload = a_workload({"priorityClassName": "gold"}, volumeClaimTemplates=[{"spec": {}}])
    needs = needs_of(Application(workload, identity_of_object(workload)), None)
    marked = {"storageclass.kubernetes.io/is-default-class": "true"}
    complete = {
        PRIORITY_CLASS: [{"metadata": {"name": "silver"}}, {"metadata": {"name": "gold"}}],
        STORAGE_CLASS: [{"metadata": {"name": "slow"}}, {"metadata": {"name": "fast", "annotations": marked}}],
    }
    assert lacking(needs, complete.get) == []
    assert [need.title for need in lacking(needs, {**complete, PRIORITY_CLASS: []}.get)] == ["PriorityClass gold"]
    unmarked = {**complete, STORAGE_CLASS: [{"metadata": {"name": "slow"}}]}
    assert [need.title for need in lacking(needs, unmarked.get)] == ["default StorageClass"]
    assert lacking(needs, {}.get) == []


def test_kinds_that_only_watch_an_application_are_not_essential() -> None:
    service = another("v1", "Service", {"selector": {"a": "web"}})
    monitor = another("monitoring.coreos.com/v1", "PodMonitor", {"selector": {"matchLabels": {"a": "web"}}})
    monitor["metadata"]["name"] = "m"
    workload = a_workload({"serviceAccountName": "known-by-name-only"})
    [application] = applications([workload, service, monitor], lambda group, kind: TYPES.get((group, kind)))
    assert kinds_of(application) == {
        GroupKind("apps", "StatefulSet"): True,
        GroupKind("", "Service"): True,
        GroupKind("monitoring.coreos.com", "PodMonitor"): False,
    }
