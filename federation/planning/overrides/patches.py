"""Override patches: JSON patches with KubeAdmiral's lenient meaning (docs/reference/overrides.md), without a full copy.

The deviations from RFC 6902: `replace` creates a missing map key (every generated command, env, label and annotation
override needs that), a missing operation means `replace`, a missing value means null, and list indexes may be negative.
Missing parents and list items are errors, and so is the removal of a missing key.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.apimachinery.jsonpatch import Document, PatchError, parse_pointer
from federation.planning.overrides.errors import OverrideError

Patch = Mapping[str, Any]
Patches = list[dict[str, Any]]
ClusterPatches = dict[str, Patches]
"""Patches in order by cluster; clusters without patches are absent."""

FORBIDDEN_PATHS = frozenset(("/metadata/namespace", "/metadata/name", "/metadata/generateName", "/kind"))
"""The identity of an object; a patch that changes it would address another member object."""
_REMEDY = "correct the path, or add what is missing first"
_OPERATIONS = frozenset(("add", "replace", "remove", "test"))


def forbidden_paths(patches: Iterable[Patch]) -> list[str]:
    """Return the paths of the patches that change the identity of the object, in order."""
    return [patch["path"] for patch in patches if patch.get("path") in FORBIDDEN_PATHS]


def apply_patches(obj: dict[str, Any], patches: Sequence[Patch], origins: Sequence[str] = ()) -> dict[str, Any]:
    """Return the object after all patches; OverrideError when one of them does not apply.

    `origins` are the fields that the patches are computed from; the error names that of its patch, else its number.
    The result shares its unchanged parts with the argument, and values with the patches: treat it as read-only.
    """
    document = Document(obj, is_lenient=True)
    for index, patch in enumerate(patches):
        path, operation = str(patch.get("path") or ""), patch.get("op") or "replace"
        place = f"{origins[index] if origins else f'patch {index}'} ({path})"
        if not path.startswith("/"):
            raise OverrideError("the path does not start with a slash", place)
        if operation not in _OPERATIONS:
            raise OverrideError(f"operation {operation!r} is not supported", place)
        try:
            document.apply(operation, parse_pointer(path), patch.get("value"))
        except PatchError as error:
            raise OverrideError(f"{error}; {_REMEDY}", place) from error
    try:
        document.check_size()
    except PatchError as error:
        raise OverrideError(str(error), "patches") from error
    result: dict[str, Any] = document.value
    return result


def patches_by_cluster(
    overrides: Iterable[Mapping[str, Any]], controllers: Sequence[Sequence[str]]
) -> dict[str, list[Patch]]:
    """Return each cluster's patches of all controllers (`spec.overrides`) in pipeline order.

    `controllers` are the stages of the type's pipeline; the patches of other controllers come last.
    """
    order = {name: index for index, name in enumerate(name for stage in controllers for name in stage)}
    result: dict[str, list[Patch]] = {}
    for entry in sorted(overrides, key=lambda entry: order.get(entry.get("controller", ""), len(order))):
        for per_cluster in entry.get("clusters") or ():
            result.setdefault(per_cluster["cluster"], []).extend(per_cluster.get("patches") or ())
    return result
