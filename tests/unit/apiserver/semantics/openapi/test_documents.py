"""The parts of OpenAPI documents that kubectl reads."""

from federation.apimachinery.resources import Resource
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.semantics.openapi import openapi_v2, openapi_v3
from federation.apiserver.semantics.strategies.base import Strategy

KINDS = list(builtin_kinds())
STRUCTURAL = {
    "description": "A widget.",
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "description": "What is wanted.",
            "type": "object",
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "default": 2},
                "mode": {"type": "string", "enum": ["A", "B"], "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "list": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}},
                },
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
                "not": {"type": "string"},
            },
            "oneOf": [{"required": ["size"]}, {"required": ["mode"]}],
            "not": {"required": ["map"]},
        }
    },
}
WIDGET = KindInfo(
    resource=Resource("example.com", "v1", "Widget", "widgets"),
    singular="widget",
    list_kind="WidgetList",
    strategy=Strategy(),
    schema_source=lambda: from_openapi(STRUCTURAL),
    subresources=frozenset({"status", "scale"}),
    is_custom=True,
)


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_reference_of_every_document_is_resolved():
    v2 = openapi_v2([*KINDS, WIDGET])
    assert {ref.removeprefix("#/definitions/") for ref in references(v2)} <= v2["definitions"].keys()
    for group, version in {(info.resource.group, info.resource.version) for info in [*KINDS, WIDGET]}:
        v3 = openapi_v3(group, version, [*KINDS, WIDGET])
        assert {ref.removeprefix("#/components/schemas/") for ref in references(v3)} <= v3["components"][
            "schemas"
        ].keys()


def test_operations_have_their_kind_action_and_parameters():
    paths = openapi_v3("apps", "v1", KINDS)["paths"]
    operation = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert operation["x-kubernetes-group-version-kind"] == {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert operation["x-kubernetes-action"] == "patch"
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= {item["name"] for item in operation["parameters"]}
    assert "application/strategic-merge-patch+json" in operation["requestBody"]["content"]
    assert paths["/apis/apps/v1/deployments"].keys() == {"parameters", "get"}
    assert paths["/apis/apps/v1/namespaces/{namespace}/deployments"]["get"]["x-kubernetes-action"] == "list"
    scale = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["put"]
    assert scale["x-kubernetes-group-version-kind"]["kind"] == "Scale"


def test_merge_keys_and_list_types_are_published():
    schemas = openapi_v3("apps", "v1", KINDS)["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    surge = schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert surge["oneOf"] == [{"type": "integer"}, {"type": "string"}]


def test_custom_kind_is_rendered_from_its_schema():
    document = openapi_v3("example.com", "v1", [*KINDS, WIDGET])
    schema = document["components"]["schemas"]["com.example.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    spec = {**schema["properties"]["spec"], "properties": {**schema["properties"]["spec"]["properties"]}}
    port = spec["properties"].pop("port")
    assert port == {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    wanted = STRUCTURAL["properties"]["spec"]
    fields = {name: field for name, field in wanted["properties"].items() if name != "port"}
    assert spec == {**wanted, "properties": fields}
    assert schema["properties"]["metadata"]["allOf"][0]["$ref"].endswith("meta.v1.ObjectMeta")
    assert schema["required"] == ["spec"]
    patch = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert all("example.com" in path for path in document["paths"])


def test_version_2_omits_keywords_that_swagger_lacks():
    document = openapi_v2([*KINDS, WIDGET])
    spec = document["definitions"]["com.example.v1.Widget"]["properties"]["spec"]
    assert "oneOf" not in spec
    assert "not" not in spec.keys() - {"properties"}
    assert spec["properties"]["not"] == {"type": "string"}
    assert "nullable" not in spec["properties"]["mode"]
    assert document["swagger"] == "2.0"
    deployment = document["definitions"]["io.k8s.api.apps.v1.Deployment"]["properties"]
    assert "default" not in deployment["spec"]
    post = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"]
    assert post["parameters"][-1]["in"] == "body"
