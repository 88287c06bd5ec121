"""Bring objects of built-in kinds into the form that Go's decoder and encoder give them.

kube-apiserver decodes an object into Go structs and stores what it encodes from them. So a null is an absent field, an
empty field that is marked `omitempty` disappears, a field without that mark is always there, and quantities and base64
have their canonical text. Members return objects in this form: without it a template would differ from its members'
objects.

Values of unexpected types are left as they are: `validation.py` refuses them. `builtin.py` compiles which fields are
omitted or written. Pure; changes the object in place. Every write of a built-in kind walks its object here, so the
common case, an object in canonical form, costs one lookup per field.
"""

from typing import Any

from federation.apimachinery.base64text import to_canonical_base64
from federation.apimachinery.quantity import to_canonical, to_canonical_milli
from federation.apiserver.semantics.schema.model import (
    BOOLEAN,
    BYTES,
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

_EMPTY: dict[int, tuple[type, ...]] = {
    STRUCT: (dict,),
    MAP: (dict,),
    LIST: (list,),
    STRING: (str,),
    INTEGER: (int,),
    NUMBER: (int, float),
    BOOLEAN: (bool,),
    INT_OR_STRING: (int, str),
    QUANTITY: (int, float, str),
    TIME: (str,),
    BYTES: (str,),
}
"""The types of empty values by kind; of `ANY` every type."""


def to_go_form(schema: Schema, obj: dict[str, Any], *, is_partial: bool = False) -> None:
    """Normalize an object in place. A partial one, the changed fields of an update, gets no top-level fields."""
    _normalize_struct(schema, obj)
    if is_partial:
        return
    add_zeros(schema, obj)


def fill_maps(schema: Schema, value: Any) -> None:
    """Give each null in a map, in place, the empty value that Go's decoder gives it: `data: {a: null}` has a key.

    Server-side apply merges configurations before they are decoded, and takes a null for a field that is left out.
    """
    if value.__class__ is dict:
        is_map = schema.kind == MAP and schema.additional is not None
        for name, inner in value.items():
            below = schema.additional if is_map else schema.properties.get(name) if schema.properties else None
            if below is None:
                continue
            if inner is not None:
                fill_maps(below, inner)
            elif is_map and (zero := zero_of(below)) is not None:
                value[name] = zero  # replacing a value does not disturb the iteration
    elif value.__class__ is list and schema.items is not None:
        for item in value:
            fill_maps(schema.items, item)


def add_zeros(schema: Schema, obj: dict[str, Any]) -> None:
    """Add the absent fields that Go always writes to a struct, in place."""
    for name, zero in schema.zeros:
        if name not in obj:
            obj[name] = zero_of(schema.properties[name]) if zero.__class__ is dict else zero


def zero_of(schema: Schema) -> Any:
    """Return a new empty value of a field as Go writes it."""
    kind = schema.kind
    if kind == STRUCT:
        zero: dict[str, Any] = {}
        add_zeros(schema, zero)
        return zero
    return "0" if kind == QUANTITY else "" if kind in (STRING, BYTES) else None


def _normalize(schema: Schema, value: Any) -> None:
    """Normalize a map, list or struct in place."""
    kind = schema.kind
    if value.__class__ is dict:
        if kind == STRUCT and schema.properties:
            _normalize_struct(schema, value)
            if schema.zeros:
                add_zeros(schema, value)
        elif kind == MAP and schema.additional is not None:
            _normalize_map(schema.additional, value)
    elif value.__class__ is list and kind == LIST and schema.items is not None:
        _normalize_list(schema.items, value)


def _normalize_struct(schema: Schema, obj: dict[str, Any]) -> None:
    fields, omitted = schema.properties, schema.omitted
    dropped: list[str] = []
    quantities: list[str] = []
    bytes_: list[str] = []
    for name, value in obj.items():
        if value is None or (not value and name in omitted and _is_zero(fields[name], value)):
            dropped.append(name)
            continue
        field = fields.get(name)
        if field is None:
            continue
        kind = field.kind
        if kind <= LIST:
            if kind:
                _normalize(field, value)
        elif kind == QUANTITY:
            quantities.append(name)
        elif kind == BYTES:
            bytes_.append(name)
    for name in dropped:
        del obj[name]
    for name in quantities:
        obj[name] = to_canonical(obj[name])
    for name in bytes_:
        obj[name] = to_canonical_base64(obj[name])


def _is_zero(schema: Schema, value: Any) -> bool:
    """Return True if an empty value has the field's type; a wrong type is kept, and validation refuses it."""
    return schema.kind not in _EMPTY or value.__class__ in _EMPTY[schema.kind]


def _normalize_map(values: Schema, obj: dict[str, Any]) -> None:
    kind = values.kind
    if kind == QUANTITY:
        to_text = to_canonical_milli if values.rounds_to_milli else to_canonical
        for name, value in obj.items():
            canonical = "0" if value is None else to_text(value)
            if canonical is not value:
                obj[name] = canonical  # replacing a value does not disturb the iteration
        return
    if kind == BYTES:
        for name, value in obj.items():
            obj[name] = "" if value is None else to_canonical_base64(value)
        return
    has_nulls = False
    for value in obj.values():
        if value is None:
            has_nulls = True
        elif kind <= LIST and kind:
            _normalize(values, value)
    if has_nulls:
        for name in [name for name, value in obj.items() if value is None]:
            zero = zero_of(values)
            if zero is None:
                del obj[name]
            else:
                obj[name] = zero


def _normalize_list(items: Schema, values: list[Any]) -> None:
    kind = items.kind
    if None in values:
        zero = zero_of(items)
        if zero is not None:
            values[:] = [zero_of(items) if value is None else value for value in values]
    if kind <= LIST:
        if kind:
            for value in values:
                _normalize(items, value)
    elif kind == QUANTITY:
        values[:] = [to_canonical(value) for value in values]
