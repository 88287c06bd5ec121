"""Compile the `openAPIV3Schema` of a CustomResourceDefinition to a `Schema`. Pure.

The input is a structural schema with x-kubernetes-* extensions and value validations (allOf, anyOf, oneOf, not).
`structuralvalidation.py` checks that it is structural; this module ignores unknown keywords, so that a CRD that a
cluster serves does not fail here.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import re2

from federation.apimachinery.errors import BadRequest
from federation.apiserver.semantics.crd.structuralvalidation import QUIET
from federation.apiserver.semantics.schema.builtin import object_meta
from federation.apiserver.semantics.schema.model import ANYTHING, NO_DEFAULT, Schema

_LIMITS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
}
_FLAGS = {
    "nullable": "nullable",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "uniqueItems": "unique_items",
    "x-kubernetes-int-or-string": "int_or_string",
    "x-kubernetes-preserve-unknown-fields": "preserve_unknown",
    "x-kubernetes-embedded-resource": "embedded_resource",
}
_PARTS = ("allOf", "anyOf", "oneOf")


def from_openapi(structural: Mapping[str, Any] | None) -> Schema:
    """Return the compiled schema of a custom resource with apiVersion, kind and metadata.

    None, for a CRD without schema, accepts every field.
    """
    given = structural or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = _compile({"type": "object", **given})
    _add_envelope(schema)
    schema.seal()
    _mark_defaults(schema)
    return schema


def _add_envelope(schema: Schema) -> None:
    """Add apiVersion, kind and metadata; a CRD may restrict only the names in metadata."""
    for name in ("apiVersion", "kind"):
        described = schema.properties.get(name)
        field = Schema("string")
        field.description = described.description if described is not None else ""
        field.seal()
        schema.properties[name] = field
    described = schema.properties.get("metadata")
    schema.properties["metadata"] = object_meta() if described is None else _restricted_meta(described)


def _restricted_meta(described: Schema) -> Schema:
    """Return the schema of metadata with the CRD's constraints on `name` and `generateName`."""
    restrictions = {name: field for name in _NAMES if (field := described.properties.get(name)) is not None}
    if not restrictions:
        return object_meta()
    meta = object_meta().copy()
    meta.properties = dict(meta.properties)
    for name, field in restrictions.items():
        meta.properties[name] = named = meta.properties[name].copy()
        for attribute in _OF_A_NAME:
            setattr(named, attribute, getattr(field, attribute))
        named.seal()
    return meta


_NAMES = ("name", "generateName")
_OF_A_NAME = ("min_length", "max_length", "pattern", "pattern_text", "enum", "format")

_TEXTS = ("type", "format", "title", "description", "pattern", "x-kubernetes-list-type", "x-kubernetes-map-type")
_LISTS = ("required", "enum", *_PARTS, "x-kubernetes-list-map-keys", "x-kubernetes-validations")
_SHAPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_LISTS, list),
    **dict.fromkeys(_LIMITS, (int, float)),
    **dict.fromkeys(_FLAGS, bool),
    "properties": Mapping,
    "not": Mapping,
}


def _check_shape(raw: Any) -> None:
    """Raise BadRequest for a malformed schema."""
    if not isinstance(raw, Mapping):
        raise BadRequest(f"a schema must be an object, not {raw!r:.40}")
    for key, kind in _SHAPES.items():
        if raw.get(key) is not None and not isinstance(raw[key], kind):
            raise BadRequest(f"a schema's {key} is of the wrong type: {raw[key]!r:.40}")
    for name in (*(raw.get("required") or ()), *(raw.get("x-kubernetes-list-map-keys") or ())):
        if not isinstance(name, str):
            raise BadRequest(f"a schema names fields by text, not {name!r:.40}")
    for rule in raw.get("x-kubernetes-validations") or ():
        if not isinstance(rule, Mapping):
            raise BadRequest(f"a validation rule must be an object, not {rule!r:.40}")


def _compile(raw: Mapping[str, Any]) -> Schema:
    _check_shape(raw)
    schema = Schema(raw.get("type") or "")
    schema.format = raw.get("format") or ""
    schema.description = raw.get("description") or ""
    for key, attribute in _LIMITS.items():
        if raw.get(key) is not None:
            setattr(schema, attribute, raw[key])
    for key, attribute in _FLAGS.items():
        if raw.get(key):
            setattr(schema, attribute, True)
    schema.required = tuple(raw.get("required") or ())
    if raw.get("default") is not None:
        schema.default = raw["default"]
    if raw.get("enum"):
        schema.enum = tuple(raw["enum"])
    _compile_pattern(schema, raw.get("pattern") or "")
    for name, field in (raw.get("properties") or {}).items():
        schema.properties[name] = _compile(field)
    if schema.embedded_resource:
        _add_envelope(schema)
    items = raw.get("items")
    if isinstance(items, Mapping):
        schema.items = _compile(items)
    additional = raw.get("additionalProperties")
    if additional is not None and additional is not False:
        schema.additional = _compile(additional) if isinstance(additional, Mapping) else ANYTHING
    schema.all_of = tuple(_compile(part) for part in raw.get("allOf") or ())
    schema.any_of = tuple(_compile(part) for part in raw.get("anyOf") or ())
    schema.one_of = tuple(_compile(part) for part in raw.get("oneOf") or ())
    if raw.get("not"):
        schema.negation = _compile(raw["not"])
    schema.validations = tuple(raw.get("x-kubernetes-validations") or ())
    schema.list_type = raw.get("x-kubernetes-list-type") or ""
    schema.list_map_keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())
    schema.map_type = raw.get("x-kubernetes-map-type") or ""
    schema.seal()
    return schema


def _compile_pattern(schema: Schema, pattern: str) -> None:
    """Compile a pattern with RE2, which has the syntax of Go's regexp and runs in linear time."""
    if not pattern:
        return
    schema.pattern_text = pattern
    with contextlib.suppress(re2.error):
        schema.pattern = re2.compile(pattern, QUIET)


def _mark_defaults(schema: Schema) -> bool:
    """Set `has_defaults` of this node and the nodes below; structural schemas have no cycles."""
    if schema.native:
        return False
    below = [_mark_defaults(child) for child in schema.children()]
    if schema is not ANYTHING:
        schema.has_defaults = schema.default is not NO_DEFAULT or any(below)
    return schema.has_defaults
