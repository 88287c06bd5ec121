"""Validation, pruning and defaulting of custom resources and of built-in kinds."""

import copy

import pytest

from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.schema.builtin import builtin_schema
from federation.apiserver.semantics.schema.defaulting import apply_defaults, prune
from federation.apiserver.semantics.schema.validation import conforms, decode_errors, validate

DEPLOYMENT = builtin_schema("apps", "v1", "Deployment")


def schema_of(**spec):
    return from_openapi({"type": "object", "properties": {"spec": spec}})


def causes_of(schema, value):
    obj = {"apiVersion": "g/v1", "kind": "X", "metadata": {"name": "x"}, "spec": value}
    found = validate(schema, obj)
    assert conforms(schema, obj) is (not found)
    return [(cause["reason"].removeprefix("FieldValue"), cause["field"], cause["message"]) for cause in found]


@pytest.mark.parametrize(
    ("spec", "value", "reason", "message"),
    [
        ({"type": "integer"}, "a", "TypeInvalid", 'Invalid value: "string": spec in body must be of type integer: "string"'),
        ({"type": "integer"}, 2**63, "TypeInvalid", 'Invalid value: "number": spec in body must be of type integer: "number"'),
        ({"type": "integer"}, 1.5, "TypeInvalid", 'Invalid value: "number": spec in body must be of type integer: "number"'),
        ({"type": "string"}, None, "TypeInvalid", 'Invalid value: "null": spec in body must be of type string: "null"'),
        ({"type": "array", "items": {}}, {}, "TypeInvalid", 'Invalid value: "object": spec in body must be of type array: "object"'),
        ({"type": "boolean"}, 1, "TypeInvalid", 'Invalid value: "integer": spec in body must be of type boolean: "integer"'),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            "TypeInvalid",
            'Invalid value: "boolean": spec in body must be of type integer,string: "boolean"',
        ),
        ({"type": "integer", "minimum": 0}, -1, "Invalid", "Invalid value: -1: spec in body should be greater than or equal to 0"),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 0, "Invalid", "Invalid value: 0: spec in body should be greater than 0"),
        ({"type": "integer", "maximum": 9}, 10, "Invalid", "Invalid value: 10: spec in body should be less than or equal to 9"),
        ({"type": "number", "maximum": 1.5, "exclusiveMaximum": True}, 1.5, "Invalid", "Invalid value: 1.5: spec in body should be less than 1.5"),
        ({"type": "integer", "multipleOf": 5}, 7, "Invalid", "Invalid value: 7: spec in body should be a multiple of 5"),
        ({"type": "string", "enum": ["a", "b"]}, "c", "NotSupported", 'Unsupported value: "c": supported values: "a", "b"'),
        ({"type": "string", "pattern": "^a+$"}, "b", "Invalid", "Invalid value: \"b\": spec in body should match '^a+$'"),
        ({"type": "string", "minLength": 2}, "b", "Invalid", 'Invalid value: "b": spec in body should be at least 2 chars long'),
        ({"type": "string", "maxLength": 1}, "bb", "TooLong", "Too long: may not be more than 1 bytes"),
        ({"type": "string", "format": "date-time"}, "x", "TypeInvalid", 'Invalid value: "x": spec in body must be of type date-time: "x"'),
        ({"type": "array", "items": {}, "minItems": 1}, [], "Invalid", "Invalid value: []: spec in body should have at least 1 items"),
        ({"type": "array", "items": {}, "maxItems": 1}, [1, 2], "TooMany", "Too many: 2: must have at most 1 items"),
        ({"type": "array", "items": {}, "uniqueItems": True}, [1, 1], "Invalid", "Invalid value: [1,1]: spec in body shouldn't contain duplicates"),
        ({"type": "object", "additionalProperties": True, "minProperties": 1}, {}, "Invalid", "Invalid value: {}: spec in body should have at least 1 properties"),
        ({"type": "object", "additionalProperties": True, "maxProperties": 0}, {"a": 1}, "TooMany", "Too many: 1: must have at most 0 items"),
        ({"type": "object", "not": {"required": ["a"]}, "properties": {"a": {"type": "string"}}}, {"a": "b"}, "Invalid", 'Invalid value: "": "spec" must not validate the schema (not)'),
    ],
)  # fmt: skip
def test_custom_resources_fail_in_kubernetes_words(spec, value, reason, message):
    assert causes_of(schema_of(**spec), value) == [(reason, "spec", message)]


def test_causes_name_the_field_path():
    schema = schema_of(
        type="object",
        required=["a"],
        properties={
            "a": {"type": "string"},
            "l": {
                "type": "array",
                "items": {"type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}}},
            },
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    )
    found = causes_of(schema, {"l": [{"x": 1}, {}], "m": {"k": "v"}})
    assert [(reason, field) for reason, field, _ in found] == [
        ("Required", "spec.a"),
        ("Required", "spec.l[1].x"),
        ("TypeInvalid", "spec.m.k"),
    ]


def test_any_of_one_of_and_not():
    one = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    schema = schema_of(**one, oneOf=[{"required": ["a"]}, {"required": ["b"]}])
    assert causes_of(schema, {"a": "x"}) == []
    text = 'Invalid value: "": "spec" must validate one and only one schema (oneOf). Found '
    assert causes_of(schema, {})[0] == ("Invalid", "spec", text + "none valid")
    assert causes_of(schema, {"a": "x", "b": "y"}) == [("Invalid", "spec", text + "2 valid alternatives")]
    either = schema_of(**one, anyOf=[{"required": ["a"]}, {"required": ["b"]}])
    assert causes_of(either, {})[0][2].endswith("must validate at least one schema (anyOf)")
    both = schema_of(**one, allOf=[{"required": ["a"]}, {"properties": {"b": {"minLength": 2}}}])
    assert [field for _, field, _ in causes_of(both, {"b": "x"})] == ["spec.a", "spec.b"]


def test_items_with_equal_keys_are_duplicates():
    items = {"type": "object", "properties": {"k": {"type": "string"}, "p": {"type": "string", "default": "TCP"}}}
    keyed = schema_of(
        type="array", items=items, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"]}
    )
    assert causes_of(keyed, [{"k": "a"}, {"k": "b"}, {"k": "a", "p": "TCP"}]) == [
        ("Duplicate", "spec[2]", 'Duplicate value: {"k":"a","p":"TCP"}')
    ]
    unique = schema_of(type="array", items={"type": "string"}, **{"x-kubernetes-list-type": "set"})
    assert causes_of(unique, ["a", "a"]) == [("Duplicate", "spec[1]", 'Duplicate value: "a"')]


def test_embedded_resource_requires_and_keeps_api_version_and_kind():
    schema = schema_of(
        type="object", **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    )
    assert [field for _, field, _ in causes_of(schema, {"kind": "Pod"})] == ["spec.apiVersion"]
    assert causes_of(schema, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}}) == []
    assert prune(schema, {"spec": {"metadata": {"nam": "x"}, "what": 1}}) == ["spec.metadata.nam"]


def test_nullable_and_untyped_fields_accept_null():
    assert causes_of(schema_of(type="string", nullable=True), None) == []
    assert causes_of(schema_of(**{"x-kubernetes-preserve-unknown-fields": True}), None) == []
    assert causes_of(schema_of(type="integer"), 3.0) == []


def test_unknown_fields_are_pruned_unless_preserved():
    schema = schema_of(
        type="object",
        properties={
            "a": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "l": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            "m": {
                "type": "object",
                "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}},
            },
        },
    )
    obj = {
        "metadata": {"name": "x"},
        "spec": {"a": {"any": {"thing": 1}}, "l": [{"x": "1", "y": 2}], "m": {"k": {"z": 1}}, "b": 1},
        "more": 1,
    }
    found = ["more", "spec.b", "spec.l[0].y", "spec.m.k.z"]
    assert prune(schema, obj) == found
    assert obj == {"metadata": {"name": "x"}, "spec": {"a": {"any": {"thing": 1}}, "l": [{"x": "1"}], "m": {"k": {}}}}
    assert prune(schema, obj) == []


def test_defaults_fill_absent_fields_and_replace_nulls_of_fields_that_are_not_nullable():
    schema = schema_of(
        type="object",
        default={},
        properties={
            "mode": {"type": "string", "default": "A"},
            "deep": {
                "type": "object",
                "default": {"x": {}},
                "properties": {"x": {"type": "object", "properties": {"y": {"type": "integer", "default": 1}}}},
            },
            "gone": {"type": "string"},
            "kept": {"type": "string", "nullable": True},
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}},
            },
        },
    )
    obj = {"kind": "X"}
    apply_defaults(schema, obj)
    assert obj == {"kind": "X", "spec": {"mode": "A", "deep": {"x": {"y": 1}}}}
    obj["spec"] = {"mode": None, "gone": None, "kept": None, "deep": {}, "list": [{}, {"p": "UDP"}]}
    apply_defaults(schema, obj)
    assert obj["spec"] == {"mode": "A", "kept": None, "deep": {}, "list": [{"p": "TCP"}, {"p": "UDP"}]}
    again = copy.deepcopy(obj)
    apply_defaults(schema, again)
    assert again == obj


def test_crd_without_schema_accepts_every_object():
    schema = from_openapi(None)
    assert causes_of(schema, {"a": [None]}) == []
    assert prune(schema, {"x": 1, "metadata": {"name": "a"}}) == []


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("spec.replicas", "3", "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("spec.replicas", 2**31, "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("spec.replicas", 1.5, "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ("spec.paused", "yes", "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.paused of type bool"),
        ("metadata.labels", {"a": 1}, "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"),
        ("metadata.labels", [], "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string"),
        ("metadata.finalizers", "a", "json: cannot unmarshal string into Go struct field ObjectMeta.metadata.finalizers of type []string"),
        ("spec", [], "json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        ("metadata.creationTimestamp", "noon", 'parsing time "noon" as "2006-01-02T15:04:05Z07:00": cannot parse "noon" as "2006"'),
    ],
)  # fmt: skip
def test_wrong_types_of_built_in_kinds_have_the_text_of_gos_decoder(path, value, text):
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    *way, last = path.split(".")
    place = obj
    for step in way:
        place = place.setdefault(step, {})
    place[last] = value
    assert decode_errors(DEPLOYMENT, obj) == [text]


@pytest.mark.parametrize(
    ("text", "rest", "part"),
    [
        ("2024-01-0", "0", "02"),
        ("2024-1-01T00:00:00Z", "1-01T00:00:00Z", "01"),
        ("2024-01-01T00:00:xZ", "xZ", "05"),
        ("2024-01-01T00:00:00", "", "Z07:00"),
        ("2024/01-01T00:00:00Z", "/01-01T00:00:00Z", "-"),
    ],
)
def test_time_error_names_the_part_where_gos_parser_stops(text, rest, part):
    obj = {"metadata": {"creationTimestamp": text}}
    assert decode_errors(DEPLOYMENT, obj) == [
        f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{rest}" as "{part}"'
    ]


def test_quantities_and_base64_are_parsed():
    pod = builtin_schema("", "v1", "Pod")

    def limits(amount):
        return {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": amount}}}]}}

    for amount in ("1", "100m", "1.5", "2Gi", "1e3", "-1", "+1", ".5", 1, 0.5):
        assert decode_errors(pod, limits(amount)) == []
    for amount in ("1x", "", "1 Gi", "1.5.5", "Gi", "1ki", True):
        assert len(decode_errors(pod, limits(amount))) == 1
    secret = builtin_schema("", "v1", "Secret")
    assert decode_errors(secret, {"data": {"a": "YQ=="}}) == []
    assert decode_errors(secret, {"data": {"a": "Y"}}) == ["illegal base64 data at input byte 0"]


def test_built_in_kinds_report_required_and_unsupported_values():
    obj = {"spec": {"template": {"spec": {"restartPolicy": "Sometimes", "containers": [{}]}}}}
    assert [(cause["field"], cause["message"]) for cause in validate(DEPLOYMENT, obj)] == [
        ("spec.selector", "Required value"),
        (
            "spec.template.spec.restartPolicy",
            'Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
        ),
        ("spec.template.spec.containers[0].name", "Required value"),
    ]


def test_unknown_fields_of_built_in_kinds_are_found_with_their_path():
    obj = {"spec": {"template": {"spec": {"containers": [{"name": "a", "imagee": "x"}]}}}, "specc": {}}
    assert prune(DEPLOYMENT, obj) == ["spec.template.spec.containers[0].imagee", "specc"]


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date-time", "2024-01-01T00:00:00.5+02:00", "2024-01-01"),
        ("date", "2024-02-29", "2023-02-29"),
        ("duration", "1h30m", "1 hour"),
        ("byte", "YQ==", "%"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:11:22:33:44:55", "00"),
        ("hostname", "a.example.com", "-a"),
        ("email", "a@example.com", "a"),
        ("uri", "https://example.com/x", "x"),
        ("uuid", "123e4567-e89b-42d3-a456-426614174000", "1"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"),
        ("hexcolor", "#fff", "#ff"),
        ("k8s-short-name", "abc", "A"),
        ("k8s-long-name", "abc.d", "abc."),
    ],
)
def test_formats(name, good, bad):
    schema = schema_of(type="string", format=name)
    assert causes_of(schema, good) == []
    assert len(causes_of(schema, bad)) == 1


def test_unknown_format_and_invalid_pattern_are_not_enforced():
    assert causes_of(schema_of(type="string", format="whatever"), "x") == []
    assert causes_of(schema_of(type="string", pattern="(?<!"), "x") == []


@pytest.mark.parametrize(
    ("number", "is_integer"), [(3.0, True), (2.0**53 - 1, True), (2.0**53, False), (1e30, False), (1.5, False)]
)
def test_float_is_an_integer_while_it_is_exact(number, is_integer):
    schema = schema_of(type="object", properties={"size": {"type": "integer"}})
    assert (causes_of(schema, {"size": number}) == []) is is_integer


def test_crd_may_restrict_only_the_names_in_metadata():
    described = {"name": {"type": "string", "maxLength": 5}, "generateName": {"type": "string", "pattern": "^a"}}
    schema = from_openapi({"properties": {"metadata": {"type": "object", "properties": described}}})

    def problems(**metadata):
        found = validate(schema, {"metadata": metadata})
        assert conforms(schema, {"metadata": metadata}) is not bool(found)
        return [(each["field"], each["reason"]) for each in found]

    assert problems(name="short", labels={"longer": "than five"}) == []
    assert problems(name="longer", generateName="b-") == [
        ("metadata.name", "FieldValueTooLong"),
        ("metadata.generateName", "FieldValueInvalid"),
    ]
    assert problems(name=5) == [("metadata.name", "FieldValueTypeInvalid")]
    plain = from_openapi({"properties": {}})
    assert validate(plain, {"metadata": {"name": "longer"}}) == []
