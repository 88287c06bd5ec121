"""Server-side apply: merge what a manager wants into the live object, and keep the books of who owns which field.
Pure.

The steps of one apply: name the fields of the configuration → merge it → remove what this manager named last time and
nobody names now → refuse, or with force take over, what others own and would change. Follows structured-merge-diff and
kube-apiserver's field manager, texts included. Sets of fields are `fieldtrie.py`, merging is `merging.py`, the entries
`managedfields.py`. A repeated apply that changes nothing returns an object that equals the live one.
"""

from datetime import datetime
from typing import Any, Final

import orjson

from federation.api.resources import Object
from federation.base.errors import BadRequest, Conflict, cause
from federation.registry.fielddiff import added_object, changes, named
from federation.registry.fieldtrie import Trie, difference, overlap, paths
from federation.registry.managedfields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entry,
    Writer,
    in_order,
    with_entries,
)
from federation.registry.merging import merge_object, prune
from federation.registry.schema.model import Schema

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL: Final = "kubectl"
_NOTHING: Final[frozenset[str]] = frozenset()


def apply(
    schema: Schema,
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    now: datetime,
    ignored: frozenset[str] = _NOTHING,
) -> Object:
    """Return the object after `manager` applied `applied` to `live` (None: it does not exist), with its managedFields.

    `ignored` names top-level fields that this endpoint does not write (`status` of a kind with a status subresource);
    they are neither merged nor owned. Through the status subresource, only `status` counts. Conflict names every field
    that others own with another value; a configuration that the schema does not allow is an ApiError 500 as in
    Kubernetes. Neither `live` nor `applied` is changed; the result shares parts with both.
    """
    if subresource == "status":
        ignored = frozenset(applied) - {"status", "apiVersion", "kind"}
    writer = Writer(manager, APPLY, api_version, subresource, now)
    errors: list[str] = []
    wanted = named(schema, applied, ignored, errors)
    if errors:
        raise _not_typed(applied, api_version, errors)
    entries = _entries(schema, live, writer)
    mine = next((entry for entry in entries if writer.owns(entry)), None)
    others = [entry for entry in entries if entry is not mine]
    merged, changed = merge_object(schema, live or _identity(applied), applied, ignored)
    removed: Trie = {}
    last: Trie = (mine.get("fieldsV1") or {}) if mine is not None else {}
    if last and last != wanted:
        owners = [_with_name(wanted), *(entry.get("fieldsV1") or {} for entry in others)]
        merged = prune(schema, merged, last, owners, removed)
    if changed and others:
        _check_conflicts(schema, live, others, changed, writer, force=force)
    if mine is not None and not changed and not removed and last == wanted and mine.get("apiVersion") == api_version:
        return with_entries(merged, entries)
    kept = _without(others, changed, removed)
    if wanted:
        is_same = mine is not None and not changed and not removed and last == wanted
        kept.append({**mine, "apiVersion": api_version} if mine and is_same else writer.entry(wanted))
    return with_entries(_with_last_applied(live, merged, applied, writer), in_order(kept))


def _identity(applied: Object) -> Object:
    return {name: applied[name] for name in ("apiVersion", "kind") if name in applied}


def _with_name(wanted: Trie) -> Trie:
    """Every configuration names the object, so that its metadata as a whole is never without an owner."""
    return {**wanted, "f:metadata": {**wanted.get("f:metadata", {}), "f:name": {}}}


def _entries(schema: Schema, live: Object | None, writer: Writer) -> list[Entry]:
    """Return the live entries; everything in an object that was never tracked belongs to `before-first-apply`."""
    if live is None:
        return []
    entries: list[Entry] = (live.get("metadata") or {}).get("managedFields") or []
    if entries:
        return entries
    before = Writer(BEFORE_FIRST_APPLY, UPDATE, writer.api_version, "", writer.now)
    fields = added_object(schema, live)
    return [before.entry(fields)] if fields else []


def _without(entries: list[Entry], changed: Trie, removed: Trie) -> list[Entry]:
    """Return the others' entries without what this apply took over or removed."""
    kept = []
    for entry in entries:
        fields = entry.get("fieldsV1") or {}
        rest = difference(fields, changed) if changed else fields
        if removed:
            rest = difference(rest, removed)
        if rest is fields:
            kept.append(entry)
        elif rest:
            kept.append({**entry, "fieldsV1": rest})
    return kept


def _check_conflicts(
    schema: Schema, live: Object | None, others: list[Entry], changed: Trie, writer: Writer, *, force: bool
) -> None:
    if force:
        return
    conflicts = []
    for entry in others:
        shared = overlap(entry.get("fieldsV1") or {}, changed)
        if shared:
            conflicts.append((entry, shared))
    if conflicts and writer.manager == _KUBECTL and live is not None:
        allowed = _last_applied_fields(schema, live)
        conflicts = [(entry, rest) for entry, shared in conflicts if (rest := difference(shared, allowed))]
    if conflicts:
        raise _conflict(conflicts)


def _conflict(conflicts: list[tuple[Entry, Trie]]) -> Conflict:
    causes = []
    by_manager: dict[str, list[str]] = {}
    for entry, shared in conflicts:
        shown = _shown(entry)
        for path in paths(shared):
            causes.append(cause("FieldManagerConflict", f"conflict with {shown}", path))
            by_manager.setdefault(shown, []).append(path)
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for shown in sorted(by_manager):
            lines += [f"conflicts with {shown}:", *(f"- {path}" for path in by_manager[shown])]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return Conflict(text, details={"causes": causes})


def _shown(entry: Entry) -> str:
    """Return a manager as a conflict names it; its time is no part of its identity."""
    shown = orjson.dumps(entry.get("manager") or "").decode()
    if entry.get("subresource"):
        shown += f" with subresource {orjson.dumps(entry['subresource']).decode()}"
    if entry.get("operation") == UPDATE:
        shown += f" using {entry.get('apiVersion')}"
    return shown


def _not_typed(applied: Object, api_version: str, errors: list[str]) -> BadRequest:
    metadata = applied.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    listed = errors[0] if len(errors) == 1 else "errors:\n" + "".join(f"  {error}\n" for error in errors)
    # kube-apiserver says this with a 500; what a client did wrong is never our internal error.
    return BadRequest(
        f"failed to create typed patch object ({name}; {api_version}, Kind={applied.get('kind', '')}): {listed}"
    )


def _last_applied(live: Object | None) -> Any:
    annotations = ((live or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get(LAST_APPLIED)


def _last_applied_fields(schema: Schema, live: Object) -> Trie:
    """Return the fields that kubectl's client-side apply set and that still have its values: kubectl may take them."""
    text = _last_applied(live)
    if not text:
        return {}
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(last, dict):
        return {}
    fields = named(schema, last, _NOTHING, [])
    changed, removed = changes(schema, last, live)
    return difference(difference(fields, changed), removed)


def _with_last_applied(live: Object | None, merged: Object, applied: Object, writer: Writer) -> Object:
    """Keep the annotation of client-side apply in step where kubectl applies to an object that has it."""
    if writer.manager != _KUBECTL or not _last_applied(live) or not _last_applied(merged):
        return merged
    config = {**applied, "metadata": dict(applied.get("metadata") or {})}
    annotations = {**(config["metadata"].get("annotations") or {})}
    annotations.pop(LAST_APPLIED, None)
    config["metadata"]["annotations"] = annotations
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    metadata = {**merged["metadata"], "annotations": {**merged["metadata"]["annotations"], LAST_APPLIED: text}}
    return {**merged, "metadata": metadata}
