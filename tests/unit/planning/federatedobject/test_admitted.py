"""Fields that only the host's admission has written are no part of the template."""

from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.planning.federatedobject.admitted import without_admitted
from federation.planning.federatedobject.federatedtemplate import divide
from federation.runtime.transforms import drop_managed_fields

CLAIM = ("v1", "PersistentVolumeClaim", {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"})
INGRESS = ("networking.k8s.io/v1", "Ingress", {"rules": [], "ingressClassName": "nginx"})
ADMITTED = {"priorityClassName": "high", "overhead": {"cpu": "1"}, "serviceAccountName": "a", "serviceAccount": "a"}
POD = ("v1", "Pod", {"containers": [], **ADMITTED, "imagePullSecrets": [{"name": "a"}]})
KINDS = pytest.mark.parametrize(("api_version", "kind", "spec"), [CLAIM, INGRESS, POD], ids=["claim", "ingress", "pod"])


def _source(api_version: str, kind: str, spec: Object, *managed: Any) -> Object:
    metadata = {"name": "x", "managedFields": list(managed)}
    return drop_managed_fields({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})


def _entry(*fields: str, **more: Any) -> Object:
    return {"manager": "kubectl", "fieldsV1": {"f:spec": {f"f:{field}": {} for field in fields}}, **more}


@KINDS
def test_what_a_user_wrote_is_delivered(api_version: str, kind: str, spec: Object) -> None:
    first, *others = spec
    source = _source(api_version, kind, spec, _entry(first), _entry(*others))
    assert divide(source).template["spec"] == spec


@KINDS
def test_what_admission_wrote_is_not(api_version: str, kind: str, spec: Object) -> None:
    first, *others = spec
    source = _source(api_version, kind, spec, _entry(first), _entry(*others, subresource="status"))
    assert divide(source).template["spec"] == {first: spec[first]}


@KINDS
def test_an_object_without_a_record_is_delivered_as_it_is(api_version: str, kind: str, spec: Object) -> None:
    assert divide(_source(api_version, kind, spec)).template["spec"] == spec


@pytest.mark.parametrize("managed", [None, "lies", ["lies"], [{"fieldsV1": "lies"}], [{"fieldsV1": {"f:spec": 1}}]])
def test_a_malformed_record_is_none(managed: Any) -> None:
    api_version, kind, spec = CLAIM
    source = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "managedFields": managed}}
    assert without_admitted(source, spec) is spec


def test_a_custom_kind_keeps_its_fields() -> None:
    spec = {"storageClassName": "fast", "accessModes": []}
    source = _source("example.com/v1", "Disk", spec, _entry("accessModes"))
    assert divide(source).template["spec"] == spec


def _pod(*containers: Object, **spec: Any) -> Object:
    return {"containers": list(containers), **spec}


def _amounts(name: str, *parts: str) -> Object:
    """Return the record of a container of which a manager wrote these requests and limits, such as `limits.cpu`."""
    resources: Object = {}
    for part in parts:
        kind, amount = part.split(".")
        resources.setdefault(f"f:{kind}", {})[f"f:{amount}"] = {}
    return {f'k:{{"name":"{name}"}}': {".": {}, "f:image": {}, "f:resources": {".": {}, **resources}}}


FILLED = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        ([_amounts("main")], {}),
        ([_amounts("main", "limits.cpu")], {"limits": {"cpu": "1"}}),
        (
            [_amounts("main", "limits.cpu"), _amounts("main", "requests.memory")],
            {"limits": {"cpu": "1"}, "requests": {"memory": "1Gi"}},
        ),
        ([_amounts("main", *(f"{part}.{name}" for part in FILLED for name in FILLED[part]))], FILLED),
        ([_amounts("other", "limits.cpu")], {}),
        (["lies"], {}),
        ([{'k:{"name":"main"}': {"f:resources": "lies"}}], {}),
    ],
)
def test_amounts_that_only_a_limit_range_wrote_are_not_delivered(records: list[Any], kept: Object) -> None:
    spec = _pod({"name": "main", "image": "nginx", "resources": FILLED})
    entries = [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:containers": record}}} for record in records]
    template = divide(_source("v1", "Pod", spec, *entries)).template["spec"]
    assert template["containers"] == [{"name": "main", "image": "nginx", "resources": kept}]
    assert spec["containers"][0]["resources"] == FILLED, "the source is read-only"


def test_other_workloads_keep_the_amounts_of_their_templates() -> None:
    spec = {"template": {"spec": _pod({"name": "main", "resources": FILLED})}}
    assert divide(_source("apps/v1", "Deployment", spec, _entry("template"))).template["spec"] == spec


def test_what_a_limit_range_notes_is_not_delivered() -> None:
    source = _source("v1", "Pod", _pod(), _entry("containers"))
    source["metadata"]["annotations"] = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu", "a": "b"}
    assert divide(source).template["metadata"]["annotations"] == {"a": "b"}
