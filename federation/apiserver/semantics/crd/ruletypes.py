"""Check that the CEL rules of a CustomResourceDefinition use values as the types that the schema gives them. Pure.

Rules run over untyped data, so that without this check a wrong one would fail when it runs. The rule is compiled once
more, with the type of `self` and of its fields. An object is a map with values of any type to this compiler; what a
map can do and an object cannot is refused by the tree of the rule.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from federation.apiserver.semantics.cel.checkedexpr import RESERVED_WORDS, Node, parse_checked_expr, walk
from federation.apiserver.semantics.cel.decltypes import DeclType
from federation.apiserver.semantics.cel.programs import (
    CompileError,
    compile_expression,
    format_error_at,
)
from federation.apiserver.semantics.cel.rules import ValidationRule

_SCALARS: Final[Mapping[str, str]] = {
    "text": "STRING",
    "int": "INT",
    "double": "DOUBLE",
    "bool": "BOOL",
    "bytes": "BYTES",
    "timestamp": "TIMESTAMP",
    "duration": "DURATION",
}
"""The types of CEL by the kind of a schema's values."""
_NUMBER: Final = "(?:int|uint|double)"
_OBJECT: Final = r"map\(string, dyn\)"
_TOLERATED: Final = re.compile(
    rf"'_[<>]=?_' applied to '\({_NUMBER}, {_NUMBER}\)'"
    rf"|'_[!=]=_' applied to '\((?:{_OBJECT}, null_type|null_type, {_OBJECT})\)'"
)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_PRESENCE: Final = re.compile(r"\bhas\(\s*[A-Za-z_][\w.]*\s*\)")
_FIELDS_MAX: Final = 200
_DEPTH_MAX: Final = 4
_NOT_IN_KUBERNETES: Final = ("math.", "base64.", "jsonpatch.")
"""Functions that mutating policies or this runtime have, and rules of custom resources do not."""
_BIND: Final = re.compile(r"\bcel\s*\.\s*bind\s*\(")
_OBJECT_ONLY_AS: Final = frozenset(
    {"_==_", "_!=_", "_?_:_", "_?._", "dyn", "type", "optional.of", "optional.ofNonZeroValue", "orValue"}
)
"""Operators and functions that take an object."""


def check_types(rule: ValidationRule, decl: DeclType) -> None:
    """Raise CompileError for a rule that uses a value as one of another type, or a function that it does not have."""
    tree, offsets = parse_checked_expr(rule.program.serialized())
    _check_functions(rule, tree, offsets)
    if rule.is_transition and rule.has_optional_old_self:
        return  # `oldSelf` is part of the expression then
    names = ("self", "oldSelf") if rule.is_transition else ("self",)
    if decl.kind in _SCALARS:
        _check_presence(rule.text, tree, offsets, names)
    if decl.kind == "object":
        _check_objects(rule.text, tree, offsets, names)
    variables = tuple(entry for name in names for entry in islice(_typed(name, decl, 0), _FIELDS_MAX))
    if not any(":" in entry for entry in variables):
        return
    # `has()` takes a field, which is a variable of its own here.
    text = _PRESENCE.sub(lambda found: "true".ljust(len(found.group())), rule.text)
    try:
        compile_expression(text, variables, returns="BOOL")
    except CompileError as error:
        # kube-apiserver compares numbers of different types, and objects with null. This compiler does so for untyped
        # values only.
        if _TOLERATED.search(str(error)) is None:
            raise


def _typed(name: str, decl: DeclType | None, depth: int) -> Iterator[str]:
    """Yield a variable with its type, and the fields of an object as variables with a dot in their names."""
    type_ = _to_type(decl, 0)
    if type_ != "DYN":
        yield f"{name}:{type_}"
    elif not depth:
        yield name
    if decl is None or decl.kind != "object" or decl.raw is None or depth >= _DEPTH_MAX:
        return
    for field in decl.raw.get("properties") or {}:
        if _NAME.fullmatch(field) and field not in RESERVED_WORDS:  # others have another name in rules
            yield from _typed(f"{name}.{field}", decl.field(field), depth + 1)


def _to_type(decl: DeclType | None, depth: int) -> str:
    if decl is None or depth > _DEPTH_MAX:
        return "DYN"
    match decl.kind:
        case "list":
            return f"LIST({_to_type(decl.item(), depth + 1)})"
        case "map":
            return f"MAP({_to_type(decl.field(''), depth + 1)})"
        case "object":
            return "MAP(DYN)"
        case kind:
            return _SCALARS.get(kind, "DYN")


def _check_functions(rule: ValidationRule, tree: Node, offsets: Mapping[int, int]) -> None:
    if (found := _BIND.search(rule.text)) is not None:
        raise _refused(rule.text, found.start(), "undeclared reference to 'cel' (in container '')")
    for node in walk(tree):
        if node.kind == "call" and node.name.startswith(_NOT_IN_KUBERNETES):
            problem = f"undeclared reference to '{node.name.partition('.')[0]}' (in container '')"
            raise _refused(rule.text, offsets.get(node.id, 0), problem)
        if node.kind == "list" and (types := _types_of(node.parts)) and len(types) > 1:
            problem = f"expected type '{types[0]}' but found '{types[1]}'"
            raise _refused(rule.text, offsets.get(node.id, 0), problem)
        if node.kind == "map" and (types := _types_of(node.parts[::2])) and len(types) > 1:
            problem = f"expected type '{types[0]}' but found '{types[1]}'"
            raise _refused(rule.text, offsets.get(node.id, 0), problem)


def _types_of(nodes: tuple[Node, ...]) -> list[str]:
    """Return the different types of the constants among the nodes."""
    names = {str: "string", bool: "bool", int: "int"}
    found = [names[type(node.value)] for node in nodes if node.kind == "const" and type(node.value) in names]
    return list(dict.fromkeys(found))


def _check_presence(text: str, tree: Node, offsets: Mapping[int, int], names: tuple[str, ...]) -> None:
    """Refuse `has(self.field)` of a value that has no fields."""
    for node in walk(tree):
        if node.is_test and node.target is not None and _is_named(node.target, names):
            problem = f"type of '{node.target.name}' does not support field selection"
            raise _refused(text, offsets.get(node.id, 0), problem)


def _check_objects(text: str, tree: Node, offsets: Mapping[int, int], names: tuple[str, ...]) -> None:
    """Refuse what only maps can do with an object: indexes, loops, sizes and comparisons with maps."""
    for node in walk(tree):
        operands = [node.target, *node.parts] if node.kind == "call" else [node.target] if node.kind == "loop" else []
        is_used = any(operand is not None and operand.kind == "ident" and operand.name in names for operand in operands)
        if not is_used:
            continue
        is_element = node.name == "@in" and not _is_named(node.parts[-1], names)
        is_map = any(operand is not None and operand.kind == "map" for operand in operands)
        if node.kind == "loop" or is_map or not (node.name in _OBJECT_ONLY_AS or is_element):
            shown = "loop" if node.kind == "loop" else node.name
            raise _refused(
                text, offsets.get(node.id, 0), f"found no matching overload for '{shown}' applied to an object"
            )


def _is_named(node: Node, names: tuple[str, ...]) -> bool:
    return node.kind == "ident" and node.name in names


def _refused(text: str, at: int, problem: str) -> CompileError:
    return CompileError(f"compilation failed: {format_error_at(text, min(at, len(text)), problem)}")
