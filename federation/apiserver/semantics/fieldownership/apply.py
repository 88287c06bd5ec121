"""Server-side apply: merge an apply configuration into the live object and update its managed fields. Pure.

The steps: compute the field set of the configuration; merge it; prune the fields of the manager's last configuration
that no manager owns any more; report conflicts with other managers, or with force take over their fields. Behaviour
and texts follow structured-merge-diff and kube-apiserver's field manager. `fieldset.py` has the field sets,
`merging.py` merge and prune, `managedfields.py` the entries. A repeated apply returns an object equal to the live one.
"""

from datetime import datetime
from typing import Any, Final

import orjson

from federation.apimachinery.errors import BadRequest, Conflict, cause
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.fieldownership.fielddiff import added_object, compare_objects, to_field_set
from federation.apiserver.semantics.fieldownership.fieldset import FieldSet, difference, intersection, paths
from federation.apiserver.semantics.fieldownership.managedfields import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Entry,
    FieldManager,
    release_fields,
    sort_entries,
    with_entries,
)
from federation.apiserver.semantics.fieldownership.merging import merge_object, prune_unowned
from federation.apiserver.semantics.schema.model import Schema
from federation.apiserver.semantics.schema.valuevalidation import to_json

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_SCALE_VERSION: Final = "autoscaling/v1"
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
    """Return the object with new managedFields after `manager` applied `applied` to `live` (None: create).

    `ignored` lists top-level fields that this endpoint does not write (`status` of a kind with a status subresource);
    they are neither merged nor owned. The status subresource writes only `status`. Conflict lists every field that
    another manager owns with another value; BadRequest if the configuration does not match the schema. Neither `live`
    nor `applied` is changed; the result shares parts with both.
    """
    if subresource == "status":
        ignored = frozenset(applied) - {"status", "apiVersion", "kind"}
    field_manager = FieldManager(manager, APPLY, api_version, subresource, now)
    errors: list[str] = []
    wanted = to_field_set(schema, applied, ignored, errors)
    if errors:
        raise _not_typed(applied, api_version, errors)
    entries = _entries(schema, live, field_manager)
    mine = next((entry for entry in entries if field_manager.matches(entry)), None)
    others = [entry for entry in entries if entry is not mine]
    merged, changed = merge_object(schema, live or _identity(applied), applied, ignored)
    removed: FieldSet = {}
    last: FieldSet = (mine.get("fieldsV1") or {}) if mine is not None else {}
    if last and last != wanted:
        owners = [_with_name(wanted), *(entry.get("fieldsV1") or {} for entry in others)]
        merged = prune_unowned(schema, merged, last, owners, removed)
    if changed and others and not force:
        _check_conflicts(schema, live, others, changed, field_manager)
    if mine is not None and not changed and not removed and last == wanted and mine.get("apiVersion") == api_version:
        return with_entries(merged, entries)
    kept = release_fields(others, changed, removed)
    if wanted:
        is_same = mine is not None and not changed and not removed and last == wanted
        kept.append({**mine, "apiVersion": api_version} if mine and is_same else field_manager.new_entry(wanted))
    return with_entries(_with_last_applied(live, merged, applied, field_manager), sort_entries(kept))


def _identity(applied: Object) -> Object:
    return {name: applied[name] for name in ("apiVersion", "kind") if name in applied}


def _with_name(wanted: FieldSet) -> FieldSet:
    """Return the set with metadata.name, which every configuration has, so that metadata always has an owner."""
    return {**wanted, "f:metadata": {**wanted.get("f:metadata", {}), "f:name": {}}}


def _entries(schema: Schema, live: Object | None, field_manager: FieldManager) -> list[Entry]:
    """Return the live entries; `before-first-apply` owns all fields of an object without managedFields."""
    if live is None:
        return []
    entries: list[Entry] = (live.get("metadata") or {}).get("managedFields") or []
    if entries:
        return entries
    before = FieldManager(BEFORE_FIRST_APPLY, UPDATE, field_manager.api_version, "", field_manager.now)
    fields = added_object(schema, live)
    return [before.new_entry(fields)] if fields else []


def _check_conflicts(
    schema: Schema,
    live: Object | None,
    others: list[Entry],
    changed: FieldSet,
    field_manager: FieldManager,
) -> None:
    conflicts = []
    for entry in others:
        shared = intersection(entry.get("fieldsV1") or {}, changed)
        if shared:
            conflicts.append((entry, shared))
    if conflicts and field_manager.manager == _KUBECTL and live is not None:
        allowed = _last_applied_fields(schema, live)
        conflicts = [(entry, rest) for entry, shared in conflicts if (rest := difference(shared, allowed))]
    if conflicts:
        raise _conflict(conflicts, _SCALE_VERSION if field_manager.subresource == "scale" else "")


def _conflict(conflicts: list[tuple[Entry, FieldSet]], version: str) -> Conflict:
    causes = []
    by_manager: dict[str, list[str]] = {}
    for entry, shared in conflicts:
        shown = _format_manager(entry, version)
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


def _format_manager(entry: Entry, version: str) -> str:
    """Return a manager in the format of conflict messages; `version` is shown in place of its own."""
    shown = to_json(entry.get("manager") or "")
    if entry.get("subresource"):
        shown += f" with subresource {to_json(entry['subresource'])}"
    if entry.get("operation") == UPDATE:
        shown += f" using {version or entry.get('apiVersion')}"
    return shown


def _not_typed(applied: Object, api_version: str, errors: list[str]) -> BadRequest:
    metadata = applied.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    listed = errors[0] if len(errors) == 1 else "errors:\n" + "".join(f"  {error}\n" for error in errors)
    # kube-apiserver answers 500 here. This server answers 400, because the error is the client's.
    return BadRequest(
        f"failed to create typed patch object ({name}; {api_version}, Kind={applied.get('kind', '')}): {listed}"
    )


def _last_applied(live: Object | None) -> Any:
    annotations = ((live or {}).get("metadata") or {}).get("annotations") or {}
    return annotations.get(LAST_APPLIED)


def _last_applied_fields(schema: Schema, live: Object) -> FieldSet:
    """Return the fields that still have the value of kubectl's client-side apply; kubectl may take them over."""
    last = parse_object(_last_applied(live) or "")
    if last is None:
        return {}
    fields = to_field_set(schema, last, _NOTHING, [])
    changed, removed = compare_objects(schema, last, live)
    return difference(difference(fields, changed), removed)


def _with_last_applied(live: Object | None, merged: Object, applied: Object, field_manager: FieldManager) -> Object:
    """Update the last-applied annotation if kubectl applies to an object that has one."""
    if field_manager.manager != _KUBECTL or not _last_applied(live) or not _last_applied(merged):
        return merged
    config = {**applied, "metadata": dict(applied.get("metadata") or {})}
    annotations = {**(config["metadata"].get("annotations") or {})}
    annotations.pop(LAST_APPLIED, None)
    config["metadata"]["annotations"] = annotations
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    metadata = {**merged["metadata"], "annotations": {**merged["metadata"]["annotations"], LAST_APPLIED: text}}
    return {**merged, "metadata": metadata}
