"""Errors that Kubernetes reports for the schema of a CustomResourceDefinition: field and text."""

from typing import Any

import pytest

from federation.apimachinery.errors import BadRequest
from federation.apiserver.semantics.crd.schemavalidation import schema_checks

AT = "spec.validation.openAPIV3Schema"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
RULES = "x-kubernetes-validations"


def problems(schema: dict[str, Any], **version: Any) -> list[str]:
    found = [
        cause for check in schema_checks({"schema": {"openAPIV3Schema": schema}, **version}, AT) for cause in check()
    ]
    return [f"{cause['field'].removeprefix(AT).removeprefix('.')}: {cause['message']}" for cause in found]


def a_schema(field: dict[str, Any], **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": field}, **root}


def keyed(item: dict[str, Any], keys: list[str] | None = None) -> dict[str, Any]:
    return {"type": "array", LIST_TYPE: "map", LIST_KEYS: ["k"] if keys is None else keys, "items": item}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string", "default": "a", "enum": ["a", "b"]},
        {INT_OR_STRING: True},
        {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%?$"},
        {INT_OR_STRING: True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"minimum": 1}]},
        {PRESERVE: True},
        {"type": "object", PRESERVE: True, EMBEDDED: True},
        {"type": "object", EMBEDDED: True, "properties": {"metadata": {"type": "object"}, "spec": {PRESERVE: True}}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "additionalProperties": True, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "not": {"properties": {"a": {"enum": ["x"]}}}},
        keyed({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}),
        keyed({"type": "object", "properties": {"k": {"type": "string", "default": "a"}}}),
        {"type": "array", LIST_TYPE: "set", "items": {"type": "string"}},
        {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}}},
        {"type": "string", RULES: [{"rule": "self != ''", "reason": "FieldValueForbidden", "message": "no"}]},
    ],
)
def test_structural_schemas_are_accepted(field: dict) -> None:
    assert problems(a_schema(field), subresources={"status": {}}) == []


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({}, ["properties[f].type: Required value: must not be empty for specified object fields"]),
        ({"type": "array"}, ["properties[f].items: Required value: must be specified"]),
        (
            {"type": "array", "items": {}},
            ["properties[f].items.type: Required value: must not be empty for specified array items"],
        ),
        (
            {"type": "object", EMBEDDED: True},
            [
                f"properties[f].properties: Required value: must not be empty if {EMBEDDED} is true without {PRESERVE}",
            ],
        ),
        (
            {"type": "string", EMBEDDED: True, PRESERVE: True},
            [f'properties[f].type: Invalid value: "string": must be object if {EMBEDDED} is true'],
        ),
        (
            {INT_OR_STRING: True, PRESERVE: True},
            [f"properties[f].{PRESERVE}: Invalid value: true: must be false if {INT_OR_STRING} is true"],
        ),
        (
            {"type": "string", "pattern": "(?!a)"},
            [
                ('properties[f].pattern: Invalid value: "(?!a)": must be a valid regular expression, but isn\'t: error'
                " parsing regexp: invalid or unsupported Perl syntax: `(?!`")
            ],
        ),
        (
            {"type": "string", "anyOf": [{"type": "string", "description": "x", "nullable": True}]},
            [
                "properties[f].anyOf[0].description: Forbidden: must be empty to be structural",
                "properties[f].anyOf[0].nullable: Forbidden: must be false to be structural",
                "properties[f].anyOf[0].type: Forbidden: must be empty to be structural",
            ],
        ),
        (
            {"type": "object", "not": {"default": {}, "additionalProperties": {}, "properties": {"metadata": {}}}},
            [
                "properties[f].not.additionalProperties: Forbidden: must be undefined to be structural",
                "properties[f].not.default: Forbidden: must be undefined to be structural",
                "properties[f].not.properties[metadata]: Forbidden: must not be specified in a nested context",
                ("properties[f].not.additionalProperties: Forbidden: additionalProperties and properties are mutual"
                " exclusive"),
            ],
        ),
        (
            {"type": "text"},
            [
                ('properties[f].type: Unsupported value: "text": supported values: "array", "boolean", "integer",'
                ' "number", "object", "string"')
            ],
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            [
                ("properties[f].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity"
                " becomes quadratic")
            ],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            [
                ("properties[f].additionalProperties: Forbidden: additionalProperties and properties are mutual"
                " exclusive")
            ],
        ),
        ({"$ref": "#/x"}, ["properties[f].$ref: Forbidden: $ref is not supported"]),
        (
            {"type": "object", "definitions": {"a": {}}, "dependencies": {"a": ["b"]}},
            [
                "properties[f].definitions: Forbidden: definitions is not supported",
                "properties[f].dependencies: Forbidden: dependencies is not supported",
            ],
        ),
        (
            {"type": "object", PRESERVE: False},
            [f"properties[f].{PRESERVE}: Invalid value: false: must be true or undefined"],
        ),
        (
            {"type": "array", "items": [{"type": "string"}]},
            ["properties[f].items: Forbidden: items must be a schema object and not an array"],
        ),
        (
            {"type": "string", LIST_TYPE: "set"},
            [f'properties[f].type: Invalid value: "string": must be array if {LIST_TYPE} is specified'],
        ),
        (
            {"type": "array", LIST_TYPE: "bag", "items": {"type": "string"}},
            [f'properties[f].{LIST_TYPE}: Unsupported value: "bag": supported values: "atomic", "set", "map"'],
        ),
        (
            {"type": "array", LIST_TYPE: "set", "items": {"type": "object"}},
            [
                ('properties[f].items.x-kubernetes-map-type: Invalid value: "null": must be atomic as item of a list with'
                f" {LIST_TYPE}=set")
            ],
        ),
        (
            {"type": "array", LIST_KEYS: ["k"], "items": {"type": "string"}},
            [f"properties[f].{LIST_TYPE}: Required value: must be map if {LIST_KEYS} is non-empty"],
        ),
        (
            keyed({"type": "object", "properties": {"k": {"type": "string", "nullable": True}}}),
            [
                (f"properties[f].items.properties[k].default: Required value: this property is in {LIST_KEYS}, so it"
                " must have a default or be a required property"),
                (f"properties[f].items.properties[k].nullable: Forbidden: this property is in {LIST_KEYS}, so it cannot"
                " be nullable"),
            ],
        ),
        (
            keyed({"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}, ["k", "other"]),
            [
                f'properties[f].{LIST_KEYS}: Invalid value: []string{{"k", "other"}}: entries must all be names of item properties',
            ],
        ),
        (
            keyed({"type": "object", "properties": {}}, []),
            [f"properties[f].{LIST_KEYS}: Required value: must not be empty if {LIST_TYPE} is map"],
        ),
        (
            {"type": "integer", "default": "one"},
            [
                'properties[f].default: Invalid value: "string":  in body must be of type integer: "string"',
            ],
        ),
        (
            {"type": "object", "default": {"a": 1}, "properties": {"b": {"type": "integer"}}},
            ['properties[f].default: Invalid value: map[string]interface {}{"a":1}: must not have unknown fields'],
        ),
        (
            {"type": "string", "default": "", RULES: [{"rule": "self.size() > 0", "message": "empty"}]},
            ['properties[f].default: Invalid value: "string": empty'],
        ),
        (
            {
                "type": "array",
                "maxItems": 9,
                "items": {"type": "string", "maxLength": 9, RULES: [{"rule": "self == oldSelf"}]},
            },
            [
                (f'properties[f].items.{RULES}[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the'
                f" uncorrelatable portion of the schema within {AT}.properties[f]")
            ],
        ),
        (
            {"type": "string", RULES: [{"rule": "self == 'a'", "optionalOldSelf": True}]},
            [
                (f"properties[f].{RULES}[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used"
                " in rule")
            ],
        ),
        (
            {"type": "object", RULES: [{"rule": "true", "reason": "Odd", "fieldPath": ".a", "message": "a\nb"}]},
            [
                f'properties[f].{RULES}[0].message: Invalid value: "a\\nb": message must not contain line breaks',
                (f'properties[f].{RULES}[0].reason: Unsupported value: "Odd": supported values: "FieldValueDuplicate",'
                ' "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"'),
                f'properties[f].{RULES}[0].fieldPath: Invalid value: ".a": fieldPath must be a valid path',
            ],
        ),
        (
            {"type": "object", RULES: [{"rule": " ", "messageExpression": " "}, {"rule": "1 == 1\n|| true"}]},
            [
                f"properties[f].{RULES}[0].rule: Required value: rule is not specified",
                (f"properties[f].{RULES}[0].messageExpression: Required value: messageExpression must be non-empty if"
                " specified"),
                (f"properties[f].{RULES}[1].message: Required value: message must be specified if rule contains line"
                " breaks"),
            ],
        ),
    ],
)  # fmt: skip
def test_non_structural_schema_is_reported_with_field_and_text(field: dict, expected: list[str]) -> None:
    assert problems(a_schema(field)) == expected


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ({}, ["type: Required value: must not be empty at the root"]),
        ({"type": "string"}, ['type: Invalid value: "string": must be object at the root']),
        ({"type": "object", "nullable": True}, ["nullable: Forbidden: nullable cannot be true at the root"]),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            ["additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            {"type": "object", "properties": {"metadata": {"type": "object", "required": ["labels"]}}},
            [
                (
                    "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but"
                    " metadata is implicitly specified"
                )
            ],
        ),
        (
            {"type": "object", "properties": {"kind": {"type": "integer"}}},
            ['properties[kind].type: Invalid value: "integer": must be string'],
        ),
        (
            {"type": "object", "properties": {"kind": {"type": "string", "default": "A"}}},
            ["properties[kind].default: Forbidden: must not be set in top-level kind"],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"b": {}}}]},
            [f"properties[b]: Required value: because it is defined in {AT}.anyOf[0].properties[b]"],
        ),
    ],
)
def test_root_of_a_schema_is_restricted(root: dict, expected: list[str]) -> None:
    assert problems(root) == expected


def test_status_subresource_restricts_the_root_further() -> None:
    (found,) = problems({"type": "object", "minProperties": 1}, subresources={"status": {}})
    assert "are allowed at the root of the schema if the status subresource is enabled" in found
    assert problems({"type": "object", "minProperties": 1}) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "object", "properties": {"f": []}},
        {"type": "array", "items": {"properties": 1}},
        {"type": "object", "properties": {"f": {"maximum": "1"}}},
        {"type": "object", RULES: ["true"]},
        {"type": "object", "anyOf": ["a"]},
    ],
)
def test_malformed_schema_is_a_bad_request(broken: dict) -> None:
    with pytest.raises(BadRequest):
        problems(broken)
