"""The compiled form of a schema: one node per field, compiled once per kind.

Validation, pruning, defaulting, patches and server-side apply read the attributes of a `Schema`. Nodes may be shared
and cyclic (JSONSchemaProps contains itself); they are read-only after `seal`. `builtin.py` compiles the schemas of
built-in kinds, `crd/structural.py` those of CustomResourceDefinitions.
"""

from collections.abc import Iterator
from typing import Any, Final, Protocol

ANY: Final = 0
STRUCT: Final = 1
MAP: Final = 2
LIST: Final = 3
STRING: Final = 4
INTEGER: Final = 5
NUMBER: Final = 6
BOOLEAN: Final = 7
INT_OR_STRING: Final = 8
QUANTITY: Final = 9
TIME: Final = 10
BYTES: Final = 11

NO_DEFAULT: Final = object()


class Pattern(Protocol):
    """A compiled regular expression."""

    def search(self, text: str, /) -> object:
        """Return a match, None when the text has none."""
        ...


class Schema:
    """One node. Absent constraints are None, absent collections are empty."""

    __slots__ = (
        "additional",
        "all_of",
        "any_of",
        "by_value",
        "default",
        "description",
        "embedded_resource",
        "enum",
        "exclusive_maximum",
        "exclusive_minimum",
        "format",
        "has_constraints",
        "has_defaults",
        "int_or_string",
        "is_atomic",
        "items",
        "kind",
        "list_map_keys",
        "list_type",
        "map_type",
        "max_items",
        "max_length",
        "max_properties",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "multiple_of",
        "name",
        "native",
        "negation",
        "nullable",
        "omitted",
        "one_of",
        "patch_merge_key",
        "patch_strategy",
        "pattern",
        "pattern_text",
        "preserve_unknown",
        "properties",
        "required",
        "rounds_to_milli",
        "type",
        "unique_items",
        "validations",
        "zeros",
    )

    def __init__(self, type_: str = "") -> None:
        self.type = type_
        self.kind = ANY
        self.name = ""
        """The Go type of a built-in struct, for decoding errors."""
        self.native = False
        """True for built-in kinds: wrong types are decoding errors, unknown fields are pruned, null means absent."""
        self.format = ""
        self.description = ""
        self.properties: dict[str, Schema] = {}
        self.items: Schema | None = None
        self.additional: Schema | None = None
        """The schema of a map's values."""
        self.required: tuple[str, ...] = ()
        self.nullable = False
        self.default: Any = NO_DEFAULT
        self.enum: tuple[Any, ...] | None = None
        self.minimum: float | None = None
        self.maximum: float | None = None
        self.exclusive_minimum = False
        self.exclusive_maximum = False
        self.multiple_of: float | None = None
        self.min_length: int | None = None
        self.max_length: int | None = None
        self.pattern: Pattern | None = None
        self.pattern_text = ""
        self.min_items: int | None = None
        self.max_items: int | None = None
        self.unique_items = False
        self.min_properties: int | None = None
        self.max_properties: int | None = None
        self.all_of: tuple[Schema, ...] = ()
        self.any_of: tuple[Schema, ...] = ()
        self.one_of: tuple[Schema, ...] = ()
        self.negation: Schema | None = None
        self.validations: tuple[dict[str, Any], ...] = ()
        """x-kubernetes-validations, kept as given."""
        self.rounds_to_milli = False
        """True for a quantity that Kubernetes rounds up to thousandths: an amount of a resource."""
        self.int_or_string = False
        self.preserve_unknown = False
        self.embedded_resource = False
        self.list_type = ""
        self.list_map_keys: tuple[str, ...] = ()
        self.map_type = ""
        self.patch_strategy: frozenset[str] = frozenset()
        self.patch_merge_key = ""
        self.by_value = False
        """True for a struct that Go holds by value: absent and empty are the same."""
        self.omitted: frozenset[str] = frozenset()
        """The fields that Go leaves out of a built-in struct when they are empty: "", 0, false, [] or {}."""
        self.zeros: tuple[tuple[str, Any], ...] = ()
        """The fields that Go writes into a built-in struct even if they are empty, with their empty values."""
        self.is_atomic = False
        """True if server-side apply treats the value as one field."""
        self.has_constraints = False
        """True if validation checks more than the type of this node itself."""
        self.has_defaults = False
        """True if this node or a node below has a default."""

    def seal(self) -> None:
        """Compute the derived attributes of this node; children need not be sealed yet."""
        self.kind = _kind_of(self)
        self.is_atomic = (
            (self.kind == LIST and self.list_type not in ("map", "set"))
            or (self.kind in (MAP, STRUCT) and self.map_type == "atomic")
            or (self.kind == ANY and self.map_type == "atomic")
            or self.kind >= STRING
        )
        self.has_constraints = (
            bool(self.all_of or self.any_of or self.one_of)
            or self.negation is not None
            or any(getattr(self, limit) is not None for limit in _LIMITS)
            or self.unique_items
            or (self.kind == STRING and bool(self.format))
            or (self.kind == LIST and self.list_type in ("map", "set") and not self.native)
        )

    def child(self, name: str) -> "Schema | None":
        """Return the schema of the field or map key `name`, None when it is unknown."""
        found = self.properties.get(name)
        return found if found is not None else self.additional

    def children(self) -> "Iterator[Schema]":
        """Yield the schemas of properties, items and additional properties."""
        yield from self.properties.values()
        if self.items is not None:
            yield self.items
        if self.additional is not None:
            yield self.additional

    def copy(self) -> "Schema":
        """Return a shallow copy, for a field that overrides attributes of a shared definition."""
        copied = Schema()
        for slot in Schema.__slots__:
            setattr(copied, slot, getattr(self, slot))
        return copied


_LIMITS = (
    "enum",
    "minimum",
    "maximum",
    "multiple_of",
    "min_length",
    "max_length",
    "pattern",
    "min_items",
    "max_items",
    "min_properties",
    "max_properties",
)
_SCALARS = {"string": STRING, "integer": INTEGER, "number": NUMBER, "boolean": BOOLEAN}


def _kind_of(schema: Schema) -> int:
    if schema.int_or_string:
        return INT_OR_STRING
    if schema.native and schema.format == "quantity":
        return QUANTITY
    if schema.native and schema.format in {"date-time", "micro-time"}:
        return TIME
    if schema.native and schema.format == "byte":
        return BYTES
    if schema.type == "array":
        return LIST
    if schema.type == "object":
        if schema.properties or schema.embedded_resource:
            return STRUCT
        return MAP if schema.additional is not None else ANY if schema.preserve_unknown else STRUCT
    if not schema.type and (schema.properties or schema.required):
        return STRUCT  # a schema inside anyOf or allOf may constrain fields without a type
    if not schema.type and schema.items is not None:
        return LIST
    return _SCALARS.get(schema.type, ANY)


def anything(*, atomic: bool = False) -> Schema:
    """Return a node that accepts every value; server-side apply owns its fields separately unless `atomic`."""
    schema = Schema()
    schema.preserve_unknown = True
    schema.nullable = True
    schema.map_type = "atomic" if atomic else ""
    schema.seal()
    return schema


ANYTHING: Final = anything()
