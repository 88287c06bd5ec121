"""Fields that only the host's admission has written are no part of the template."""

from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.planning.federatedobject.admitted import without_admitted
from federation.planning.federatedobject.federatedtemplate import divide
from federation.runtime.transforms import drop_managed_fields

CLAIM = ("v1", "PersistentVolumeClaim", {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast"})
INGRESS = ("networking.k8s.io/v1", "Ingress", {"rules": [], "ingressClassName": "nginx"})
POD = ("v1", "Pod", {"containers": [], "priorityClassName": "high", "overhead": {"cpu": "1"}})
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
