"""Conformance area: CustomResourceDefinition."""

from typing import Any

import pytest
from tests.conformance.apiserver.conftest import define
from tests.conformance.apiserver.objects import WIDGET_SCHEMA, a_definition, a_widget
from tests.support.definitions import a_large_definition, an_engine
from tests.support.rest import STRATEGIC, TABLE, Api, Refused, eventually, refused


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


def test_a_missing_required_field_is_invalid(api: Api, widgets: str, group: str) -> None:
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


@pytest.mark.every_store
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
    with refused(404):  # without a Status on a real server
        api.list(globals_)
    api.delete("customresourcedefinitions", f"globals.{group}")


def is_unknown(api: Api, plural: str) -> bool:
    try:
        api.list(plural)
    except Refused as error:
        return error.code == 404
    return False


@pytest.mark.every_store
def test_deleting_a_definition_removes_the_objects(api: Api, group: str) -> None:
    widgets = define(api, a_definition(group))
    api.create(widgets, a_widget(group))
    api.delete("customresourcedefinitions", f"widgets.{group}")
    api.wait_gone("customresourcedefinitions", f"widgets.{group}")
    eventually(lambda: is_unknown(api, widgets))  # a real server serves the kind a moment longer
    widgets = define(api, a_definition(group))
    assert api.names(widgets) == []
    api.delete("customresourcedefinitions", f"widgets.{group}")


@pytest.mark.every_store
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
    assert [resource["name"] for resource in resources] == ["widgets", "widgets/status", "widgets/scale"]
    assert resources[0]["shortNames"] == ["wid"]
    document = eventually(lambda: api.send("GET", "/openapi/v3").json()["paths"].get(f"apis/{group}/v1"))
    schemas = api.send("GET", document["serverRelativeURL"]).json()["components"]["schemas"]
    widget = next(schema for name, schema in schemas.items() if name.endswith(".Widget"))
    assert widget["properties"]["spec"]["properties"]["size"]["minimum"] == 1


def redefine(api: Api, group: str, change: Any, *, field: str, value: Any) -> None:
    """Change the schema of the widgets' spec and wait until it counts: a dry-run with `field: value` is refused."""
    name = f"widgets.{group}"
    definition = api.get("customresourcedefinitions", name)
    change(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
    api.update("customresourcedefinitions", definition)

    def counts() -> bool:
        try:
            api.create(f"{group}/v1/widgets", a_widget(group, "probe", **{field: value}), dryRun="All")
        except Refused:
            return True
        return False

    eventually(counts)


def test_an_old_object_is_shown_with_a_new_default(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] custom resource defaulting for requests and from storage works."""
    api.create(widgets, a_widget(group))

    def change(fields: dict) -> None:
        fields["shade"] = {"type": "string", "default": "dark", "enum": ["dark", "light"]}

    redefine(api, group, change, field="shade", value="none")
    assert api.get(widgets, "w")["spec"]["shade"] == "dark"
    assert api.list(widgets)["items"][0]["spec"]["shade"] == "dark"


def test_an_existing_violation_does_not_block_other_changes(api: Api, widgets: str, group: str) -> None:
    api.create(widgets, a_widget(group, size=9, parts=[{"name": "a", "count": 9}, {"name": "b", "count": 1}]))

    def change(fields: dict) -> None:
        fields["size"]["maximum"] = 5
        fields["parts"]["items"]["properties"]["count"]["maximum"] = 5

    redefine(api, group, change, field="size", value=6)
    changed = api.patch(widgets, "w", {"spec": {"color": "blue"}})
    assert (changed["spec"]["size"], changed["spec"]["color"]) == (9, "blue")
    changed["spec"]["parts"][1]["count"] = 2
    changed = api.update(widgets, changed)
    changed["spec"]["parts"][0]["count"] = 8
    with refused(422, "Invalid", "should be less than or equal to 5") as caught:
        api.update(widgets, changed)
    assert caught.value.fields == ["spec.parts[0].count"]
    with refused(422, "Invalid", "spec.size"):
        api.patch(widgets, "w", {"spec": {"size": 8}})


@pytest.mark.parametrize(
    ("field", "path", "text"),
    [
        ({}, "type", "Required value: must not be empty for specified object fields"),
        ({"type": "array"}, "items", "Required value: must be specified"),
        ({"type": "string", "nullable": False, "default": 1}, "default", 'must be of type string: "integer"'),
        ({"type": "string", "anyOf": [{"type": "string"}]}, "anyOf[0].type", "Forbidden: must be empty to be structural"),
        ({"$ref": "#/definitions/a"}, "$ref", "Forbidden: $ref is not supported"),
        ({"type": "string", "pattern": "(?!a)"}, "pattern", "must be a valid regular expression, but isn't"),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            "uniqueItems",
            "Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
            "x-kubernetes-list-map-keys",
            "Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            "additionalProperties",
            "Forbidden: additionalProperties and properties are mutual exclusive",
        ),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_structural_is_refused(api: Api, group: str, field: dict, path: str, text: str) -> None:
    definition = a_definition(group)
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    with refused(422, "Invalid", text) as caught:
        api.create("customresourcedefinitions", definition)
    assert f"spec.validation.openAPIV3Schema.properties[spec].properties[f].{path}" in caught.value.fields


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("self.", "Syntax error"),
        ("self.tags.all(a, self.tags.exists(b, a == b))", "estimated rule cost exceeds budget by factor of"),
        ("self.tags.exists(t, t.nope == 1)", "type 'string' does not support field selection"),
        ("self.nope == 1", "undefined field 'nope'"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(api: Api, group: str, rule: str, text: str) -> None:
    """[sig-api-machinery] CustomResourceValidationRules MUST fail create of a CRD with a rule that is not valid."""
    definition = a_definition(group)
    tags = {"type": "array", "items": {"type": "string"}}
    spec = {"type": "object", "properties": {"tags": tags}, "x-kubernetes-validations": [{"rule": rule}]}
    schema = {"type": "object", "properties": {"spec": spec}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    with refused(422, "Invalid", text):
        api.create("customresourcedefinitions", definition)


def test_rules_are_checked_on_every_write(api: Api, group: str) -> None:
    """[sig-api-machinery] CustomResourceValidationRules MUST enforce rules, also those that compare with oldSelf."""
    definition = a_definition(group)
    rules = [
        {"rule": "!has(self.limit) || self.size <= self.limit", "messageExpression": "'too large for ' + self.color"},
        {"rule": "self.color == oldSelf.color", "message": "is immutable", "fieldPath": ".color"},
        {
            "rule": "!oldSelf.hasValue() || self.size >= oldSelf.value().size",
            "optionalOldSelf": True,
            "reason": "FieldValueForbidden",
            "message": "may only grow",
            "fieldPath": ".size",
        },
    ]
    fields = {"size": {"type": "integer"}, "limit": {"type": "integer"}, "color": {"type": "string", "maxLength": 9}}
    spec = {"type": "object", "properties": fields, "x-kubernetes-validations": rules}
    schema = {"type": "object", "properties": {"spec": spec}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    widgets = define(api, definition)
    with refused(422, "Invalid", "too large for red"):
        api.create(widgets, a_widget(group, size=4, limit=3, color="red"))
    api.create(widgets, a_widget(group, size=2, limit=3, color="red"))
    with refused(422, "Invalid", "spec.color: Invalid value"):
        api.patch(widgets, "w", {"spec": {"color": "blue"}})
    with refused(422, "Invalid", "spec.size: Forbidden: may only grow"):
        api.patch(widgets, "w", {"spec": {"size": 1}})
    assert api.patch(widgets, "w", {"spec": {"size": 3}})["spec"]["size"] == 3
    api.delete("customresourcedefinitions", f"widgets.{group}")


def test_objects_are_selected_by_the_fields_that_a_definition_names(api: Api, group: str) -> None:
    """[sig-api-machinery] CustomResourceFieldSelectors MUST list and watch custom resources matching the field selector."""
    widgets = define(api, a_definition(group, selectableFields=[{"jsonPath": ".spec.color"}]))
    for name, color in (("r", "red"), ("b", "blue")):
        api.create(widgets, a_widget(group, name, color=color))
    assert api.names(widgets, fieldSelector="spec.color=blue") == ["b"]
    with refused(400, "BadRequest", "field label not supported: spec.size"):
        api.list(widgets, fieldSelector="spec.size=3")
    start = api.list(widgets)["metadata"]["resourceVersion"]
    with api.watch(widgets, resourceVersion=start, fieldSelector="spec.color=blue") as watch:
        api.patch(widgets, "r", {"spec": {"color": "blue"}})
        api.patch(widgets, "b", {"spec": {"color": "red"}})
        assert watch.said(2) == [("ADDED", "r"), ("DELETED", "b")]
    api.delete("customresourcedefinitions", f"widgets.{group}")


def test_a_stored_version_cannot_be_dropped(api: Api, group: str) -> None:
    definition = a_definition(group)
    second = {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": WIDGET_SCHEMA}}
    definition["spec"]["versions"].append(second)
    define(api, definition)
    name = f"widgets.{group}"
    eventually(lambda: api.get("customresourcedefinitions", name)["status"].get("acceptedNames", {}).get("kind"))
    found = api.get("customresourcedefinitions", name)
    found["spec"]["versions"] = [{**found["spec"]["versions"][1], "storage": True}]
    with refused(422, "Invalid", "v1 was previously a storage version, and must remain in spec.versions"):
        api.update("customresourcedefinitions", found)
    api.delete("customresourcedefinitions", name)


@pytest.mark.every_store
def test_a_large_definition_is_served_as_a_small_one_is(api: Api, group: str) -> None:
    engines = define(api, a_large_definition(group))
    document = eventually(lambda: api.send("GET", "/openapi/v3").json()["paths"].get(f"apis/{group}/v1"))
    schemas = api.send("GET", document["serverRelativeURL"]).json()["components"]["schemas"]
    spec = next(schema for name, schema in schemas.items() if name.endswith(".Engine"))["properties"]["spec"]
    template = spec["properties"]["components"]["properties"]["part0"]["properties"]["template"]
    assert "affinity" in template["properties"]["spec"]["properties"]
    made = api.create(engines, an_engine(group))
    assert made["spec"]["replicas"] == 1
    assert eventually(lambda: api.get(f"{group}/v1beta1/engines", "e"))["spec"] == made["spec"]
    broken = an_engine(group, "f")
    container = broken["spec"]["components"]["part0"]["template"]["spec"]["containers"][0]
    container["ports"][0]["containerPort"] = "http"
    with refused(422, "Invalid", 'must be of type integer: "string"') as caught:
        api.create(engines, broken)
    at = "spec.components.part0.template.spec.containers[0].ports[0].containerPort"
    assert caught.value.fields[0] == at
    with refused(422, "Invalid", "mode is immutable"):
        api.patch(engines, "e", {"spec": {"mode": "Safe"}})
    with refused(400, "BadRequest", 'unknown field "spec.components.part0.template.spec.containers[0].imagee"'):
        container |= {"imagee": "x", "ports": []}
        api.create(engines, broken, fieldValidation="Strict")
    api.delete("customresourcedefinitions", f"engines.{group}")
