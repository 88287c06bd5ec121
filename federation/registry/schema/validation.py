"""Does an object obey its schema? `validate` lists what does not, in Kubernetes' words. Pure.

The common answer is "yes" and costs one pass without building paths (`conforms`); only a "no" walks again and collects
causes. For custom resources the texts are those of the structural schema's validation; for built-in kinds a wrong type
is what Go's decoder says, with reason FieldValueTypeInvalid as well, and answered as a 400 by the caller. Rules in CEL
(`x-kubernetes-validations`) are checked by `cel/rules.py`. Unknown fields are `defaulting.py`'s matter, single values
`checks.py`'s.
"""

from typing import Any, Final

from federation.base.errors import cause
from federation.registry.jsonequality import is_same
from federation.registry.schema import checks
from federation.registry.schema.checks import show, type_name
from federation.registry.schema.fielditems import by_key, key_of
from federation.registry.schema.model import (
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

TYPE_INVALID: Final = "FieldValueTypeInvalid"
ABSENT: Final = object()
"""Stands for a value that there was none of before."""
_DUPLICATE: Final = "FieldValueDuplicate"
Causes = list[dict[str, str]]
_Place = tuple[str, str]
"""The Go struct that holds a value and the path in its words (without indices and map keys), for decoding errors."""


def conforms(schema: Schema, value: Any) -> bool:
    """Tell whether `validate` would find nothing."""
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
                if not conforms(items, inner) or (inner is None and _is_missing(items)):
                    return False
    elif kind != ANY and not checks.has_type(schema, value):
        return False
    return not schema.has_constraints or _meets(schema, value)


def validate(schema: Schema, obj: Any, path: str = "", old: Any = ABSENT) -> Causes:
    """Return the causes (`errors.cause`) of everything in `obj` that the schema does not allow, in document order.

    What is the same in `old`, which this object replaces, may stay as wrong as it is: a stricter schema must not keep
    an object from being changed elsewhere.
    """
    if conforms(schema, obj):
        return []
    causes: Causes = []
    _validate(schema, obj, path, causes, ("", path), old)
    if old is not ABSENT and any(found["reason"] == _DUPLICATE for found in causes):
        before = validate(schema, old)
        if any(found["reason"] == _DUPLICATE for found in before):
            return [found for found in causes if found["reason"] != _DUPLICATE]
    return causes


def decode_errors(schema: Schema, obj: Any) -> list[str]:
    """Return what Go's decoder would say about wrong types in a built-in kind, the first one first."""
    return [found["message"] for found in validate(schema, obj) if found["reason"] == TYPE_INVALID]


def _validate(schema: Schema, value: Any, path: str, causes: Causes, place: _Place, old: Any = ABSENT) -> None:
    if conforms(schema, value) or (old is not ABSENT and is_same(old, value)):
        return
    if not _has_kind(schema, value):
        causes.append(_wrong_type(schema, value, path, place))
        return
    if isinstance(value, dict):
        _validate_fields(schema, value, path, causes, place, old if isinstance(old, dict) else {})
    elif isinstance(value, list) and schema.items is not None:
        before = by_key(schema, old)
        for index, inner in enumerate(value):
            if inner is None and _is_missing(schema.items):
                causes.append(cause(TYPE_INVALID, _decoder_says(schema.items, None, place), f"{path}[{index}]"))
            known = before.get(key_of(schema, inner), ABSENT) if before else ABSENT
            _validate(schema.items, inner, f"{path}[{index}]", causes, place, known)
    if value is not None:
        causes += checks.constraints(schema, value, path)
        _validate_combinations(schema, value, path, causes)


def _validate_fields(
    schema: Schema, value: dict[str, Any], path: str, causes: Causes, place: _Place, old: dict[str, Any]
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
            below = (schema.name, _below(place[1], name)) if schema.kind == STRUCT else place
            _validate(field, inner, _below(path, name), causes, below, old.get(name, ABSENT))


def _is_missing(items: Schema) -> bool:
    """Tell whether a null in a list of a built-in kind is refused: nothing that reads such lists expects one."""
    return items.native and items.kind != ANY


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _has_kind(schema: Schema, value: Any) -> bool:
    if value is None:
        return schema.nullable or schema.native or schema.kind == ANY
    kind = schema.kind
    if kind in (STRUCT, MAP):
        return isinstance(value, dict) or not schema.type
    if kind == LIST:
        return isinstance(value, list) or not schema.type
    return kind == ANY or checks.has_type(schema, value)


_GO_KINDS: Final = {STRUCT: "", MAP: "map[string]", LIST: "[]", BOOLEAN: "bool", NUMBER: "float64", STRING: "string"}


def _wrong_type(schema: Schema, value: Any, path: str, place: _Place) -> dict[str, str]:
    if not schema.native:
        wanted = "integer,string" if schema.kind == INT_OR_STRING else schema.type
        given = type_name(value)
        text = f'{path or "<nil>"} in body must be of type {wanted}: "{given}"'
        return cause(TYPE_INVALID, f'Invalid value: "{given}": {text}', path)
    return cause(TYPE_INVALID, _decoder_says(schema, value, place), path)


def _decoder_says(schema: Schema, value: Any, place: _Place) -> str:
    if isinstance(value, str):
        if schema.kind == QUANTITY:
            return checks.QUANTITY_ERROR
        if schema.kind == TIME:
            return checks.time_error(value)
        if schema.format == "byte":
            return "illegal base64 data at input byte 0"
    field = ".".join(filter(None, place))
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


def _meets(schema: Schema, value: Any) -> bool:
    """Tell whether a value of the right type obeys the node's own constraints."""
    if checks.constraints(schema, value, ""):
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
        causes.append(cause("FieldValueInvalid", f'Invalid value: {show("")}: "{path}" {text}', path))

    for part in schema.all_of:
        _validate(part, value, path, causes, ("", path))
    if schema.any_of and not any(conforms(part, value) for part in schema.any_of):
        refuse("must validate at least one schema (anyOf)")
        _explain_nearest(schema.any_of, value, path, causes)
    if schema.one_of:
        count = sum(conforms(part, value) for part in schema.one_of)
        if count != 1:
            found = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
            refuse(f"must validate one and only one schema (oneOf). {found}")
            if count == 0:
                _explain_nearest(schema.one_of, value, path, causes)
    if schema.negation is not None and conforms(schema.negation, value):
        refuse("must not validate the schema (not)")


def _explain_nearest(parts: tuple[Schema, ...], value: Any, path: str, causes: Causes) -> None:
    """Add what the alternative with the fewest complaints says."""
    complaints: list[Causes] = [validate(part, value, path) for part in parts]
    nearest = min(complaints, key=len)
    causes += nearest
