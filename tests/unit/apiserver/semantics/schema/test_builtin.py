"""The committed OpenAPI definitions and their compiled schemas."""

import json

import pytest
from tools import generate_schema

from federation.apimachinery.errors import Bug
from federation.apiserver.semantics.kinds.builtin import builtin_kinds
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.apiserver.semantics.schema.model import INT_OR_STRING, LIST, QUANTITY, STRUCT, TIME


def at(schema, path):
    for step in path.split("."):
        schema = schema.items if step == "[]" else schema.child(step)
    return schema


DEPLOYMENT = builtin_schema("apps", "v1", "Deployment")


def test_committed_file_equals_the_generator_output():
    assert generate_schema.TARGET.read_text() == generate_schema.generate(), "run: python -m tools.generate_schema"


def test_every_served_kind_has_a_schema_and_a_list():
    for info in builtin_kinds():
        assert info.schema.kind == STRUCT
        assert builtin.definition_name(info.resource.group, info.resource.version, info.list_kind)


def test_every_reference_is_resolved():
    names = json.loads(generate_schema.TARGET.read_text()).keys()

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"].removeprefix(builtin.REF)
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    for name in names:
        assert set(references(builtin.definition(name))) <= names


@pytest.mark.parametrize(
    ("path", "keys", "strategy", "key"),
    [
        ("spec.template.spec.containers", ("name",), {"merge"}, "name"),
        ("spec.template.spec.containers.[].ports", ("containerPort", "protocol"), {"merge"}, "containerPort"),
        ("spec.template.spec.volumes", ("name",), {"merge", "retainKeys"}, "name"),
        (
            "spec.template.spec.topologySpreadConstraints",
            ("topologyKey", "whenUnsatisfiable"),
            {"merge"},
            "topologyKey",
        ),
        ("metadata.ownerReferences", ("uid",), {"merge"}, "uid"),
        ("status.conditions", ("type",), {"merge"}, "type"),
        ("spec.template.spec.tolerations", (), set(), ""),
    ],
)
def test_lists_have_merge_keys_and_strategies(path, keys, strategy, key):
    schema = at(DEPLOYMENT, path)
    assert schema.kind == LIST
    assert schema.list_map_keys == keys
    assert schema.patch_strategy == strategy
    assert schema.patch_merge_key == key
    assert schema.is_atomic is (not keys)


def test_fields_have_their_kind_and_format():
    assert at(DEPLOYMENT, "spec.strategy.rollingUpdate.maxSurge").kind == INT_OR_STRING
    assert at(DEPLOYMENT, "spec.template.spec.containers.[].resources.limits.cpu").kind == QUANTITY
    assert at(DEPLOYMENT, "metadata.creationTimestamp").kind == TIME
    assert at(DEPLOYMENT, "spec.replicas").format == "int32"
    assert at(DEPLOYMENT, "metadata.generation").format == "int64"
    assert at(DEPLOYMENT, "spec.selector").is_atomic
    assert at(DEPLOYMENT, "spec.strategy").by_value
    assert not at(DEPLOYMENT, "spec.strategy.rollingUpdate").by_value
    assert at(DEPLOYMENT, "spec.strategy").patch_strategy == {"retainKeys"}


def test_recursive_definition_compiles_to_a_cyclic_schema():
    crd = builtin_schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    schema = at(crd, "spec.versions.[].schema.openAPIV3Schema")
    assert at(schema, "properties.x.properties").additional.properties is schema.properties


def test_unknown_kind_is_a_bug():
    with pytest.raises(Bug):
        builtin_schema("apps", "v1", "Nothing")
