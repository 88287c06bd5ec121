"""Parse `cel.expr.CheckedExpr`, the serialized syntax tree of a compiled expression. Pure.

The CEL library offers its trees only in this protobuf form. The module reads the parts that `budget.py`,
`costestimate.py` and `optionals.py` need. Field numbers are those of cel-spec's `syntax.proto` and `checked.proto`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

RESERVED_WORDS: Final = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
"""Names that CEL does not accept as identifiers."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node of kind const, ident, select, call, list, map or loop; the kind decides which attributes are used."""

    kind: str
    id: int = 0
    name: str = ""
    """The name of an identifier, a selected field, a function or a loop variable."""
    value: Any = None
    """The value of a constant, None if it is not a string, number or boolean."""
    is_test: bool = False
    """True for `has(target.name)`."""
    target: "Node | None" = None
    """The operand of a selection or member function, or the range of a loop."""
    parts: "tuple[Node, ...]" = ()
    """Arguments, elements, keys and values, or a loop's start, condition, step and result."""
    accumulator: str = ""
    omitted: "frozenset[int]" = frozenset()
    """The positions in `parts` of optional elements and entries (`?x`), which are left out without a value."""


def parse_checked_expr(serialized: bytes) -> tuple[Node, dict[int, int]]:
    """Return the tree of a serialized expression and the offset of each node in the text, by node id."""
    fields = dict(_fields(_first(serialized, 2)))  # inside of a google.protobuf.Any
    places = {}
    for number, entry in _fields(fields.get(5, b"")):
        if number == 4:
            pair = dict(_fields(entry))
            places[int(pair.get(1, 0))] = int(pair.get(2, 0))
    return _node(fields[4]), places


def find_optional_nodes(serialized: bytes) -> frozenset[int]:
    """Return the ids of the nodes whose type is an optional value."""
    found = set()
    for number, entry in _fields(_first(serialized, 2)):
        if number == 3:
            pair = dict(_fields(entry))
            abstract = _first(pair.get(2, b""), 14)
            if abstract and _text(abstract, 1) == "optional_type":
                found.add(int(pair.get(1, 0)))
    return frozenset(found)


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all nodes below it."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending += current.parts
        if current.target is not None:
            pending.append(current.target)


def _node(raw: bytes) -> Node:
    identity = 0
    for number, value in _fields(raw):
        if number == 2:
            identity = value
        elif number in _READERS:
            return _READERS[number](identity, value)
    return Node("const", identity)


def _const(identity: int, raw: bytes) -> Node:
    for number, value in _fields(raw):
        if number in (6, 7):
            return Node("const", identity, value=value.decode(errors="replace"))
        if number == 3:
            return Node("const", identity, value=value if value < 1 << 63 else value - (1 << 64))
        if number in (2, 4):
            return Node("const", identity, value=bool(value) if number == 2 else value)
    return Node("const", identity)


def _ident(identity: int, raw: bytes) -> Node:
    return Node("ident", identity, name=_text(raw, 1))


def _select(identity: int, raw: bytes) -> Node:
    found = dict(_fields(raw))
    return Node("select", identity, _text(raw, 2), target=_node(found[1]), is_test=bool(found.get(3)))


def _call(identity: int, raw: bytes) -> Node:
    found = dict(_fields(raw))
    target = _node(found[1]) if 1 in found else None
    arguments = tuple(_node(value) for number, value in _fields(raw) if number == 3)
    return Node("call", identity, _text(raw, 2), target=target, parts=arguments)


def _list(identity: int, raw: bytes) -> Node:
    parts = tuple(_node(value) for number, value in _fields(raw) if number == 1)
    omitted: list[int] = []
    for number, value in _fields(raw):
        if number == 2:
            omitted += _varints(value) if isinstance(value, bytes) else [value]
    return Node("list", identity, parts=parts, omitted=frozenset(omitted))


def _struct(identity: int, raw: bytes) -> Node:
    entries = [dict(_fields(value)) for number, value in _fields(raw) if number == 2]
    parts: list[Node] = []
    omitted: set[int] = set()
    for entry in entries:
        parts += (_node(entry[place]) for place in (3, 4) if place in entry)
        if entry.get(5):
            omitted.add(len(parts) - 1)
    return Node("map", identity, parts=tuple(parts), omitted=frozenset(omitted))


def _loop(identity: int, raw: bytes) -> Node:
    found = dict(_fields(raw))
    return Node(
        "loop",
        identity,
        _text(raw, 1),
        target=_node(found[2]),
        parts=tuple(_node(found[place]) for place in (4, 5, 6, 7)),
        accumulator=_text(raw, 3),
    )


_READERS = {3: _const, 4: _ident, 5: _select, 6: _call, 7: _list, 8: _struct, 9: _loop}


def _text(raw: bytes, wanted: int) -> str:
    return _first(raw, wanted).decode()


def _first(raw: bytes, wanted: int) -> bytes:
    for number, value in _fields(raw):
        if number == wanted:
            found: bytes = value
            return found
    return b""


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Yield (field number, value) of a protobuf message: integers for varints, bytes for other types."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(raw, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(raw, at)
        else:
            length = 8 if kind == _FIXED64 else 4
        yield key >> 3, raw[at : at + length]
        at += length


def _varints(raw: bytes) -> list[int]:
    found, at = [], 0
    while at < len(raw):
        value, at = _varint(raw, at)
        found.append(value)
    return found


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
