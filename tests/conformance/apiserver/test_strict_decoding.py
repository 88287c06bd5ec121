"""Conformance area: every unknown and duplicate field is reported at once, in the order of kube-apiserver."""

import re
from typing import Any

import pytest
from tests.conformance.apiserver.conftest import define
from tests.conformance.apiserver.objects import a_definition, a_deployment
from tests.support.rest import APPLY, JSON_PATCH, MERGE, STRATEGIC, Api, Object, Refused, refused

DEPLOYMENT = b"""{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {"name": "first", "name": "web", "unknownMeta": "x", "labels": {"app": "web"}},
  "spec": {
    "unknown1": "x", "unknownDupe": "x", "unknownDupe": "y", "paused": false, "paused": true,
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
      "metadata": {"labels": {"app": "web"}},
      "spec": {"containers": [{"name": "main", "image": "nginx:1.25", "unknownNested": "x",
        "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}
    }
  }
}"""
DEPLOYMENT_PROBLEMS = [
    'duplicate field "metadata.name"',
    'unknown field "metadata.unknownMeta"',
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknownDupe"',
    'duplicate field "spec.paused"',
    'unknown field "spec.template.spec.containers[0].unknownNested"',
    'duplicate field "spec.template.spec.containers[0].imagePullPolicy"',
]
DEPLOYMENT_YAML = b"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: first
  name: web
  unknownMeta: x
  labels: {app: web}
spec:
  unknown1: x
  unknownDupe: x
  unknownDupe: y
  paused: false
  paused: true
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: nginx:1.25
        unknownNested: x
        imagePullPolicy: Always
        imagePullPolicy: Never
"""
DEPLOYMENT_LINES = [
    'line 5: key "name" already set in map',
    'line 11: key "unknownDupe" already set in map',
    'line 13: key "paused" already set in map',
    'line 23: key "imagePullPolicy" already set in map',
]
DEPLOYMENT_UNKNOWN = [
    'unknown field "metadata.unknownMeta"',
    'unknown field "spec.template.spec.containers[0].unknownNested"',
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknownDupe"',
]
PATCH = b"""{"spec": {
  "unknown1": "x", "unknownDupe": "x", "unknownDupe": "y", "paused": true, "paused": true,
  "template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.25", "unknownNested": "x",
    "imagePullPolicy": "Always", "imagePullPolicy": "Never"}]}}
}}"""
PATCH_PROBLEMS = [
    'duplicate field "spec.unknownDupe"',
    'duplicate field "spec.paused"',
    'duplicate field "spec.template.spec.containers[0].imagePullPolicy"',
    'unknown field "spec.template.spec.containers[0].unknownNested"',
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknownDupe"',
]
STEPS = b"""[
  {"op": "add", "path": "/spec/unknown1", "value": "x", "foo": "bar"},
  {"op": "add", "path": "/spec/unknown2", "path": "/spec/unknown3", "value": "x"},
  {"op": "add", "path": "/spec/template/spec/containers/0/unknownNested", "value": "x"}
]"""
STEPS_PROBLEMS = [
    'json patch unknown field "[0].foo"',
    'json patch duplicate field "[1].path"',
    'unknown field "spec.template.spec.containers[0].unknownNested"',
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknown3"',
]


def warnings_of(answer: Any) -> list[str]:
    """Return the texts of the Warning headers in order."""
    quoted = [value[len('299 - "') : -1] for value in answer.headers.get_list("warning")]
    return [re.sub(r"\\(.)", r"\1", text) for text in quoted]


@pytest.mark.parametrize("mode", ["Strict", "Warn", ""])
def test_all_problems_of_json_are_reported_in_document_order(api: Api, mode: str) -> None:
    """[sig-api-machinery] FieldValidation should detect unknown and duplicate fields of a typed object."""
    if mode == "Strict":
        with refused(400, "BadRequest", "cannot be handled as a Deployment: strict decoding error: ") as caught:
            api.create("deployments", DEPLOYMENT, fieldValidation=mode)
        assert caught.value.message.endswith("strict decoding error: " + ", ".join(DEPLOYMENT_PROBLEMS))
        return
    answer = api.send("POST", api.url("deployments"), DEPLOYMENT, **({"fieldValidation": mode} if mode else {}))
    assert warnings_of(answer) == DEPLOYMENT_PROBLEMS
    assert answer.json()["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "Never"


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_yaml_names_lines_of_duplicates_and_then_unknown_fields(api: Api, method: str) -> None:
    url = api.url("deployments")
    if method == "PUT":
        api.create("deployments", a_deployment())
        url = api.url("deployments", "web")
    with refused(400, "BadRequest") as caught:
        api.send(method, url, DEPLOYMENT_YAML, type_="application/yaml", fieldValidation="Strict")
    listed = "yaml: unmarshal errors:" + "".join(f"\n  {line}" for line in DEPLOYMENT_LINES)
    assert caught.value.message.endswith(f"strict decoding error: {', '.join([listed, *DEPLOYMENT_UNKNOWN])}")
    answer = api.send(method, url, DEPLOYMENT_YAML, type_="application/yaml")
    assert warnings_of(answer) == [*DEPLOYMENT_LINES, *DEPLOYMENT_UNKNOWN]


@pytest.mark.parametrize(
    ("type_", "patch", "problems"),
    [(MERGE, PATCH, PATCH_PROBLEMS), (STRATEGIC, PATCH, PATCH_PROBLEMS), (JSON_PATCH, STEPS, STEPS_PROBLEMS)],
    ids=["merge", "strategic", "json"],
)
def test_all_problems_of_a_patch_are_reported(api: Api, type_: str, patch: bytes, problems: list[str]) -> None:
    api.create("deployments", a_deployment())
    with refused(422, "Invalid", ' "" is invalid: patch: Invalid value: ') as caught:
        api.patch("deployments", "web", patch, type_=type_, fieldValidation="Strict")
    assert caught.value.message.endswith(": strict decoding error: " + ", ".join(problems))
    answer = api.send("PATCH", api.url("deployments", "web"), patch, type_=type_)
    assert warnings_of(answer) == problems


def test_duplicates_of_a_patch_that_changes_nothing_are_reported(api: Api) -> None:
    api.create("deployments", a_deployment())
    patch = b'{"spec": {"paused": true, "paused": true}}'
    with refused(422, "Invalid", 'strict decoding error: duplicate field "spec.paused"'):
        api.patch("deployments", "web", patch, fieldValidation="Strict")
    answer = api.send("PATCH", api.url("deployments", "web"), patch, type_=MERGE)
    assert warnings_of(answer) == ['duplicate field "spec.paused"']


@pytest.mark.parametrize("is_yaml", [True, False])
def test_duplicates_of_an_apply_have_lines(api: Api, *, is_yaml: bool) -> None:
    head = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"},\n'
    body = head + b'"data": {"a": "1",\n"a": "2"}}'
    if is_yaml:
        body = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: '1'\nmetadata: {name: cm}\ndata:\n  a: '2'\n  a: '3'\n"
    lines = ['line 8: key "a" already set in map', 'line 7: key "data" already set in map']
    lines = lines if is_yaml else ['line 3: key "a" already set in map']
    query = {"fieldManager": "one", "type_": APPLY}
    with refused(400, "BadRequest") as caught:
        api.patch("configmaps", "cm", body, fieldValidation="Strict", **query)
    text = "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:"
    assert caught.value.message == text + "".join(f"\n  {line}" for line in lines)
    assert not api.exists("configmaps", "cm")
    answer = api.send("PATCH", api.url("configmaps", "cm"), body, **query)
    assert warnings_of(answer) == lines


@pytest.fixture
def gadgets(api: Api, group: str) -> Any:
    """A custom resource with an embedded object."""
    ports = {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "known": {"type": "string"},
                    "ports": ports,
                    "embedded": {
                        "type": "object",
                        "x-kubernetes-embedded-resource": True,
                        "properties": {"metadata": {"type": "object"}},
                    },
                },
            }
        },
    }
    definition = a_definition(group, plural="gadgets", kind="Gadget", schema={"openAPIV3Schema": schema})
    yield define(api, definition)
    api.delete("customresourcedefinitions", f"gadgets.{group}")


def a_gadget(group: str) -> bytes:
    return (
        b'{"apiVersion": "%s/v1", "kind": "Gadget", "metadata": {"name": "a", "name": "g", "unknownMeta": "x"},'
        b' "spec": {"unknown1": "x", "unknownDupe": 1, "unknownDupe": 2, "known": "x", "known": "y",'
        b' "ports": [{"port": 1, "port": 2, "unknownNested": "x"}],'
        b' "embedded": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "unknownEmbedded": 1}}}}'
    ) % group.encode()


GADGET_PROBLEMS = [
    'duplicate field "metadata.name"',
    'duplicate field "spec.unknownDupe"',
    'duplicate field "spec.known"',
    'duplicate field "spec.ports[0].port"',
    'unknown field "metadata.unknownMeta"',
    'unknown field "spec.ports[0].unknownNested"',
    'unknown field "spec.unknown1"',
    'unknown field "spec.unknownDupe"',
    'unknown field "spec.embedded.metadata.unknownEmbedded"',
]


def test_all_problems_of_a_custom_object_are_reported(api: Api, group: str, gadgets: str) -> None:
    """[sig-api-machinery] FieldValidation should detect unknown metadata fields in both the root and embedded object."""
    with refused(400, "BadRequest") as caught:
        api.create(gadgets, a_gadget(group), fieldValidation="Strict")
    assert caught.value.message.endswith("strict decoding error: " + ", ".join(GADGET_PROBLEMS))
    answer = api.send("POST", api.url(gadgets), a_gadget(group))
    assert warnings_of(answer) == GADGET_PROBLEMS
    stored: Object = answer.json()
    assert stored["spec"]["embedded"]["metadata"] == {"name": "m"}


def test_all_problems_of_a_custom_objects_patch_are_reported(api: Api, group: str, gadgets: str) -> None:
    api.create(gadgets, {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    patch = b'{"spec": {"unknown1": "x", "known": "x", "known": "y", "ports": [{"port": 1, "unknownNested": "x"}]}}'
    problems = [
        'duplicate field "spec.known"',
        'unknown field "spec.ports[0].unknownNested"',
        'unknown field "spec.unknown1"',
    ]
    with refused(422, "Invalid") as caught:
        api.patch(gadgets, "g", patch, fieldValidation="Strict")
    assert caught.value.message.endswith("strict decoding error: " + ", ".join(problems))
    assert warnings_of(api.send("PATCH", api.url(gadgets, "g"), patch, type_=MERGE)) == problems


def test_duplicates_below_preserved_fields_are_found(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] FieldValidation should detect duplicates in a CR when preserving unknown fields."""
    body = (
        f"apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: w}}\nspec:\n  size: 3\n  free:\n    a: 1\n    a: 2\n"
    )
    with refused(400, "BadRequest", 'line 8: key "a" already set in map'):
        api.patch(widgets, "w", body.encode(), type_=APPLY, fieldManager="one", fieldValidation="Strict")


def test_an_apply_of_an_unknown_field_is_refused(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] FieldValidation should create/apply an invalid CR with extra properties."""
    body = {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "nonsense": 1,
        "spec": {"size": 1},
    }
    with pytest.raises(Refused, match=r"\.nonsense: field not declared in schema") as caught:
        api.apply(widgets, body, fieldValidation="Strict")
    # kube-apiserver calls this mistake of the client an internal error.
    assert caught.value.code in {400, 500}
