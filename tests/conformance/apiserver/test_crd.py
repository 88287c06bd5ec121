"""Conformance area: CustomResourceDefinition."""

from typing import Any

import pytest
from tests.conformance.apiserver.conftest import define
from tests.conformance.apiserver.objects import WIDGET_SCHEMA, a_definition, a_widget
from tests.support.rest import STRATEGIC, TABLE, Api, eventually, refused


def test_a_definition_becomes_established(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] CustomResourceDefinition resources should be possible to create and be established."""
    status = api.get("customresourcedefinitions", f"widgets.{group}")["status"]
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    assert status["acceptedNames"]["kind"] == "Widget"
    assert status["storedVersions"] == ["v1"]


def test_defaults_are_filled_in(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] custom resource defaulting for requests and from storage works."""
    assert api.create(widgets, a_widget(group))["spec"] == {"size": 3, "color": "red"}


def test_unknown_fields_are_pruned(api: Api, widgets: str, group: str) -> None:
    assert "nonsense" not in api.create(widgets, a_widget(group, nonsense=1))["spec"]


def test_unknown_fields_are_kept_where_the_schema_says_so(api: Api, widgets: str, group: str) -> None:
    free = {"a": {"b": [1, "2", None, 2.5]}}
    assert api.create(widgets, a_widget(group, free=free))["spec"]["free"] == free


def test_strict_validation_names_the_unknown_field(api: Api, widgets: str, group: str) -> None:
    with refused(400, "BadRequest", 'strict decoding error: unknown field "spec.nonsense"'):
        api.create(widgets, a_widget(group, nonsense=1), fieldValidation="Strict")


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        ({"size": 0}, "spec.size", "should be greater than or equal to 1"),
        ({"size": 101}, "spec.size", "should be less than or equal to 100"),
        ({"size": "3"}, "spec.size", "must be of type integer"),
        ({"color": "green"}, "spec.color", 'Unsupported value: "green"'),
        ({"code": "A"}, "spec.code", "should match '^[a-z]+$'"),
        ({"code": "abcdef"}, "spec.code", "Too long: may not be more than 5"),
        ({"port": True}, "spec.port", "must be"),
        ({"parts": [{"count": 1}]}, "spec.parts[0].name", "Required value"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, "spec.parts[1]", "Duplicate value"),
        ({"tags": ["a", "a"]}, "spec.tags[1]", "Duplicate value"),
    ],
)
def test_values_are_validated(api: Api, widgets: str, group: str, spec: dict, field: str, text: str) -> None:
    with refused(422, "Invalid", text) as caught:
        api.create(widgets, a_widget(group, **spec))
    assert field in caught.value.fields


def test_a_required_field_is_asked_for(api: Api, widgets: str, group: str) -> None:
    with refused(422, "Invalid", "spec.size: Required value"):
        api.create(widgets, {**a_widget(group), "spec": {"color": "red"}})


def test_integers_or_strings_are_taken(api: Api, widgets: str, group: str) -> None:
    for name, port in (("a", 80), ("b", "http")):
        assert api.create(widgets, a_widget(group, name, port=port))["spec"]["port"] == port


def test_null_is_kept_where_it_may_be(api: Api, widgets: str, group: str) -> None:
    assert api.create(widgets, a_widget(group, nullable=None))["spec"]["nullable"] is None


def test_apply_merges_by_the_schemas_keys(api: Api, widgets: str, group: str) -> None:
    api.apply(widgets, a_widget(group, parts=[{"name": "a", "count": 1}], tags=["x"]))
    both = api.apply(widgets, a_widget(group, parts=[{"name": "b"}], tags=["y"]), "two")
    assert [part["name"] for part in both["spec"]["parts"]] == ["a", "b"]
    assert sorted(both["spec"]["tags"]) == ["x", "y"]


def test_a_strategic_patch_is_not_supported(api: Api, widgets: str, group: str) -> None:
    api.create(widgets, a_widget(group))
    with refused(415, "UnsupportedMediaType"):
        api.patch(widgets, "w", {"spec": {"size": 4}}, type_=STRATEGIC)


def test_an_update_needs_a_revision(api: Api, widgets: str, group: str) -> None:
    api.create(widgets, a_widget(group))
    with refused(422, "Invalid", "must be specified for an update"):
        api.update(widgets, a_widget(group, size=4))


def test_the_generation_counts_changes_of_the_spec(api: Api, widgets: str, group: str) -> None:
    assert api.create(widgets, a_widget(group))["metadata"]["generation"] == 1
    assert api.patch(widgets, "w", {"spec": {"size": 4}})["metadata"]["generation"] == 2
    assert api.patch(widgets, "w", {"status": {"replicas": 1}}, "status")["metadata"]["generation"] == 2
    assert api.patch(widgets, "w", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 2


def test_status_is_apart(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] Simple CustomResourceDefinition getting/updating/patching status works."""
    created = api.create(widgets, {**a_widget(group), "status": {"replicas": 9}})
    assert "status" not in created
    answer = api.patch(widgets, "w", {"spec": {"size": 9}, "status": {"replicas": 2}}, "status")
    assert (answer["spec"]["size"], answer["status"]) == (3, {"replicas": 2})
    assert api.get(widgets, "w", "status")["status"] == {"replicas": 2}


def test_custom_objects_scale(api: Api, widgets: str, group: str) -> None:
    api.create(widgets, a_widget(group, replicas=2))
    api.patch(widgets, "w", {"status": {"replicas": 1, "selector": "a=b"}}, "status")
    scale = api.get(widgets, "w", "scale")
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]) == (
        "Scale", 2, {"replicas": 1, "selector": "a=b"},
    )  # fmt: skip
    api.patch(widgets, "w", {"spec": {"replicas": 5}}, "scale")
    assert api.get(widgets, "w")["spec"]["replicas"] == 5


def test_columns_are_printed(api: Api, widgets: str, group: str) -> None:
    api.create(widgets, a_widget(group))
    table = api.list(widgets, accept=TABLE)
    assert [(c["name"], c["priority"]) for c in table["columnDefinitions"]] == [("Name", 0), ("Size", 0), ("Color", 1)]
    assert table["rows"][0]["cells"] == ["w", 3, "red"]


def test_a_second_version_shows_the_same_objects(api: Api, group: str) -> None:
    definition = a_definition(group)
    second = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": WIDGET_SCHEMA}}
    definition["spec"]["versions"].append(second)
    widgets = define(api, definition)
    created = api.create(widgets, a_widget(group))
    shown = eventually(lambda: api.get(f"{group}/v2/widgets", "w"))
    assert shown["apiVersion"] == f"{group}/v2"
    assert shown["metadata"]["uid"] == created["metadata"]["uid"]
    api.delete("customresourcedefinitions", f"widgets.{group}")


def test_cluster_scoped_kinds_have_no_namespace(api: Api, group: str) -> None:
    globals_ = define(api, a_definition(group, "globals", "Global", "Cluster"))
    url = api.url(globals_, namespace="")
    body = {**a_widget(group), "kind": "Global"}
    created = api.send("POST", url, body).json()
    assert "namespace" not in created["metadata"]
    with refused(404, "NotFound"):
        api.list(globals_)
    api.delete("customresourcedefinitions", f"globals.{group}")


def test_deleting_a_definition_removes_the_objects(api: Api, group: str) -> None:
    widgets = define(api, a_definition(group))
    api.create(widgets, a_widget(group))
    api.delete("customresourcedefinitions", f"widgets.{group}")
    api.wait_gone("customresourcedefinitions", f"widgets.{group}")
    with refused(404):
        api.list(widgets)
    widgets = define(api, a_definition(group))
    assert api.names(widgets) == []
    api.delete("customresourcedefinitions", f"widgets.{group}")


def test_custom_objects_are_watched(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] CustomResourceDefinition Watch on custom resource definition objects."""
    with api.watch(widgets, resourceVersion=api.list(widgets)["metadata"]["resourceVersion"]) as watch:
        api.create(widgets, a_widget(group))
        api.delete(widgets, "w")
        assert watch.said(2) == [("ADDED", "w"), ("DELETED", "w")]


def change(path: str, value: Any) -> Any:
    def apply(definition: dict) -> None:
        target = definition
        *parents, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
        for part in parents:
            target = target[part]
        target[last] = value

    return apply


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (change("metadata/name", "wrong.name"), "metadata.name"),
        (change("spec/versions/0/storage", False), "spec.versions"),
        (change("spec/scope", "Galaxy"), "spec.scope"),
        (change("spec/versions/0/schema", {}), "spec.versions[0].schema.openAPIV3Schema"),
    ],
)
def test_a_broken_definition_is_invalid(api: Api, group: str, broken: Any, field: str) -> None:
    definition = a_definition(group)
    broken(definition)
    with refused(422, "Invalid") as caught:
        api.create("customresourcedefinitions", definition)
    assert any(found.startswith(field) for found in caught.value.fields), caught.value


def test_definitions_are_found_in_discovery_and_openapi(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] CustomResourcePublishOpenAPI works for CRD with validation schema."""
    resources = api.send("GET", f"/apis/{group}/v1").json()["resources"]
    assert [resource["name"] for resource in resources] == ["widgets", "widgets/scale", "widgets/status"]
    assert resources[0]["shortNames"] == ["wid"]
    document = eventually(lambda: api.send("GET", "/openapi/v3").json()["paths"].get(f"apis/{group}/v1"))
    schemas = api.send("GET", document["serverRelativeURL"]).json()["components"]["schemas"]
    widget = next(schema for name, schema in schemas.items() if name.endswith(".Widget"))
    assert widget["properties"]["spec"]["properties"]["size"]["minimum"] == 1
