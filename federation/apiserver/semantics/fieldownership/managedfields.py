"""`metadata.managedFields`: the field managers and the fields that each of them owns. Pure.

There is one entry per manager, operation, API version (Update only) and subresource, as in Kubernetes. An Update takes
over the fields that it changes. At most ten Update entries are kept; the oldest are merged into `ancient-changes`.
Entries keep their wire form (`fieldset.py`). `apply.py` implements server-side apply.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.fieldownership.fielddiff import compare_objects
from federation.apiserver.semantics.fieldownership.fieldset import (
    FieldSet,
    difference,
    is_field_set,
    sort_elements,
    union,
)
from federation.apiserver.semantics.schema.model import Schema

UPDATE: Final = "Update"
APPLY: Final = "Apply"
UPDATE_MANAGERS_MAX: Final = 10
ANCIENT: Final = "ancient-changes"
BEFORE_FIRST_APPLY: Final = "before-first-apply"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The identity of an entry and the time of the write."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    now: datetime

    def matches(self, entry: Entry) -> bool:
        """Return True if the entry is this manager's; Apply has one entry for all API versions."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
            and (self.operation == APPLY or entry.get("apiVersion") == self.api_version)
        )

    def new_entry(self, fields: FieldSet) -> Entry:
        """Return a new entry of this manager."""
        entry: Entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": to_rfc3339(self.now),
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


def track_update(
    schema: Schema,
    old: Object | None,
    new: Object,
    *,
    manager: str,
    api_version: str,
    subresource: str,
    now: datetime,
) -> Object:
    """Return `new` with its managedFields after `manager` replaced `old` by it (None: create).

    managedFields in `new`: `[{}]` resets them, valid entries replace the live ones except through a subresource, an
    empty list keeps the live ones. An object without managedFields is not tracked again before the next apply. Neither
    `old` nor `new` is changed; the result shares parts with both.
    """
    metadata = new.get("metadata") or {}
    entries = _previous_entries(old, metadata, subresource, api_version)
    if entries or old is None:
        field_manager = FieldManager(manager or "unknown", UPDATE, api_version, subresource, now)
        changed, removed = compare_objects(schema, old or {}, new)
        entries = record_update(entries or [], field_manager, changed, removed)
    return with_entries(new, entries)


def _previous_entries(old: Object | None, metadata: Any, subresource: str, api_version: str) -> list[Entry] | None:
    live = None if old is None else (old.get("metadata") or {}).get("managedFields")
    given = metadata.get("managedFields")
    if not given or given is live or (subresource and old is not None):
        return live or None
    if given == [{}]:
        return None
    return _readable(given, api_version) if are_valid_entries(given) else live


def _readable(given: list[Entry], api_version: str) -> list[Entry]:
    """Return the entries that own something in a version of the object's group; the last of equal managers counts."""
    group = api_version.rpartition("/")[0]
    kept: dict[tuple[str, ...], Entry] = {}
    for entry in given:
        version = str(entry["apiVersion"])
        if entry.get("fieldsV1") and version.rpartition("/")[0] == group:
            parts = (entry.get("manager"), entry["operation"], version, entry.get("subresource"))
            kept[tuple(str(part or "") for part in parts)] = entry
    return list(kept.values())


def are_valid_entries(entries: Any) -> bool:
    """Return True if managedFields from a client are valid."""
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and entry.get("operation") in (UPDATE, APPLY)
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and (entry.get("fieldsV1") is None or is_field_set(entry["fieldsV1"]))
        for entry in entries
    )


def with_entries(obj: Object, entries: Sequence[Entry] | None) -> Object:
    """Return a copy of the object with these managedFields, or without; only the top level and metadata are copied."""
    metadata = dict(obj.get("metadata") or {})
    if entries:
        metadata["managedFields"] = list(entries)
    else:
        metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def is_unchanged(new: Object, old: Object) -> bool:
    """Return whether a write changes nothing but the times in managedFields, as an apply of equal values does.

    Both are in the form that is stored. An apply of `1000m` over `1` changes the text of a field and not its value, so
    its manager gets a new time.
    """
    metadata, live = new["metadata"], old["metadata"]
    entries, before = metadata.get("managedFields"), live.get("managedFields")
    if not entries or not before or entries is before:
        return is_json_equal(new, old)
    return (
        is_json_equal(with_entries(new, None), with_entries(old, None))
        and len(entries) == len(before)
        and is_json_equal(_without_times(entries), _without_times(before))
    )


def _without_times(entries: list[Entry]) -> list[Entry]:
    """Return the entries in an order that their times do not decide, without these."""
    return sort_entries({key: value for key, value in entry.items() if key != "time"} for entry in entries)


def record_update(
    entries: list[Entry], field_manager: FieldManager, changed: FieldSet, removed: FieldSet
) -> list[Entry]:
    """Return the entries after an Update: only the manager owns changed fields, and removed fields have no owner."""
    if not changed and not removed:
        return entries
    previous = next((entry for entry in reversed(entries) if field_manager.matches(entry)), None)
    kept = release_fields([entry for entry in entries if not field_manager.matches(entry)], changed, removed)
    owned = difference((previous or {}).get("fieldsV1") or {}, removed)
    if changed:
        kept.append(field_manager.new_entry(union(owned, sort_elements(changed))))
    elif previous is not None and owned:
        kept.append({**previous, "fieldsV1": owned})
    return sort_entries(_cap_update_entries(kept))


def release_fields(entries: Iterable[Entry], changed: FieldSet, removed: FieldSet) -> list[Entry]:
    """Return the entries of other managers without the fields that a write changed or removed."""
    kept = []
    for entry in entries:
        fields = entry.get("fieldsV1") or {}
        rest = difference(difference(fields, changed), removed)
        if rest is fields:
            kept.append(entry)
        elif rest:
            kept.append({**entry, "fieldsV1": rest})
    return kept


def _cap_update_entries(entries: list[Entry]) -> list[Entry]:
    """Merge the oldest Update entries of the same API version until at most ten are left."""
    updates = sorted((entry for entry in entries if entry.get("operation") == UPDATE), key=_age)
    surplus = len(updates) - UPDATE_MANAGERS_MAX
    if surplus <= 0:
        return entries
    kept = [entry for entry in entries if entry.get("operation") != UPDATE]
    buckets: dict[str, Entry] = {}
    for entry in updates:
        version = str(entry.get("apiVersion"))
        bucket = buckets.get(version)
        if bucket is None:
            buckets[version] = entry
        elif surplus > 0:
            surplus -= 1
            fields = union(bucket.get("fieldsV1") or {}, entry.get("fieldsV1") or {})
            merged = {**entry, "manager": ANCIENT, "fieldsV1": fields}
            merged.pop("subresource", None)
            buckets[version] = merged
        else:
            kept.append(entry)
    return [*kept, *buckets.values()]


def _age(entry: Entry) -> tuple[str, str]:
    return str(entry.get("time") or ""), str(entry.get("manager"))


def sort_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries in the order of Kubernetes: Apply first, then by time, manager, version and subresource."""
    return sorted(
        entries,
        key=lambda entry: (
            entry.get("operation") or "",
            entry.get("time") or "",
            entry.get("manager") or "",
            entry.get("apiVersion") or "",
            entry.get("subresource") or "",
        ),
    )
