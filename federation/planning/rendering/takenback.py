"""Find overrides that the host's mutating admission reverts. Pure.

A mutating webhook may enforce a value instead of refusing another one. The source object has the enforced value; an
override could replace it in a member. `taken_back` compares three states of one object: the source, the source with
overrides, and what the host makes of the latter. Additions by webhooks, such as sidecars and defaults, are not
conflicts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from federation.apimachinery.equality import is_json_equal
from federation.planning.rendering.drift import is_subset

_ABSENT: Any = object()


def taken_back(source: Mapping[str, Any], overridden: Mapping[str, Any], admitted: Mapping[str, Any]) -> list[str]:
    """Return the paths, as `spec.replicas`, at which `overridden` differs from `source` and `admitted` undoes that.

    Undone is a value that is missing or another one in `admitted`, and a removed value that is back.
    """
    return list(_walk(source, overridden, admitted, (), ""))


def _walk(source: Any, wanted: Any, admitted: Any, path: tuple[str, ...], field: str) -> Iterator[str]:
    """Yield the paths below `path`; `field` is the name of the field that holds the three values' parent."""
    key = path[-1] if path else ""
    if source is not _ABSENT and wanted is not _ABSENT and is_json_equal(source, wanted):
        return
    if wanted is _ABSENT:
        if admitted is not _ABSENT and is_subset({key: source}, {key: admitted}, field=field):
            yield ".".join(path)
    elif (parts := _parts(source, wanted, admitted)) is not None:
        for name in sorted(parts[0].keys() | parts[1].keys()):
            before, after, held = (part.get(name, _ABSENT) for part in parts)
            yield from _walk(before, after, held, (*path, name), key)
    elif not _is_kept(source, wanted, admitted, key, field):
        yield ".".join(path)


def _parts(source: Any, wanted: Any, admitted: Any) -> tuple[Mapping[str, Any], ...] | None:
    """Return the three values as mappings, lists of named items by name; None for other values and empty ones."""
    if isinstance(wanted, Mapping):
        found = [value if isinstance(value, Mapping) else {} for value in (source, wanted, admitted)]
        return tuple(found) if found[0] or found[1] else None
    named = [_by_name(value) if isinstance(value, list) else {} for value in (source, wanted, admitted)]
    if not isinstance(wanted, list) or any(value is None for value in named):
        return None
    return tuple(value or {} for value in named) if named[0] or named[1] else None


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Return the items of a list by name, None if they have none or share one."""
    if not all(isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in items):
        return None
    found = {item["name"]: item for item in items}
    return found if len(found) == len(items) else None


def _is_kept(source: Any, wanted: Any, admitted: Any, key: str, field: str) -> bool:
    if admitted is _ABSENT:
        # A container's `runAsNonRoot: false` is not the same as none; nor is any other scalar.
        return wanted is None or wanted in ({}, [])
    if is_subset({key: wanted}, {key: admitted}, field=field):
        return True
    is_of_objects = isinstance(wanted, list) and any(isinstance(item, Mapping) for item in wanted)
    if not is_of_objects or not isinstance(admitted, list):
        return False
    # Webhooks append to lists, for example tolerations.
    removed = [item for item in source if item not in wanted] if isinstance(source, list) else []
    return all(_is_in(item, admitted) for item in wanted) and not any(_is_in(item, admitted) for item in removed)


def _is_in(item: Any, items: list[Any]) -> bool:
    return any(is_subset(item, other) for other in items)
