r"""The JSONPath of printer columns: fields, indexes, wildcards and equality filters.

`.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`, `.metadata.annotations.a\.b/c`, `.list[*].name`,
`.map['key']`, `.map['a\.b']`. A path with a syntax error has no values.
"""

import re
from functools import lru_cache
from typing import Any

from federation.apimachinery import dotpaths

_STEP = re.compile(
    r"""\.?(?:
        (?P<field>(?:[^.\[\]\\]|\\.)+)
      | \[\s*['"](?P<quoted>[^'"]*)['"]\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<all>\*)\s*\]
      | \[\s*\?\(\s*@\.(?P<key>[\w.\-/]+)\s*(?P<operator>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[\w.\-]+)\s*\)\s*\]
    )""",
    re.VERBOSE,
)

Step = tuple[str, Any]


@lru_cache(maxsize=1024)
def parse(path: str) -> tuple[Step, ...] | None:
    """Return the steps of a path, None for unsupported syntax."""
    text = path.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if not found or found.end() == at:
            return None
        at = found.end()
        steps.append(_step(found))
    return tuple(steps)


def find(obj: Any, path: str) -> list[Any]:
    """Return every value at `path`, in order."""
    steps = parse(path)
    if not steps:
        return []
    values = [obj]
    for step in steps:
        if not values:
            break  # a path may have thousands of steps
        values = [inner for value in values for inner in _follow(value, step)]
    return values


def _step(found: re.Match[str]) -> Step:
    if found["field"] is not None:
        name = re.sub(r"\\(.)", r"\1", found["field"])
        return ("all", None) if name == "*" else ("field", name)
    if found["quoted"] is not None:
        return ("field", re.sub(r"\\(.)", r"\1", found["quoted"]))
    if found["index"] is not None:
        return ("index", int(found["index"]))
    if found["all"] is not None:
        return ("all", None)
    return ("filter", (dotpaths.split(found["key"]), found["operator"] == "==", found["value"].strip("\"'")))


def _follow(value: Any, step: Step) -> list[Any]:
    kind, argument = step
    if kind == "field":
        return [value[argument]] if isinstance(value, dict) and value.get(argument) is not None else []
    if kind == "all":
        return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
    if not isinstance(value, list):
        return []
    if kind == "index":
        return [value[argument]] if -len(value) <= argument < len(value) else []
    keys, is_equal, wanted = argument
    return [item for item in value if (_text(dotpaths.get(item, keys)) == wanted) == is_equal]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
