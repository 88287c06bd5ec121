"""What is kept of cached objects."""

from typing import Any

from federation.apimachinery.ownerreferences import controller_uids
from federation.runtime.transforms import drop_managed_fields, slim_claim, slim_definition, slim_node, slim_pod


def test_managed_fields_are_dropped() -> None:
    obj = {"metadata": {"name": "x", "managedFields": [{}]}, "spec": {}}
    assert drop_managed_fields(obj) == {"metadata": {"name": "x"}, "spec": {}}


def test_a_claim_keeps_its_name_its_age_and_whether_it_has_a_volume() -> None:
    kept = {"name": "data", "namespace": "n", "resourceVersion": "3", "creationTimestamp": "2025-12-31T00:00:00Z"}
    metadata = {**kept, "labels": {"a": "b"}}
    claim = {"metadata": metadata, "spec": {"volumeName": "pv", "storageClassName": "x"}, "status": {"phase": "Bound"}}
    assert slim_claim(claim) == {"metadata": kept, "spec": {"volumeName": "pv"}}
    ending = {**claim, "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": None}
    assert slim_claim(ending)["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert slim_claim(ending)["spec"] == {}


def test_managers_that_scale_an_object_are_kept_without_their_fields() -> None:
    entries = [
        {"manager": "federation", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
        {"manager": "autoscaler", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        "nonsense",
    ]
    obj = {"metadata": {"name": "x", "managedFields": entries}}
    kept = [{"manager": "autoscaler", "subresource": "scale"}]
    assert drop_managed_fields(obj) == {"metadata": {"name": "x", "managedFields": kept}}


def test_a_pod_keeps_its_requests_node_and_phase() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "n", "resourceVersion": "3", "labels": {"a": "b"}},
        "spec": {
            "nodeName": "n1",
            "overhead": {"cpu": "1m"},
            "volumes": [{}],
            "containers": [
                {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}},
                {"name": "d"},
            ],
            "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }
    assert slim_pod(pod) == {
        "metadata": {"name": "p", "namespace": "n", "resourceVersion": "3"},
        "spec": {
            "containers": [{"resources": {"requests": {"cpu": "1"}}}, {}],
            "initContainers": [{"resources": {"requests": {"cpu": "2"}}, "restartPolicy": "Always"}],
            "overhead": {"cpu": "1m"},
            "nodeName": "n1",
        },
        "status": {"phase": "Running"},
    }
    assert slim_pod({"metadata": {"name": "p"}})["status"] == {"phase": ""}


def test_a_pending_pod_keeps_its_condition_and_controller() -> None:
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u1", "controller": True}

    def pod(name: str) -> dict[str, Any]:
        metadata = {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [{}, owner]}
        return {"metadata": metadata, "status": {"conditions": [{"type": "Ready", "status": "False"}, waiting]}}

    slim = slim_pod(pod("a"))
    assert slim["status"] == {"phase": "", "conditions": [waiting]}
    assert slim["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert controller_uids(slim) == ["u1"]
    assert slim_pod(pod("b"))["metadata"]["ownerReferences"] is slim["metadata"]["ownerReferences"]


def test_a_node_keeps_the_fields_that_scheduling_reads() -> None:
    node = {
        "metadata": {"name": "n1", "resourceVersion": "3", "labels": {"zone": "a"}, "annotations": {"x": "y"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
        "status": {
            "allocatable": {"cpu": "4"},
            "images": [{}],
            "conditions": [{"type": "Ready", "status": "True", "message": "m"}, {"type": "DiskPressure"}],
        },
    }
    assert slim_node(node) == {
        "metadata": {"name": "n1", "resourceVersion": "3", "labels": {"zone": "a"}},
        "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_a_definition_keeps_the_types_of_its_status() -> None:
    status = {"type": "object", "properties": {"ready": {"type": "integer", "minimum": 0}, "any": {"x-y": True}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}, "status": status}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    bare = {"name": "v2", "served": False}
    found = slim_definition({"metadata": {"name": "n"}, "spec": {"group": "g", "versions": [version, bare]}})
    assert found["spec"]["group"] == "g"
    types = {"openAPIV3Schema": {"properties": {"status": {"properties": {"ready": {"type": "integer"}}}}}}
    none = {"openAPIV3Schema": {"properties": {"status": {"properties": {}}}}}
    assert found["spec"]["versions"] == [
        {"name": "v1", "served": True, "schema": types, "subresources": {"status": {}}},
        {"name": "v2", "served": False, "schema": none},
    ]
