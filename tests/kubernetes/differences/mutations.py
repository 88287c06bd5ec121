"""Make many slightly wrong or oddly written manifests of one valid manifest. Deterministic.

Every field is left out, set to null and replaced by values of its own type that are often wrong; lists get a second
copy of their first item; quantities are spelled in every way that Go parses.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

Object = dict[str, Any]
_Path = tuple[str | int, ...]

QUANTITIES: Final = (
    *("0.5", "1000m", "1500m", "1e3", "1E3", "1024Mi", "1024", "0.1Gi", "1.5Gi", "-1", "+1", "0", "00.50", "1.", ".5"),
    *("100000000n", "1u", "1000k", "12e6", "1Ki", "1.2345678912345", "123456789012345678901", "1 Gi", "abc", ""),
    *(1, 1.5, 0.1, 1e20, None, True),
)
_QUANTITY: Final = re.compile(r"\d+(\.\d+)?([KMGTPE]i|[numkMGTPE])?")
_QUANTITY_PARENTS: Final = frozenset(
    {"requests", "limits", "hard", "capacity", "max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}
    | {"allocatable", "overhead", "podFixed", "allocatedResources"}
)
_QUANTITY_FIELDS: Final = frozenset({"sizeLimit", "divisor", "averageValue", "capacity", "maximumVolumeSize"})
_TEXTS: Final = ("", "No such!", "a" * 300, 7)
_INTEGERS: Final = (-1, 0, 70000, 2**31, "7", 1.5)
_IDENTITY: Final = frozenset({("apiVersion",), ("kind",), ("metadata",), ("metadata", "namespace")})


def mutations(obj: Object) -> Iterator[tuple[str, Object]]:
    """Yield a name and an object for every mutation; the objects share parts with `obj`."""
    for path, value in _nodes(obj, ()):
        if path in _IDENTITY or path[:2] == ("metadata", "managedFields"):
            continue
        where = _text(path)
        yield f"without {where}", _without(obj, path)
        for name, wrong in _replacements(path, value):
            yield f"{where} {name}", _with(obj, path, wrong)
    yield "unknown field", {**obj, "unknownField": 1}


def _replacements(path: _Path, value: Any) -> Iterator[tuple[str, Any]]:
    yield "= null", None
    if _is_quantity(path, value):
        for text in QUANTITIES:
            yield f"= {text!r}", text
    elif isinstance(value, bool):
        yield "negated", not value
        yield "= 'true'", "true"
    elif isinstance(value, int):
        for number in _INTEGERS:
            yield f"= {number!r}", number
    elif isinstance(value, str):
        for text in _TEXTS:
            yield f"= {_short(text)}", text
    elif isinstance(value, list):
        yield "= []", []
        yield "= {}", {}
        if value:
            yield "with a second copy of its first item", [*value, value[0]]
            yield "with a null", [*value, None]
    elif isinstance(value, dict):
        yield "= {}", {}
        yield "= []", []
        yield "with an unknown field", {**value, "unknownField": "x"}


def _is_quantity(path: _Path, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not path:
        return False
    named = path[-1] in _QUANTITY_FIELDS or (len(path) > 1 and path[-2] in _QUANTITY_PARENTS)
    return named and _QUANTITY.fullmatch(str(value)) is not None


def _nodes(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _nodes(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _nodes(inner, (*path, index))


def _with(value: Any, path: _Path, wanted: Any) -> Any:
    if not path:
        return wanted
    first, *rest = path
    copied = value.copy()
    copied[first] = _with(value[first], tuple(rest), wanted)
    return copied


def _without(value: Any, path: _Path) -> Any:
    first, *rest = path
    copied = value.copy()
    if rest:
        copied[first] = _without(value[first], tuple(rest))
    else:
        del copied[first]
    return copied


def _text(path: _Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _short(value: Any) -> str:
    return repr(value) if len(str(value)) < 30 else f"{str(value)[0]!r} * {len(value)}"
