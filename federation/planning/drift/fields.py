"""Find applied fields that a member object lacks or has changed, and their authors. Pure.

`drifted_fields` compares as `planning/rendering/drift.py` does. `author_of` reads `metadata.managedFields`, which the
member writes: whatever is malformed in it is skipped, and everything that is kept of it is short and printable.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from federation.api import names
from federation.planning.rendering.drift import find_item, is_subset, pair_items

FIELDS_MAX = 8
"""Named fields of one object in a message; further ones are not looked for."""
_NAME_LENGTH_MAX = 200
_MANAGER_LENGTH_MAX = 64
_ENTRIES_MAX = 100
"""Entries of managedFields that are read."""
_ITEMS_MAX = 500
"""Items of a list that are read in one entry of managedFields."""
_ITEM_KEY_LENGTH_MAX = 512
_PARTS_MAX = 20
_OPERATIONS = frozenset(("Apply", "Update"))
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)

Step = str | Mapping[str, Any]
"""The name of a field, or the wanted item of a list that is a map."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an object: its name for people (`spec.template.spec.containers[web].image`) and the steps to it."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Author:
    """The last writer of a field: the manager, the operation ("Apply" or "Update") and the time in RFC 3339.

    Operation and time are "" when the member does not tell them.
    """

    manager: str
    operation: str
    time: str


def drifted_fields(
    wanted: Mapping[str, Any], live: Mapping[str, Any], *, fields_max: int = FIELDS_MAX
) -> tuple[Field, ...]:
    """Return the first `fields_max` fields of `wanted` that `live` lacks or has with another value."""
    found: list[Field] = []
    _collect(wanted, live, "", "", (), found, fields_max)
    return tuple(found)


def value_at(value: Any, steps: Sequence[Step]) -> Any:
    """Return what an object has at a field, None when it lacks the field."""
    field = ""
    for step in steps:
        if isinstance(step, str):
            value, field = (value.get(step) if isinstance(value, Mapping) else None), step
        else:
            value, field = (find_item(step, value, field) if isinstance(value, list) else None), ""
    return value


def _collect(
    wanted: Any, live: Any, field: str, name: str, steps: tuple[Step, ...], found: list[Field], fields_max: int
) -> None:
    """Add the smallest differing parts; `field` is the name of the field that holds both values."""
    if len(found) >= fields_max:
        return
    before = len(found)
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        differing = [key for key, value in wanted.items() if not is_subset({key: value}, live, field=field)]
        if not differing:
            return
        for key in differing:
            _collect(wanted[key], live.get(key), key, _join(name, key), (*steps, key), found, fields_max)
    elif is_subset(wanted, live, field=field):
        return
    elif isinstance(wanted, list) and isinstance(live, list):
        for item, held in pair_items(wanted, live, field):
            if held is not None:
                label = str(item.get("name") or next(iter(item.values())))
                _collect(item, held, "", f"{name}[{label}]", (*steps, item), found, fields_max)
    if len(found) == before:
        # Nothing smaller explains it: the field is absent, has another type, or is a list that is one value.
        found.append(Field(name[:_NAME_LENGTH_MAX], steps))


def _join(name: str, key: str) -> str:
    if not _PLAIN.fullmatch(key):
        return f'{name}["{key}"]'
    return f"{name}.{key}" if name else key


def author_of(fields: Sequence[Field], live: Mapping[str, Any]) -> Author | None:
    """Return the latest writer of any of the fields other than the federation, None when no entry names one.

    A field that was removed has no owner, so it has no author either.
    """
    authors = [
        _to_author(entry)
        for entry in managers_entries(live)
        if not _is_ours(entry) and any(_owns(entry.get("fieldsV1"), field.steps) for field in fields)
    ]
    return max(authors, key=lambda author: author.time, default=None)


def managers_of(live: Mapping[str, Any]) -> list[tuple[Author, tuple[str, ...]]]:
    """Return the other managers of an object, with the names of the parts that they own; the status is left out.

    Parts are `spec.replicas` or `metadata.labels`, not what is in them.
    """
    found = [
        (_to_author(entry), parts)
        for entry in managers_entries(live)
        if not _is_ours(entry) and (parts := _parts(entry.get("fieldsV1")))
    ]
    return sorted(found, key=lambda each: each[0].time, reverse=True)


def _parts(tree: Any) -> tuple[str, ...]:
    """Return the names of the first and second level of an entry's fields."""
    names_ = []
    for key, below in islice(tree.items(), _ITEMS_MAX) if isinstance(tree, Mapping) else ():
        top = _name_of(key)
        if not top or top == "status":
            continue
        inner = [_name_of(each) for each in islice(below, _ITEMS_MAX)] if isinstance(below, Mapping) else []
        # Below other fields than these two, names are the keys of a map, such as data.
        is_known = top in ("metadata", "spec") and any(inner)
        names_ += [f"{top}.{each}" for each in inner if each] if is_known else [top]
    return tuple(dict.fromkeys(names_))[:_PARTS_MAX]


def _name_of(key: Any) -> str:
    name = key[2:] if isinstance(key, str) and key.startswith("f:") else ""
    return name if len(name) <= _MANAGER_LENGTH_MAX and _PLAIN.fullmatch(name) else ""


def is_applied_by_us(live: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    """Return whether managedFields name the federation as an owner of the field."""
    entry = applied_entry(live)
    return entry is not None and _owns(entry.get("fieldsV1"), steps)


def is_written_by_us(live: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    """Return whether managedFields name the federation as an owner of the field, by an apply or another write."""
    return any(
        entry.get("manager") == names.FIELD_MANAGER and _owns(entry.get("fieldsV1"), steps)
        for entry in managers_entries(live)
    )


def fields_to_remove(live: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that removes what managedFields name as ours and `wanted` lacks, as an apply would.

    A merge patch replaces lists as a whole, so nothing in them is named.
    """
    patch: dict[str, Any] = {}
    for entry in managers_entries(live):
        if entry.get("manager") == names.FIELD_MANAGER and not entry.get("subresource"):
            _add_removals(patch, entry.get("fieldsV1"), wanted)
    return patch


def _add_removals(patch: dict[str, Any], owned: Any, wanted: Mapping[str, Any]) -> None:
    for key, below in owned.items() if isinstance(owned, Mapping) else ():
        name = key[2:] if isinstance(key, str) and key.startswith("f:") else ""
        if not name:
            continue
        is_map = isinstance(below, Mapping) and any(isinstance(each, str) and each.startswith("f:") for each in below)
        inner = wanted.get(name)
        if is_map and (inner is None or isinstance(inner, Mapping)):
            # Others may own fields of a map that is not wanted any more.
            if not isinstance(below_patch := patch.get(name, {}), dict):
                continue
            _add_removals(below_patch, below, inner or {})
            if below_patch:
                patch[name] = below_patch
        elif name not in wanted:
            patch[name] = None


def applied_entry(live: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the entry of managedFields for the federation's applies, None without one."""
    return next(filter(_is_ours, managers_entries(live)), None)


def is_owned(entry: Mapping[str, Any], steps: Sequence[Step]) -> bool:
    """Return whether an entry of managedFields names the field, or what holds it as a whole."""
    return _owns(entry.get("fieldsV1"), steps)


def managers_entries(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the first entries of managedFields, without malformed ones."""
    managed = (obj.get("metadata") or {}).get("managedFields")
    entries = managed[:_ENTRIES_MAX] if isinstance(managed, list) else ()
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _is_ours(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of managedFields is that of the federation's applies."""
    is_apply = entry.get("manager") == names.FIELD_MANAGER and entry.get("operation") == "Apply"
    return is_apply and not entry.get("subresource")


def _owns(tree: Any, steps: Sequence[Step]) -> bool:
    for depth, step in enumerate(steps):
        if not isinstance(tree, Mapping):
            return False
        child = _child(tree, step)
        if child is None:
            # An entry without parts owns the value as a whole; the root never is one.
            return not tree and depth > 0
        tree = child
    return True


def _child(tree: Mapping[str, Any], step: Step) -> Any:
    if isinstance(step, str):
        return tree.get(f"f:{step}")
    for key, child in islice(tree.items(), _ITEMS_MAX):
        if not (isinstance(key, str) and key.startswith("k:") and len(key) <= _ITEM_KEY_LENGTH_MAX):
            continue
        try:
            wanted = orjson.loads(key[2:])
        except orjson.JSONDecodeError:
            continue
        if isinstance(wanted, dict) and all(has_key(step, name, value) for name, value in wanted.items()):
            return child
    return None


def has_key(item: Mapping[str, Any], name: str, value: Any) -> bool:
    """Return whether an item of a list that is a map has this value in a field of its key."""
    return bool(item.get(name, "TCP" if name == "protocol" else None) == value)


def _to_author(entry: Mapping[str, Any]) -> Author:
    operation, time = entry.get("operation"), entry.get("time")
    return Author(
        printable(entry.get("manager"), _MANAGER_LENGTH_MAX) or "unknown",
        operation if isinstance(operation, str) and operation in _OPERATIONS else "",
        time if isinstance(time, str) and _TIME.fullmatch(time) else "",
    )


def printable(value: Any, length_max: int) -> str:
    """Return what a member calls itself in a form for messages, shortened to the length; "" for no text."""
    text = value[: length_max + 1] if isinstance(value, str) else ""
    if len(text) > length_max:
        text = text[: length_max - 1] + "…"
    return "".join(char if char.isprintable() and char != '"' else "?" for char in text)
