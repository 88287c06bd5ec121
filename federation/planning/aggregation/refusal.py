"""A merged status without the parts that the source's API server has refused. Pure.

The host knows more rules than `plausibility.py`: those of newer versions, and the schemas of custom kinds. Its answer
names the fields; only these keep their present values, so that a wrong value does not stop the status of all clusters.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.apimachinery.resources import Object

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


def without_refused(status: Object, present: Mapping[str, Any], causes: Iterable[Mapping[str, Any]]) -> Object | None:
    """Return the status without the parts that the causes of a refusal name, None if they name none.

    An element of a list is left out; a field keeps its present value.
    """
    places = sorted({place for cause in causes if (place := _place_of(cause, status)) is not None}, key=str)
    if not places:
        return None
    found, elements = dict(status), dict[str, set[int]]()
    for field, index in places:
        if index is not None:
            elements.setdefault(field, set()).add(index)
    for field, indexes in elements.items():
        left = [each for number, each in enumerate(_list_at(status, field)) if number not in indexes]
        found = _with_list(found, field, left)
    for field, index in places:
        if index is None:
            _keep(found, present, field)
    return None if found == status else found


def _keep(status: Object, present: Mapping[str, Any], field: str) -> None:
    name = field.split(".", 1)[0]
    if name in present:
        status[name] = present[name]
    else:
        status.pop(name, None)


def _place_of(cause: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[str, int | None] | None:
    """Return the field, below status, that a cause names, and the index where its outermost list has the value."""
    steps = [first or second for first, second in _STEP.findall(str(cause.get("field") or ""))]
    if len(steps) < 2 or steps[0] != "status":
        return None
    value: Any = status
    for depth, step in enumerate(steps[1:], 1):
        if isinstance(value, list):
            is_index = step.isdecimal() and int(step) < len(value)
            return (".".join(steps[1:depth]), int(step)) if is_index else (steps[1], None)
        if not isinstance(value, Mapping) or step not in value:
            break
        value = value[step]
    return (steps[1], None) if steps[1] in status else None


def _list_at(status: Mapping[str, Any], field: str) -> Sequence[Any]:
    value: Any = status
    for step in field.split("."):
        value = value[step]
    assert isinstance(value, list)
    return value


def _with_list(status: Object, field: str, left: Sequence[Any]) -> Object:
    first, _, rest = field.partition(".")
    return {**status, first: _with_list(status[first], rest, left) if rest else list(left)}
