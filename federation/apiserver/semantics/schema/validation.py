"""Validate objects against their schema, with Kubernetes' error texts. Pure.

`conforms` is one pass without paths; only an invalid object is visited again to collect causes. Custom resources get
the texts of structural schema validation. In built-in kinds a wrong type gets the text of Go's decoder, with reason
FieldValueTypeInvalid, and the caller answers 400. `valuevalidation.py` checks single values, `defaulting.py` prunes
unknown fields, `cel/rules.py` evaluates `x-kubernetes-validations`.
"""

from typing import Any, Final

from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import Causes
from federation.apiserver.semantics.schema import valuevalidation
from federation.apiserver.semantics.schema.formats import QUANTITY_ERROR
from federation.apiserver.semantics.schema.listkeys import index_by_key, item_key
from federation.apiserver.semantics.schema.model import (
    ANY,
    BOOLEAN,
    INT_OR_STRING,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    QUANTITY,
    STRING,
    STRUCT,
    TIME,
    Schema,
)
from federation.apiserver.semantics.schema.valuevalidation import to_json, type_name

TYPE_INVALID: Final = "FieldValueTypeInvalid"
ABSENT: Final = object()
"""The old value of a field that did not exist."""
CAUSES_MAX: Final = 100
"""Causes after which validation stops. Each repeats its path and value, so that all causes of a list of a hundred
thousand invalid items could take gigabytes."""
_DUPLICATE: Final = "FieldValueDuplicate"
_GoField = tuple[str, str]
"""A Go struct and a field path without indices and map keys, for decoding errors."""


def conforms(schema: Schema, value: Any) -> bool:
    """Return True if `validate` would return no causes."""
    if value is None:
        return schema.nullable or schema.native or schema.kind == ANY
    kind = schema.kind
    if ANY < kind <= MAP:
        if value.__class__ is not dict:
            return not schema.type
        fields = schema.properties
        additional = schema.additional
        for name, inner in value.items():
            field = fields.get(name) or additional
            if field is None:
                continue
            if field.kind == STRING and not field.has_constraints and inner.__class__ is str:
                continue
            if not conforms(field, inner):
                return False
        if schema.required:
            for name in schema.required:
                if value.get(name) is None and (name not in value or schema.native):
                    return False
        if schema.embedded_resource and not (value.get("apiVersion") and value.get("kind")):
            return False
    elif kind == LIST:
        if value.__class__ is not list:
            return not schema.type
        items = schema.items
        if items is not None:
            for inner in value:
                if not conforms(items, inner) or (inner is None and _rejects_null_items(items)):
                    return False
    elif kind != ANY and not valuevalidation.has_type(schema, value):
        return False
    return not schema.has_constraints or _meets_constraints(schema, value)


def conforms_as_changed(schema: Schema, value: Any, old: Any) -> bool:
    """Return True if everything conforms in which `value` differs from `old`, which it replaces.

    A status is written often and changes in few fields, and comparing the others costs less than checking them.
    """
    is_field_wise = STRUCT <= schema.kind <= MAP and not schema.has_constraints and not schema.embedded_resource
    if not is_field_wise or value.__class__ is not dict or old.__class__ is not dict:
        return conforms(schema, value)
    if any(value.get(name) is None for name in schema.required):
        return conforms(schema, value)
    for name, inner in value.items():
        before = old.get(name, ABSENT)
        if inner is before or (before is not ABSENT and is_json_equal(inner, before)):
            continue
        field = schema.child(name)
        if field is not None and not conforms_as_changed(field, inner, before):
            return False
    return True


def validate(schema: Schema, obj: Any, path: str = "", old: Any = ABSENT) -> Causes:
    """Return the causes (`errors.cause`) of everything in `obj` that the schema does not allow, in document order.

    `old` is the object that this one replaces. Values that equal the old value are not validated (ratcheting), so an
    object stays writable after its schema became stricter.
    """
    if conforms(schema, obj) if old is ABSENT else conforms_as_changed(schema, obj, old):
        return []
    causes: Causes = []
    _validate(schema, obj, path, causes, ("", path), old)
    if old is not ABSENT and any(found["reason"] == _DUPLICATE for found in causes):
        before = validate(schema, old)
        if any(found["reason"] == _DUPLICATE for found in before):
            return [found for found in causes if found["reason"] != _DUPLICATE]
    return causes


def decode_errors(schema: Schema, obj: Any) -> list[str]:
    """Return the errors of Go's decoder for wrong types in an object of a built-in kind."""
    return [found["message"] for found in validate(schema, obj) if found["reason"] == TYPE_INVALID]


def _validate(schema: Schema, value: Any, path: str, causes: Causes, go_field: _GoField, old: Any = ABSENT) -> None:
    if len(causes) >= CAUSES_MAX or conforms(schema, value) or (old is not ABSENT and is_json_equal(old, value)):
        return
    if not _has_type(schema, value):
        causes.append(_wrong_type(schema, value, path, go_field))
        return
    if isinstance(value, dict):
        _validate_fields(schema, value, path, causes, go_field, old if isinstance(old, dict) else {})
    elif isinstance(value, list) and schema.items is not None:
        before = index_by_key(schema, old)
        for index, inner in enumerate(value):
            if inner is None and _rejects_null_items(schema.items):
                causes.append(cause(TYPE_INVALID, _decode_error(schema.items, None, go_field), f"{path}[{index}]"))
            known = before.get(item_key(schema, inner), ABSENT) if before else ABSENT
            _validate(schema.items, inner, f"{path}[{index}]", causes, go_field, known)
    if value is not None:
        causes += valuevalidation.constraints(schema, value, path)
        _validate_combinations(schema, value, path, causes)


def _validate_fields(
    schema: Schema, value: dict[str, Any], path: str, causes: Causes, go_field: _GoField, old: dict[str, Any]
) -> None:
    for name in schema.required:
        if value.get(name) is None and (name not in value or schema.native):
            causes.append(cause("FieldValueRequired", "Required value", _below(path, name)))
    if schema.embedded_resource:
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                causes.append(cause("FieldValueRequired", "Required value: must not be empty", _below(path, name)))
    for name, inner in value.items():
        field = schema.child(name)
        if field is not None:
            below = (schema.name, _below(go_field[1], name)) if schema.kind == STRUCT else go_field
            _validate(field, inner, _below(path, name), causes, below, old.get(name, ABSENT))


def _rejects_null_items(items: Schema) -> bool:
    """Return True if a null item is an error: code that reads lists of built-in kinds does not expect one."""
    return items.native and items.kind != ANY


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _has_type(schema: Schema, value: Any) -> bool:
    if value is None:
        return schema.nullable or schema.native or schema.kind == ANY
    kind = schema.kind
    if kind in (STRUCT, MAP):
        return isinstance(value, dict) or not schema.type
    if kind == LIST:
        return isinstance(value, list) or not schema.type
    return kind == ANY or valuevalidation.has_type(schema, value)


_GO_KINDS: Final = {STRUCT: "", MAP: "map[string]", LIST: "[]", BOOLEAN: "bool", NUMBER: "float64", STRING: "string"}


def _wrong_type(schema: Schema, value: Any, path: str, go_field: _GoField) -> dict[str, str]:
    if not schema.native:
        wanted = "integer,string" if schema.kind == INT_OR_STRING else schema.type
        given = type_name(value)
        text = f'{path or "<nil>"} in body must be of type {wanted}: "{given}"'
        return cause(TYPE_INVALID, f'Invalid value: "{given}": {text}', path)
    return cause(TYPE_INVALID, _decode_error(schema, value, go_field), path)


def _decode_error(schema: Schema, value: Any, go_field: _GoField) -> str:
    if isinstance(value, str):
        if schema.kind == QUANTITY:
            return QUANTITY_ERROR
        if schema.kind == TIME:
            return valuevalidation.time_error(value, ".000000" if schema.format == "micro-time" else "")
        if schema.format == "byte":
            return "illegal base64 data at input byte 0"
    field = ".".join(filter(None, go_field))
    given = {"boolean": "bool", "integer": f"number {value}", "number": f"number {value}"}.get(
        type_name(value), type_name(value)
    )
    if schema.kind != INTEGER and given.startswith("number"):
        given = "number"
    return f"json: cannot unmarshal {given} into Go struct field {field} of type {_go_type(schema)}"


def _go_type(schema: Schema) -> str:
    if schema.kind == INTEGER:
        return schema.format or "int64"
    if schema.kind == STRUCT:
        return f"v1.{schema.name}"
    if schema.kind == MAP and schema.additional is not None:
        return "map[string]" + _go_type(schema.additional)
    if schema.kind == LIST and schema.items is not None:
        return "[]" + _go_type(schema.items)
    return _GO_KINDS.get(schema.kind, "string")


def _meets_constraints(schema: Schema, value: Any) -> bool:
    """Return True if a value of the right type meets the constraints of the node itself."""
    if valuevalidation.constraints(schema, value, ""):
        return False
    if schema.all_of and not all(conforms(part, value) for part in schema.all_of):
        return False
    if schema.any_of and not any(conforms(part, value) for part in schema.any_of):
        return False
    if schema.one_of and sum(conforms(part, value) for part in schema.one_of) != 1:
        return False
    return schema.negation is None or not conforms(schema.negation, value)


def _validate_combinations(schema: Schema, value: Any, path: str, causes: Causes) -> None:
    def refuse(text: str) -> None:
        causes.append(cause("FieldValueInvalid", f'Invalid value: {to_json("")}: "{path}" {text}', path))

    for part in schema.all_of:
        _validate(part, value, path, causes, ("", path))
    if schema.any_of and not any(conforms(part, value) for part in schema.any_of):
        refuse("must validate at least one schema (anyOf)")
        _add_nearest_causes(schema.any_of, value, path, causes)
    if schema.one_of:
        count = sum(conforms(part, value) for part in schema.one_of)
        if count != 1:
            found = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
            refuse(f"must validate one and only one schema (oneOf). {found}")
            if count == 0:
                _add_nearest_causes(schema.one_of, value, path, causes)
    if schema.negation is not None and conforms(schema.negation, value):
        refuse("must not validate the schema (not)")


def _add_nearest_causes(parts: tuple[Schema, ...], value: Any, path: str, causes: Causes) -> None:
    """Add the causes of the alternative that has the fewest."""
    alternatives: list[Causes] = [validate(part, value, path) for part in parts]
    nearest = min(alternatives, key=len)
    causes += nearest
