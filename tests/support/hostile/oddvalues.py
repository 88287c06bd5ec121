"""Odd values that fit a kind's schema: absent, empty, extreme and repeated ones, at every field.

A client may store them, in the status too, so everything that reads objects must expect them. All from the schema; the
same schema and object give the same variants.
"""

import copy
import itertools
from collections.abc import Iterator
from typing import Any

from federation.apimachinery.resources import Object
from federation.apiserver.semantics.schema import model
from federation.apiserver.semantics.schema.model import Schema

_DEPTH_MAX = 9
_KEY = "odd"
_TIMES = (
    None,
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "2020-01-01T00:00:00+14:00",
    "1969-12-31T23:59:59.999999Z",
)
_VALUES: dict[int, tuple[Any, ...]] = {
    model.ANY: (None, [], "x", 7, {"a": []}, [[None]], True),
    model.STRUCT: ({}, None),
    model.MAP: ({}, None, {"": None}),
    model.LIST: ([], None),
    model.STRING: ("", None, 'é\u2028 "', "x" * 3000, "-1", "2020-13-45T99:99:99Z", "a/b/c"),
    model.INTEGER: (-1, 0, None, 2**31 - 1, 2**63 - 1),
    model.NUMBER: (-0.5, None, 1e308),
    model.BOOLEAN: (None, True, False),
    model.INT_OR_STRING: (None, -1, "200%", "x", 2**31 - 1),
    model.QUANTITY: (None, "0", "-1", "1e18", "0.000000001", 5),
    model.TIME: _TIMES,
    model.BYTES: ("", None, "YQ==", "Y\nQ==\n", "YQ", "é", "YQ==" * 1000, 7),
}

Path = tuple[str | int, ...]


def places(schema: Schema, at: Path = (), above: frozenset[int] = frozenset()) -> Iterator[tuple[Path, Schema]]:
    """Yield every field below a schema; the step 0 stands for a list's item, a fixed key for a map's value."""
    if len(at) >= _DEPTH_MAX or (schema.properties and id(schema.properties) in above):
        return
    children: list[tuple[str | int, Schema]] = list(schema.properties.items())
    if schema.items is not None:
        children.append((0, schema.items))
    if schema.additional is not None:
        children.append((_KEY, schema.additional))
    for step, child in children:
        yield (*at, step), child
        yield from places(child, (*at, step), above | {id(schema.properties)})


def variants(schema: Schema, obj: Object, root: str) -> Iterator[tuple[str, Object]]:
    """Yield descriptions and copies of `obj` with one odd value at or below the field `root`."""
    field = schema.child(root)
    if field is None:
        return
    for path, node in [((root,), field), *places(field, (root,))]:
        values = [*_VALUES[node.kind], *(node.enum or ())[:2]]
        if node.kind == model.LIST and node.items is not None and node.items.kind == model.STRUCT:
            values += [[{}], [{}, {}]]
        for value in values:
            shown = repr(value) if len(repr(value)) < 40 else f"{repr(value)[:30]}…"
            yield f"{'.'.join(map(str, path))} = {shown}", placed(obj, path, value)


def placed(obj: Object, path: Path, value: Any) -> Object:
    """Return a copy of an object with a value at a path, whose absent mappings and lists are created."""
    changed = copy.deepcopy(obj)
    holder: Any = changed
    for step, following in itertools.pairwise(path):
        empty: Any = [] if following == 0 else {}
        if isinstance(step, int):
            if not holder:
                holder.append(empty)
            elif not isinstance(holder[0], type(empty)):
                holder[0] = empty
        elif not isinstance(holder.get(step), type(empty)):
            holder[step] = empty
        holder = holder[step]
    if path[-1] == 0 and not holder:
        holder.append(value)
    else:
        holder[path[-1]] = copy.deepcopy(value)
    return changed
