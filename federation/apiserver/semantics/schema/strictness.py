"""Find the unknown and duplicate fields of JSON as Go's strict decoder reports them. Pure.

Kubernetes decodes built-in kinds in one pass, so unknown and duplicate fields come in document order, and a field that
is unknown is not reported as a duplicate. Input is JSON parsed with `Pairs`, which keep duplicates. `defaulting.py`
finds the unknown fields of parsed objects and removes them.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from federation.apiserver.semantics.schema.model import ANYTHING, LIST, MAP, STRUCT, Schema, anything

PROBLEMS_MAX: Final = 100
"""Unknown and duplicate fields that are reported, as in Kubernetes."""
_NAME_CHARS_MAX: Final = 1000


class Pairs(list[tuple[str, Any]]):
    """A JSON object with duplicate keys kept: the `object_pairs_hook` of `json.loads`."""


def find_problems(schema: Schema, value: Any) -> list[str]:
    """Return texts like `unknown field "spec.a"` and `duplicate field "b[0].c"`, each once, in document order."""
    return list(dict.fromkeys(islice(_problems(schema, value, ()), PROBLEMS_MAX)))


def _problems(schema: Schema, value: Any, path: tuple[str, ...]) -> Iterator[str]:
    """Yield every problem. Texts of paths are made for these only: one key can have a megabyte."""
    if isinstance(value, Pairs):
        seen: set[str] = set()
        for key, child in value:
            field = _field(schema, key)
            if field is None:
                yield _text("unknown", path, key)
                continue
            if key in seen:
                yield _text("duplicate", path, key)
            seen.add(key)
            if isinstance(child, list):
                yield from _problems(field, child, (*path, f".{key}"))
    elif isinstance(value, list):
        items = schema.items if schema.kind == LIST and schema.items is not None else ANYTHING
        for index, child in enumerate(value):
            if isinstance(child, list):
                yield from _problems(items, child, (*path, f"[{index}]"))


def _field(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field, None when the decoder does not know it."""
    if schema.kind == STRUCT:
        return schema.child(name) or (ANYTHING if schema.preserve_unknown else None)
    if schema.kind == MAP:
        return schema.additional or ANYTHING
    return ANYTHING


def _text(problem: str, path: tuple[str, ...], key: str) -> str:
    name = "".join((*path, f".{key}")).removeprefix(".")[:_NAME_CHARS_MAX]
    return f'{problem} field "{name}"'


JSON_PATCH_FIELDS: Final = frozenset({"op", "path", "from", "value"})


def _json_patch() -> Schema:
    """Return the schema of a JSON patch's body."""
    steps, step, text = Schema("array"), Schema("object"), Schema("string")
    text.seal()
    step.properties = {name: anything() if name == "value" else text for name in JSON_PATCH_FIELDS}
    step.seal()
    steps.items = step
    steps.seal()
    return steps


JSON_PATCH: Final = _json_patch()
"""The schema of a JSON patch."""
