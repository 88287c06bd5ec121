"""The types of mutations in CEL: `Object{…}`, `Object.spec{…}` and `JSONPatch{…}`. Pure.

The CEL library has no dynamic message types, so their literals become map literals whose first entry holds the name of
the type: `Object.spec{replicas: 3}` becomes `{true: "Object.spec", "replicas": 3}`. JSON has no boolean keys, so no
data can forge the entry. `check_type` finds the type of an expression in its syntax tree, because the library sees
maps only. `admission/mutations.py` reads the values.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from federation.apiserver.semantics.cel.checkedexpr import Node, walk

TYPE_KEY: Final = True
"""The key of the type's name in a value."""
OBJECT: Final = "Object"
JSON_PATCH: Final = "JSONPatch"
JSON_PATCH_LIST: Final = "list(JSONPatch)"
_PATCH_FIELDS: Final = frozenset({"op", "path", "from", "value"})
_ANY: Final = "any"
_EMPTY_LIST: Final = "list()"
_TOKEN: Final = re.compile(
    r"(?P<skip>\s+|//[^\n]*)"
    r"|(?P<text>[rRbB]{0,2}(?:'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"))"
    r"|(?P<new>(?:Object(?:\s*\.\s*[A-Za-z_]\w*)*|JSONPatch)\s*\{)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_ERROR: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)\n \| .*\n \| .*\^")
Insertions = list[tuple[int, int]]
"""Pairs of an offset in the rewritten text and the length of the text that was inserted up to there."""


def rewrite_literals(text: str) -> tuple[str, Insertions]:
    """Return the expression with maps in place of literals of our types. Line breaks are kept."""
    parts: list[str] = []
    insertions: Insertions = []
    length = inserted = 0
    open_braces: list[bool] = []
    """Whether each open bracket belongs to a literal of our types."""
    expects_field = is_member = False

    def put(piece: str, taken: int) -> None:
        nonlocal length, inserted
        parts.append(piece)
        length += len(piece)
        if len(piece) != taken:
            inserted += len(piece) - taken
            insertions.append((length, inserted))

    for found in _TOKEN.finditer(text):
        piece, kind = found[0], found.lastgroup
        if kind == "skip":
            put(piece, len(piece))
            continue
        if kind == "new" and not is_member:
            name = re.sub(r"\s+", "", piece[:-1])
            breaks = "\n" * piece.count("\n")
            put(f'{{true: "{name}",{breaks}', len(piece))
            open_braces.append(True)
            expects_field = True
        elif kind == "word" and expects_field:
            put(f'"{piece}"', len(piece))
            expects_field = False
        else:
            put(piece, len(piece))
            if piece[-1] in "{[(":
                open_braces.append(False)
            elif piece in ("}", "]", ")") and open_braces:
                open_braces.pop()
            is_optional = piece == "?" and expects_field
            expects_field = is_optional or (piece == "," and bool(open_braces) and open_braces[-1])
        is_member = piece == "."
    return "".join(parts), insertions


def restore_places(message: str, text: str, rewritten: str, insertions: Insertions) -> str:
    """Return the compiler's message about the rewritten text with the places and lines of the original."""
    starts = [0, *(found.end() for found in re.finditer("\n", rewritten))]

    def restore(found: re.Match[str]) -> str:
        line, column = int(found[1]), int(found[2])
        if not 1 <= line <= len(starts):
            return found[0]
        place = starts[line - 1] + column - 1
        at = place - max((inserted for offset, inserted in insertions if offset <= place), default=0)
        before = text[: max(0, at)]
        column = len(before) - (before.rfind("\n") + 1)
        row = before.count("\n")
        shown = text.split("\n")[row]
        return f"ERROR: <input>:{row + 1}:{column + 1}: {found[3]}\n | {shown}\n | {'.' * column}^"

    return _ERROR.sub(restore, message)


def check_type(tree: Node, wanted: str) -> str:
    """Return "" if the expression's type is `wanted` or not known before it runs, otherwise the name of its type.

    A type that the library knows better is "dyn".
    """
    found = _type_of(tree, {})
    if found in (_ANY, wanted):
        return ""
    return "list(dyn)" if found == _EMPTY_LIST else found


def find_field_error(tree: Node) -> tuple[int, str] | None:
    """Return the node and the problem of the first JSONPatch field that does not exist or is no text."""
    for node in walk(tree):
        if _literal_name(node) != JSON_PATCH:
            continue
        for key, value in zip(node.parts[2::2], node.parts[3::2], strict=False):
            if key.value not in _PATCH_FIELDS:
                return key.id, f"undefined field '{key.value}'"
            if key.value != "value" and (type_ := _constant_type(value)) not in ("", "string"):
                return key.id, f"expected type of field '{key.value}' is 'string' but provided type is '{type_}'"
    return None


def _literal_name(node: Node) -> str:
    if node.kind == "map" and len(node.parts) > 1 and node.parts[0].value is TYPE_KEY:
        name = node.parts[1].value
        return name if isinstance(name, str) else ""
    return ""


def _constant_type(node: Node) -> str:
    if node.kind in ("list", "map"):
        return _literal_name(node) or node.kind
    if node.kind != "const" or node.value is None:
        return ""
    return {bool: "bool", int: "int", str: "string"}.get(type(node.value), "")


def _type_of(node: Node, names: Mapping[str, str]) -> str:
    match node.kind:
        case "map":
            return _literal_name(node) or "dyn"
        case "list":
            types = {_type_of(part, names) for part in node.parts}
            if not types:
                return _EMPTY_LIST
            return _list_of(types.pop()) if len(types) == 1 else "list(dyn)"
        case "ident":
            return names.get(node.name, "dyn")
        case "loop":
            return _type_of_loop(node, names)
        case "call" if node.name == "_?_:_":
            return _join(_type_of(node.parts[1], names), _type_of(node.parts[2], names))
        case "call" if node.name == "_+_":
            return _join(*(_type_of(part, names) for part in node.parts))
        case "call" if node.name == "_[_]":
            return _item_of(_type_of(node.parts[0], names))
        case "call" if node.name == "dyn":
            return "dyn"
        case "call":
            return _ANY  # a function such as orValue() may return any type
    return "dyn"


def _type_of_loop(node: Node, names: Mapping[str, str]) -> str:
    assert node.target is not None
    start, _, step, result = node.parts
    accumulated = _type_of(start, names)
    inner = {**names, node.name: _item_of(_type_of(node.target, names)), node.accumulator: accumulated}
    accumulated = _join(accumulated, _type_of(step, inner))
    return _type_of(result, {**names, node.accumulator: accumulated})


def _join(first: str, second: str) -> str:
    if _ANY in (first, second):
        return _ANY
    if first == _EMPTY_LIST and second.startswith("list("):
        return second
    if second == _EMPTY_LIST and first.startswith("list("):
        return first
    return first if first == second else "dyn"


def _list_of(item: str) -> str:
    return _ANY if item == _ANY else f"list({item})"


def _item_of(container: str) -> str:
    if container.startswith("list(") and container != _EMPTY_LIST:
        return container[5:-1]
    return _ANY if container == _ANY else "dyn"


def type_name(value: Any) -> str:
    """Return the name of the type of a value, "" for a value of another type."""
    name = value.get(TYPE_KEY) if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""
