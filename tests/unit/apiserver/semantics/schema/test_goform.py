"""Objects of built-in kinds take the form that Go's decoder and encoder give them."""

import json
from typing import Any

import pytest

from federation.apimachinery.quantity import to_canonical
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.apiserver.semantics.schema.goform import to_go_form

Object = dict[str, Any]


def in_go_form(group: str, kind: str, obj: Object, version: str = "v1") -> Object:
    copied: Object = json.loads(json.dumps(obj))
    to_go_form(builtin_schema(group, version, kind), copied)
    return copied


def container_after(**fields: Any) -> Object:
    pod = in_go_form("", "Pod", {"spec": {"containers": [{"name": "main", **fields}]}})
    found: Object = pod["spec"]["containers"][0]
    return found


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1e3", "1e3"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("1000k", "1M"),
        ("-0", "0"),
        (1, "1"),
        (0.1, "100m"),
        (None, "0"),
        ("250m", "250m"),
    ],
)
def test_quantities_have_canonical_text(given: Any, canonical: str) -> None:
    found = container_after(resources={"requests": {"cpu": given}, "limits": {}})
    assert found["resources"] == {"requests": {"cpu": canonical}}


def test_quantities_are_canonical_wherever_they_occur() -> None:
    quota = in_go_form("", "ResourceQuota", {"spec": {"hard": {"pods": 10, "requests.cpu": "0.5"}}})
    assert quota["spec"]["hard"] == {"pods": "10", "requests.cpu": "500m"}
    metric = {
        "type": "Pods",
        "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": 0.5}},
    }
    scaler = in_go_form("autoscaling", "HorizontalPodAutoscaler", {"spec": {"metrics": [metric]}}, "v2")
    assert scaler["spec"]["metrics"][0]["pods"]["target"]["averageValue"] == "500m"
    volume = {"name": "cache", "emptyDir": {"sizeLimit": "1024Mi"}}
    assert in_go_form("", "Pod", {"spec": {"volumes": [volume]}})["spec"]["volumes"][0]["emptyDir"] == {
        "sizeLimit": "1Gi"
    }
    capacity = in_go_form("storage.k8s.io", "CSIStorageCapacity", {"capacity": "1024Mi"})
    assert capacity["capacity"] == "1Gi"


@pytest.mark.parametrize("wrong", ["abc", "", True, ["1"]])
def test_what_is_no_quantity_is_left_to_validation(wrong: Any) -> None:
    assert to_canonical(wrong) == wrong


def test_empty_fields_disappear_unless_a_pointer_distinguishes_them() -> None:
    found = container_after(
        stdin=False, command=[], env=[{"name": "A", "value": ""}], securityContext={"privileged": False}
    )
    assert found == {
        "name": "main",
        "env": [{"name": "A"}],
        "resources": {},
        "securityContext": {"privileged": False},
    }
    deployment = in_go_form("apps", "Deployment", {"spec": {"paused": False, "replicas": 0, "minReadySeconds": 0}})
    assert deployment["spec"] == {"replicas": 0, "strategy": {}, "template": {"metadata": {}, "spec": {}}}


def test_fields_without_omitempty_are_always_there() -> None:
    assert in_go_form("apps", "StatefulSet", {"spec": {}})["spec"]["serviceName"] == ""
    assert in_go_form("", "Node", {})["spec"] == {}
    node = in_go_form("", "Node", {"status": {"phase": "Running"}})
    assert node["status"]["nodeInfo"]["kubeletVersion"] == ""
    assert node["status"]["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}


def test_nulls_are_absent_in_structs_and_empty_in_lists_and_maps_of_text() -> None:
    found = container_after(image=None, args=["a", None])
    assert found == {"name": "main", "args": ["a", ""], "resources": {}}
    assert in_go_form("", "ConfigMap", {"data": {"a": None}})["data"] == {"a": ""}
    assert in_go_form("", "ConfigMap", {"binaryData": {"a": None}})["binaryData"] == {"a": ""}
    assert in_go_form("", "Secret", {"data": {"a": None, "b": "YQ=="}})["data"] == {"a": "", "b": "YQ=="}


def test_free_form_data_keeps_its_nulls_and_empty_values() -> None:
    data = {"spec": {"time": None, "list": [], "text": "", "no": False}}
    assert in_go_form("apps", "ControllerRevision", {"data": data, "revision": 1})["data"] == data


def test_the_changed_part_of_an_object_gets_no_other_fields() -> None:
    changed: Object = {"spec": {"hard": {"cpu": "0.5"}}}
    to_go_form(builtin_schema("", "v1", "Node"), changed, is_partial=True)
    assert changed.keys() == {"spec"}
