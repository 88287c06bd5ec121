"""Validate the keywords of an `openAPIV3Schema`, apart from its structure. Pure.

Unsupported keywords, the x-kubernetes-* extensions, the places where defaults are allowed, and the fields of validation
rules except their expressions (`rulevalidation.py`). `structuralvalidation.py` validates the structure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import Causes, forbidden, invalid, invalid_go, not_supported, required, show
from federation.apiserver.semantics.crd.schemapaths import field_path_problem
from federation.apiserver.semantics.crd.structuralvalidation import Raw, as_schema

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LIST_TYPE: Final = "x-kubernetes-list-type"
_LIST_KEYS: Final = "x-kubernetes-list-map-keys"
_MAP_TYPE: Final = "x-kubernetes-map-type"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_RULES: Final = "x-kubernetes-validations"
_ENVELOPE: Final = frozenset({"metadata", "kind", "apiVersion"})
_REASONS: Final = ("FieldValueRequired", "FieldValueForbidden", "FieldValueInvalid", "FieldValueDuplicate")
_LINE_BREAK: Final = re.compile(r"[\n\r]")
_JUNCTORS: Final = ("allOf", "oneOf", "anyOf")


@dataclass(frozen=True, slots=True)
class _Context:
    """The properties that a node inherits from the nodes above."""

    no_defaults: str | None = None
    """The reason why a default is forbidden, None if it is allowed."""
    is_inside_metadata: bool = False


def validate_keywords(raw: Raw, path: str) -> Causes:
    """Return the causes of invalid keywords in the schema at `path` of its CRD."""
    causes: Causes = []
    _check(raw, path, _Context(), causes, is_root=True)
    return causes


def is_convertible(raw: Any) -> bool:
    """Return True if a schema has only keywords of structural schemas; `validate_keywords` reports the others."""
    if isinstance(raw, list):
        return all(is_convertible(part) for part in raw)
    if not isinstance(raw, Mapping):
        return True
    if any(raw.get(key) for key in (*_UNSUPPORTED, "$schema")) or isinstance(raw.get("items"), list):
        return False
    if raw.get(_PRESERVE) is False:
        return False
    below = (raw.get(key) for key in ("items", "additionalProperties", "not", *_JUNCTORS))
    return all(map(is_convertible, below)) and all(map(is_convertible, (raw.get("properties") or {}).values()))


def _check(raw: Raw, path: str, context: _Context, causes: Causes, *, is_root: bool = False) -> None:
    _check_supported(raw, path, context, causes)
    properties = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    if raw.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        causes.append(forbidden(f"{path}.uniqueItems", text))
    if additional is not None and additional is not True and properties:
        text = "additionalProperties and properties are mutual exclusive"
        causes.append(forbidden(f"{path}.additionalProperties", text))
    if isinstance(additional, Mapping):
        inside = context
        if context.is_inside_metadata:
            inside = replace(context, no_defaults="inside additionalProperties applying to object metadata")
        _check(additional, f"{path}.additionalProperties", inside, causes)
    for name, field in properties.items():
        below = context
        if name in _ENVELOPE and (is_root or raw.get("x-kubernetes-embedded-resource")):
            no_defaults = f"in top-level {name}" if is_root else context.no_defaults
            below = _Context(no_defaults, is_inside_metadata=True)
        _check(field, f"{path}.properties[{name}]", below, causes)
    if (negated := as_schema(raw.get("not"))) is not None:
        _check(negated, f"{path}.not", context, causes)
    for key in _JUNCTORS:
        for index, part in enumerate(raw.get(key) or ()):
            _check(part, f"{path}.{key}[{index}]", context, causes)
    if (items := as_schema(raw.get("items"))) is not None:
        _check(items, f"{path}.items", context, causes)
    if raw.get(_PRESERVE) is False:
        causes.append(invalid(f"{path}.{_PRESERVE}", value=False, message="must be true or undefined"))
    _check_merge_keywords(raw, path, causes)
    for index, rule in enumerate(raw.get(_RULES) or ()):
        _check_rule(rule, raw, f"{path}.{_RULES}[{index}]", causes)


def _check_supported(raw: Raw, path: str, context: _Context, causes: Causes) -> None:
    type_ = raw.get("type") or ""
    if type_ and type_ not in _TYPES:
        causes.append(not_supported(f"{path}.type", type_, _TYPES))
    if raw.get("default") is not None and context.no_defaults is not None:
        causes.append(forbidden(f"{path}.default", f"must not be set {context.no_defaults}"))
    causes += [forbidden(f"{path}.{key}", f"{key} is not supported") for key in _UNSUPPORTED if raw.get(key)]
    if type_ == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        causes.append(forbidden(f"{path}.type", text))
    if isinstance(raw.get("items"), list) and raw["items"]:
        causes.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if context.is_inside_metadata and raw.get("x-kubernetes-embedded-resource"):
        text = "must not be used inside of resource meta"
        causes.append(forbidden(f"{path}.x-kubernetes-embedded-resource", text))


def _check_merge_keywords(raw: Raw, path: str, causes: Causes) -> None:
    """Check the extensions that define how lists and maps are merged."""
    for key, type_, supported in (
        (_MAP_TYPE, "object", ("atomic", "granular")),
        (_LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        value = raw.get(key)
        if value is None:
            continue
        if raw.get("type") != type_:
            given, text = raw.get("type") or "", f"must be {type_} if {key} is specified"
            causes.append(invalid(f"{path}.type", given, text) if given else required(f"{path}.type", text))
        elif value == "set":
            _check_set(raw, path, causes)
        if value not in supported:
            # `not_supported` sorts the values; Kubernetes does not here.
            listed = ", ".join(map(show, supported))
            text = f"Unsupported value: {show(value)}: supported values: {listed}"
            causes.append(cause("FieldValueNotSupported", text, f"{path}.{key}"))
    list_type, keys = raw.get(_LIST_TYPE), raw.get(_LIST_KEYS) or []
    if keys and list_type != "map":
        text = f"must be map if {_LIST_KEYS} is non-empty"
        at = f"{path}.{_LIST_TYPE}"
        causes.append(required(at, text) if list_type is None else invalid(at, list_type, text))
    if list_type == "map":
        _check_keys(raw, keys, path, causes)
    items = as_schema(raw.get("items"))
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        text = f"cannot be nullable when {_LIST_TYPE} is {list_type}"
        causes.append(forbidden(f"{path}.items.nullable", text))


def _check_set(raw: Raw, path: str, causes: Causes) -> None:
    items = as_schema(raw.get("items")) or {}
    text = f"must be atomic as item of a list with {_LIST_TYPE}=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE) not in (None, "atomic"):
        causes.append(invalid(f"{path}.items.{_LIST_TYPE}", items[_LIST_TYPE], text))
    elif items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        causes.append(invalid(f"{path}.items.{_MAP_TYPE}", items.get(_LIST_TYPE) or "null", text))


def _check_keys(raw: Raw, keys: list[str], path: str, causes: Causes) -> None:
    """Check x-kubernetes-list-map-keys and the properties they refer to."""
    items = as_schema(raw.get("items"))
    if not keys:
        causes.append(required(f"{path}.{_LIST_KEYS}", f"must not be empty if {_LIST_TYPE} is map"))
    if items is None:
        causes.append(required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map"))
        return
    suffix = f"if parent array's {_LIST_TYPE} is map"
    if items.get("type") != "object":
        causes.append(invalid(f"{path}.items.type", items.get("type") or "", f"must be object {suffix}"))
        return
    fields, needed = items.get("properties") or {}, items.get("required") or ()
    shown = f"[]string{{{', '.join(map(show, keys))}}}"
    for index, key in enumerate(keys):
        field, at = fields.get(key), f"{path}.items.properties[{key}]"
        if field is None:
            causes.append(invalid_go(f"{path}.{_LIST_KEYS}", shown, "entries must all be names of item properties"))
        elif field.get("type") in ("array", "object"):
            causes.append(invalid(f"{at}.type", items["type"], f"must be a scalar type {suffix}"))
        if key in keys[:index]:
            causes.append(invalid_go(f"{path}.{_LIST_KEYS}", shown, "must not contain duplicate entries"))
        if field is None:
            continue
        subject = f"this property is in {_LIST_KEYS}, so it"
        if key not in needed and field.get("default") is None:
            causes.append(required(f"{at}.default", f"{subject} must have a default or be a required property"))
        if field.get("nullable"):
            causes.append(forbidden(f"{at}.nullable", f"{subject} cannot be nullable"))


def _check_rule(rule: Mapping[str, Any], raw: Raw, at: str, causes: Causes) -> None:
    """Check the fields of a validation rule except its expressions."""
    text, message = str(rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        causes.append(required(f"{at}.rule", "rule is not specified"))
    elif message and not message.strip():
        causes.append(invalid(f"{at}.message", message, "message must be non-empty if specified"))
    elif _LINE_BREAK.search(message.strip()):
        causes.append(invalid(f"{at}.message", message, "message must not contain line breaks"))
    elif _LINE_BREAK.search(text) and not message.strip():
        causes.append(required(f"{at}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        causes.append(required(f"{at}.messageExpression", "messageExpression must be non-empty if specified"))
    if (reason := rule.get("reason")) is not None and reason not in _REASONS:
        causes.append(not_supported(f"{at}.reason", reason, _REASONS))
    path = rule.get("fieldPath") or ""
    if path and not path.strip():
        causes.append(invalid(f"{at}.fieldPath", path, "fieldPath must be non-empty if specified"))
    if _LINE_BREAK.search(path):
        causes.append(invalid(f"{at}.fieldPath", path, "fieldPath must not contain line breaks"))
    if path and field_path_problem(path, raw):
        causes.append(invalid(f"{at}.fieldPath", path, "fieldPath must be a valid path"))
