"""Validate that an `openAPIV3Schema` is structural, so that objects can be pruned, defaulted and merged by it. Pure.

A schema is structural if every field and item has a type outside of allOf, anyOf, oneOf and not, and those four only
constrain values. Paths, texts and order are those of apiextensions-apiserver. `keywordvalidation.py` checks single
keywords, `defaultvalidation.py` defaults; `structural.py` compiles the schema.
"""

from collections.abc import Mapping
from typing import Any, Final

import re2

from federation.apimachinery.fielderrors import Causes, forbidden, invalid, required

Raw = Mapping[str, Any]

QUIET: Final = re2.Options()
"""Errors are raised and not also written to stderr."""
QUIET.log_errors = False

_ROOT: Final = "must not be empty at the root"
_ITEM: Final = "must not be empty for specified array items"
_FIELD: Final = "must not be empty for specified object fields"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_IN_GO: Final = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid repetition size": "invalid repeat count",
    "no argument for repetition operator": "missing argument to repetition operator",
}
"""RE2's error texts and those of Go's regexp."""
_JUNCTORS: Final = ("anyOf", "allOf", "oneOf")
_OUTSIDE_STRUCTURE: Final = frozenset({"externalDocs", "example", "type", "default", "properties"})
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING_FLAG: Final = "x-kubernetes-int-or-string"
_FORBIDDEN_BELOW_JUNCTORS: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    _PRESERVE: "must be false to be structural",
    _EMBEDDED: "must be false to be structural",
    _INT_OR_STRING_FLAG: "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def validate_structure(raw: Raw, path: str) -> Causes:
    """Return the causes for which the schema at `path` of its CRD is not structural, sorted by text."""
    causes: Causes = []
    _check(raw, path, _ROOT, causes)
    for key, parts in _junctors(raw):
        for name, part in parts:
            _check_completeness(part, raw, path, f"{path}.{key}{name}", causes)
    return sorted(causes, key=lambda cause: f"{cause['field']}: {cause['message']}")


def pattern_problem(pattern: str) -> str:
    """Return the error of an invalid RE2 pattern, "" if it is valid."""
    try:
        re2.compile(pattern, QUIET)
    except re2.error as error:
        text = error.args[0] if error.args else ""
        kind, _, part = (text.decode(errors="replace") if isinstance(text, bytes) else str(text)).partition(": ")
        return f"error parsing regexp: {_IN_GO.get(kind, kind)}: `{part}`"
    return ""


def as_schema(value: Any) -> Raw | None:
    """Return a keyword's value if it is a schema, otherwise None."""
    return value if isinstance(value, Mapping) else None


def _check(raw: Raw, path: str, level: str, causes: Causes) -> None:
    """Check one structural node and the nodes below."""
    type_, items = raw.get("type") or "", as_schema(raw.get("items"))
    if type_ == "array" and items is None:
        causes.append(required(f"{path}.items", "must be specified"))
    if items is not None:
        _check(items, f"{path}.items", _ITEM, causes)
    for name, field in (raw.get("properties") or {}).items():
        _check(field, f"{path}.properties[{name}]", _FIELD, causes)
    additional = raw.get("additionalProperties")
    if additional is not None:
        if level is _ROOT:
            causes.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, Mapping):
            _check(additional, f"{path}.additionalProperties", _FIELD, causes)
    if raw.get(_INT_OR_STRING_FLAG):
        causes.extend(
            invalid(f"{path}.{flag}", value=True, message=f"must be false if {_INT_OR_STRING_FLAG} is true")
            for flag in (_PRESERVE, _EMBEDDED)
            if raw.get(flag)
        )
    _check_values(raw, path, causes, may_state_types=True)
    _check_type(raw, path, level, causes)
    _check_envelope(raw, path, level, causes)


def _check_type(raw: Raw, path: str, level: str, causes: Causes) -> None:
    type_ = raw.get("type") or ""
    if raw.get(_EMBEDDED):
        text = f"must be object if {_EMBEDDED} is true"
        if not type_:
            causes.append(required(f"{path}.type", text))
        elif type_ != "object":
            causes.append(invalid(f"{path}.type", type_, text))
        if raw.get("additionalProperties") is not None:
            causes.append(forbidden(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set"))
        if not raw.get(_PRESERVE) and not raw.get("properties"):
            text = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
            causes.append(required(f"{path}.properties", text))
    elif not type_ and not raw.get(_INT_OR_STRING_FLAG) and not raw.get(_PRESERVE):
        causes.append(required(f"{path}.type", level))
    if level is _ROOT and type_ not in ("", "object"):
        causes.append(invalid(f"{path}.type", type_, "must be object at the root"))


def _check_envelope(raw: Raw, path: str, level: str, causes: Causes) -> None:
    """Check the schemas of kind, apiVersion and metadata."""
    fields = raw.get("properties") or {}
    is_object = level is _ROOT or bool(raw.get(_EMBEDDED))
    if not is_object:
        return
    for name in ("kind", "apiVersion"):
        if name in fields and fields[name].get("type") != "string":
            at = f"{path}.properties[{name}].type"
            causes.append(invalid(at, fields[name].get("type") or "", "must be string"))
    metadata = fields.get("metadata")
    if metadata is None:
        return
    at = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        causes.append(invalid(f"{at}.type", metadata.get("type") or "", "must be object"))
    described = (metadata.get("properties") or {}).keys()
    is_restricted = any(value for key, value in metadata.items() if key not in _OUTSIDE_STRUCTURE)
    if level is _ROOT and (is_restricted or described - {"name", "generateName"}):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        causes.append(forbidden(at, text))


def _check_values(raw: Raw, path: str, causes: Causes, *, may_state_types: bool) -> None:
    """Check the value validations of a node; an int-or-string node may list its types in the first junctor."""
    for key, parts in _junctors(raw):
        for index, (name, part) in enumerate(parts):
            at = f"{path}.{key}{name}"
            if key == "anyOf" and may_state_types and raw.get("anyOf") == _INT_OR_STRING:
                continue
            is_first = may_state_types and key == "allOf" and index == 0
            _check_nested(part, at, causes, may_state_types=is_first and part.get("anyOf") == _INT_OR_STRING)
    if (pattern := raw.get("pattern")) and (problem := pattern_problem(pattern)):
        text = f"must be a valid regular expression, but isn't: {problem}"
        causes.append(invalid(f"{path}.pattern", pattern, text))


def _check_nested(raw: Raw, path: str, causes: Causes, *, may_state_types: bool = False) -> None:
    """Check a schema inside allOf, anyOf, oneOf or not, which must not add structure."""
    _check_values(raw, path, causes, may_state_types=may_state_types)
    if (items := as_schema(raw.get("items"))) is not None:
        _check_nested(items, f"{path}.items", causes)
    for name, field in (raw.get("properties") or {}).items():
        _check_nested(field, f"{path}.properties[{name}]", causes)
    for key, text in _FORBIDDEN_BELOW_JUNCTORS.items():
        if raw.get(key) or (key == "additionalProperties" and raw.get(key) == {}):
            causes.append(forbidden(f"{path}.{key}", text))
    if raw.get("default") is not None:
        causes.append(forbidden(f"{path}.default", "must be undefined to be structural"))
    if "metadata" in (raw.get("properties") or {}):
        causes.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))


def _check_completeness(part: Raw, structure: Raw, at: str, part_at: str, causes: Causes) -> None:
    """Check that the structure has every field and item that a junctor constrains."""
    for key, parts in _junctors(part):
        for name, inner in parts:
            _check_completeness(inner, structure, at, f"{part_at}.{key}{name}", causes)
    described = structure.get("properties") or {}
    if (items := as_schema(part.get("items"))) is not None:
        below = as_schema(structure.get("items"))
        if below is None:
            causes.append(required(f"{at}.items", f"because it is defined in {part_at}.items"))
        else:
            _check_completeness(items, below, f"{at}.items", f"{part_at}.items", causes)
    for name, field in (part.get("properties") or {}).items():
        below_at, below_part = f"{at}.properties[{name}]", f"{part_at}.properties[{name}]"
        if name not in described:
            causes.append(required(below_at, f"because it is defined in {below_part}"))
        else:
            _check_completeness(field, described[name], below_at, below_part, causes)


def _junctors(raw: Raw) -> list[tuple[str, list[tuple[str, Raw]]]]:
    """Return each junctor's schemas with their index: ("anyOf", [("[0]", …), …]), ("not", [("", …)])."""
    found = [(key, [(f"[{index}]", part) for index, part in enumerate(raw[key])]) for key in _JUNCTORS if raw.get(key)]
    if (negated := as_schema(raw.get("not"))) is not None:
        found.append(("not", [("", negated)]))
    return found
