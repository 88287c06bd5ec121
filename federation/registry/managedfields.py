"""Who owns which field: `metadata.managedFields`, kept up to date after every write. Pure.

An entry is kept per manager, operation, API version (Update only) and subresource, as Kubernetes keeps it: an Update
takes what it changes from everybody else, at most ten Update entries stay apart, the oldest are merged into
`ancient-changes`. Entries stay in their wire form, their sets are never decoded (`fieldtrie.py`). Server-side apply is
`apply.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from federation.api.resources import Object
from federation.registry.fielddiff import changes
from federation.registry.fieldtrie import Trie, difference, in_element_order, is_trie, union
from federation.registry.schema.model import Schema

UPDATE: Final = "Update"
APPLY: Final = "Apply"
UPDATE_MANAGERS_MAX: Final = 10
ANCIENT: Final = "ancient-changes"
BEFORE_FIRST_APPLY: Final = "before-first-apply"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, how and when: the identity of an entry and its time."""

    manager: str
    operation: str
    api_version: str
    subresource: str
    now: datetime

    def owns(self, entry: Entry) -> bool:
        """Tell whether the entry is this writer's own; an applier keeps one entry for all API versions."""
        return (
            entry.get("manager") == self.manager
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
            and (self.operation == APPLY or entry.get("apiVersion") == self.api_version)
        )

    def entry(self, fields: Trie) -> Entry:
        """Return a new entry of this writer."""
        made: Entry = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        if self.subresource:
            made["subresource"] = self.subresource
        return made


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
    """Return `new` with the managedFields that it has after `manager` wrote it in place of `old` (None: created it).

    `new` may carry managedFields: `[{}]` resets them, other valid ones replace the live ones (not through a
    subresource), an empty list or none means the live ones. An object that lost its managedFields is not tracked again
    until somebody applies. Nothing in `old` or `new` is changed, both may be shared with the result.
    """
    metadata = new.get("metadata") or {}
    entries = _entries_before(old, metadata, subresource)
    if entries or old is None:
        writer = Writer(manager or "unknown", UPDATE, api_version, subresource, now)
        changed, removed = changes(schema, old or {}, new)
        entries = record_update(entries or [], writer, changed, removed)
    return with_entries(new, entries)


def _entries_before(old: Object | None, metadata: Any, subresource: str) -> list[Entry] | None:
    live = None if old is None else (old.get("metadata") or {}).get("managedFields")
    given = metadata.get("managedFields")
    if not given or given is live or (subresource and old is not None):
        return live or None
    if given == [{}]:
        return None
    return given if are_valid(given) else live


def are_valid(entries: Any) -> bool:
    """Tell whether managedFields from outside can be read."""
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and entry.get("operation") in (UPDATE, APPLY)
        and entry.get("fieldsType", "FieldsV1") in ("", "FieldsV1")
        and is_trie(entry.get("fieldsV1", {}))
        for entry in entries
    )


def with_entries(obj: Object, entries: Sequence[Entry] | None) -> Object:
    """Return the object with these managedFields, or with none; top level and metadata are its own."""
    metadata = dict(obj.get("metadata") or {})
    if entries:
        metadata["managedFields"] = list(entries)
    else:
        metadata.pop("managedFields", None)
    return {**obj, "metadata": metadata}


def record_update(entries: list[Entry], writer: Writer, changed: Trie, removed: Trie) -> list[Entry]:
    """Return the entries after an Update: changed fields are the writer's alone, removed ones nobody's."""
    if not changed and not removed:
        return entries
    mine: Trie = {}
    kept: list[Entry] = []
    previous: Entry | None = None
    for entry in entries:
        fields = entry.get("fieldsV1") or {}
        rest = difference(fields, removed) if removed else fields
        if writer.owns(entry):
            previous, mine = entry, rest
            continue
        if changed:
            rest = difference(rest, changed)
        if rest is fields:
            kept.append(entry)
        elif rest:
            kept.append({**entry, "fieldsV1": rest})
    if changed:
        kept.append(writer.entry(union(mine, in_element_order(changed))))
    elif previous is not None and mine:
        kept.append({**previous, "fieldsV1": mine})
    return in_order(_capped(kept))


def _capped(entries: list[Entry]) -> list[Entry]:
    """Merge the oldest Update entries of the same API version until there are no more than ten."""
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


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries as Kubernetes sorts them: Apply first, then by time, manager, version and subresource."""
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
