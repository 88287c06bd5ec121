"""Conformance area: the OpenAPI documents of custom resources, which `kubectl create`, `apply` and `explain` read."""

from typing import Any

import pytest
from tests.conformance.apiserver.conftest import define
from tests.conformance.apiserver.objects import a_definition
from tests.support.rest import Api, Object, Refused, eventually

OPEN: Object = {"x-kubernetes-preserve-unknown-fields": True}
TEXT: Object = {"type": "string"}


def published(api: Api, group: str, schema: Object) -> tuple[Object, Object]:
    """Create a definition with this schema; return what versions 2 and 3 of OpenAPI say about the kind."""
    name = ".".join([*reversed(group.split(".")), "v1", "Widget"])
    define(api, a_definition(group, schema={"openAPIV3Schema": schema}))
    try:
        old = eventually(lambda: api.send("GET", "/openapi/v2").json()["definitions"].get(name), 60)

        def find() -> Any:
            try:
                return api.send("GET", f"/openapi/v3/apis/{group}/v1").json()["components"]["schemas"].get(name)
            except Refused:
                return None

        return old, eventually(find, 60)
    finally:
        api.delete("customresourcedefinitions", f"widgets.{group}")


def gvk(group: str) -> Object:
    return {"x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": "Widget"}]}


@pytest.mark.parametrize("properties", [{}, {"properties": {"spec": {"type": "object"}}, "description": "A widget."}])
def test_open_kinds_have_no_properties_in_the_old_document(api: Api, group: str, properties: Object) -> None:
    """[sig-api-machinery] CustomResourcePublishOpenAPI works for CRD without validation schema."""
    old, new = published(api, group, {"type": "object", **OPEN, **properties})
    assert old == {"type": "object", **gvk(group)}
    assert new["x-kubernetes-preserve-unknown-fields"] is True
    assert {"apiVersion", "kind", "metadata"} <= new["properties"].keys()
    assert new.get("description") == properties.get("description")


def test_open_fields_have_no_type_in_the_old_document(api: Api, group: str) -> None:
    """[sig-api-machinery] CustomResourcePublishOpenAPI works for CRD preserving unknown fields in an embedded object."""
    spec = {"type": "object", "description": "S.", **OPEN, "properties": {"a": TEXT}}
    old, new = published(api, group, {"type": "object", "properties": {"spec": spec}})
    assert old["properties"]["spec"] == {"description": "S.", **OPEN}
    assert new["properties"]["spec"] == spec
    assert old["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}


def test_the_old_document_omits_what_swagger_cannot_say(api: Api, group: str) -> None:
    fields: Object = {
        "number": {"x-kubernetes-int-or-string": True},
        "nullable": {"type": "object", "nullable": True, "properties": {"a": TEXT}},
        "open": {"type": "object", "additionalProperties": True},
        "list": {"type": "array", "items": {**OPEN, "type": "object", "properties": {"a": TEXT}}},
        "defaulted": {"type": "string", "default": "x"},
        "choice": {"type": "object", "properties": {"a": TEXT}, "oneOf": [{"required": ["a"]}]},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object"}},
        },
    }
    spec = {"type": "object", "required": ["choice", "nullable"], "properties": fields}
    old, new = published(api, group, {"type": "object", "properties": {"spec": spec}})
    found = old["properties"]["spec"]
    assert found["required"] == ["choice"]
    embedded = found["properties"].pop("embedded")
    assert embedded["required"] == ["kind", "apiVersion"]
    assert embedded["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert found["properties"] == {
        "number": {"x-kubernetes-int-or-string": True},
        "nullable": {},
        "open": {"type": "object", "additionalProperties": True},
        "list": {"type": "array", "items": OPEN},
        "defaulted": TEXT,
        "choice": {"type": "object", "properties": {"a": TEXT}},
    }
    found = new["properties"]["spec"]
    assert found["properties"]["number"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    for name in ("nullable", "open", "list", "defaulted", "choice"):
        assert found["properties"][name] == fields[name]
