"""Manifests before and after a plan: unified diffs, with the values of Secrets masked. Pure."""

import difflib
import re
from collections.abc import Sequence
from typing import Any

import yaml

from federation.api.secretvalues import both_without_secret_values
from federation.apimachinery.resources import Object
from federation.scheduling.whatif.planresult import MemberPlan

OF_THE_SERVER = ("managedFields", "creationTimestamp", "generation", "resourceVersion", "selfLink", "uid")
"""Parts of metadata that the server writes: every write changes them, or none. They are not shown for editing."""
_POSITION = re.compile(r"([-+])(\d+)")
_CONTEXT = 3
_SIDES = ("before", "after")
_COMPARED_MAX = 1_000_000
"""The most pairs of lines that are compared: the time of a diff grows with them, and other requests wait meanwhile."""
_SHOWN_MAX = 1_000
"""Lines of each side that are shown when there are more pairs."""


def object_diff(before: Object | None, after: Object | None) -> list[str]:
    """Return the unified diff of an object of the host, without its status and what the server writes by itself."""
    old, new = ({} if obj is None else _of_users(obj) for obj in (before, after))
    return _diff(old, new)


def _of_users(obj: Object) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in OF_THE_SERVER}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


def to_diff(row: MemberPlan) -> list[str]:
    """Return the unified diff of a cluster's manifests without its two header lines."""
    before, after = (copy.manifest if copy is not None else {} for copy in (row.before, row.after))
    return _diff(before, after)


def _diff(before: Object, after: Object) -> list[str]:
    """Return the unified diff of two manifests; where they differ in very many lines, only how many, and the first."""
    old, new = (_yaml(each) for each in both_without_secret_values(before, after, _SIDES))
    start = _equal(old, new)
    end = _equal(old[start:][::-1], new[start:][::-1])
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    if len(removed) * len(added) <= _COMPARED_MAX:
        head, tail = max(0, start - _CONTEXT), max(0, end - _CONTEXT)
        left, right = (lines[head : len(lines) - tail] for lines in (old, new))
        return [_moved(line, head) for line in list(difflib.unified_diff(left, right, lineterm="", n=_CONTEXT))[2:]]
    count = len(removed) + len(added)
    shown = [f"-{line}" for line in removed[:_SHOWN_MAX]] + [f"+{line}" for line in added[:_SHOWN_MAX]]
    return [f"@@ {count} lines between the first and the last difference @@", *shown]


def _moved(line: str, by: int) -> str:
    """Return a line of a diff; if it is the header of a hunk, with the line numbers of texts with `by` more lines."""
    return _POSITION.sub(lambda found: f"{found[1]}{int(found[2]) + by}", line) if line.startswith("@@ ") else line


def _equal(left: Sequence[str], right: Sequence[str]) -> int:
    """Return how many lines two texts have in common at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))


def without_secrets(document: Any) -> Any:
    """Return a plan as JSON with the values of Secrets masked; outputs end up in logs. The plan file has them."""
    if isinstance(document, list):
        return [without_secrets(entry) for entry in document]
    if not isinstance(document, dict):
        return document
    before, after = document.get("before"), document.get("after")
    if isinstance(before, dict | None) and isinstance(after, dict | None) and (before or after):
        old, new = ((side or {}).get("manifest") or {} for side in (before, after))
        old, new = both_without_secret_values(old, new, _SIDES)
        document = {
            **document,
            "before": before and {**before, "manifest": old},
            "after": after and {**after, "manifest": new},
        }
    return {key: without_secrets(value) for key, value in document.items()}


def _yaml(manifest: Object) -> list[str]:
    return yaml.dump(manifest, Dumper=yaml.CSafeDumper, sort_keys=True).splitlines() if manifest else []
