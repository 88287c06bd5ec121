"""What `kubectl apply` (client-side) would send for a manifest: a three-way patch of last applied, wanted and live.

An object that kubectl manages in that way carries what was applied last. A field that was there and is not in the
manifest any more is removed; what others set stays. For built-in kinds it is a strategic merge patch with the merge
keys of their schemas, for custom ones a merge patch, as kubectl chooses. Pure.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.resources import Object, Resource
from federation.client.protocol import PatchType
from federation.registry.schema import builtin
from federation.registry.schema.model import Schema

MANAGER = "kubectl-client-side-apply"


def last_applied(live: Mapping[str, Any]) -> Object | None:
    """Return what kubectl applied last, None when it did not, or what it noted is unreadable."""
    text = (live["metadata"].get("annotations") or {}).get(names.LAST_APPLIED_CONFIGURATION)
    if not text:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def three_way(resource: Resource, last: Mapping[str, Any], manifest: Mapping[str, Any]) -> tuple[PatchType, Object]:
    """Return the patch and its type; it also notes what is applied now."""
    is_builtin = builtin.definition_name(resource.group, resource.version, resource.kind) is not None
    schema = builtin.builtin_schema(resource.group, resource.version, resource.kind) if is_builtin else None
    wanted = {key: value for key, value in manifest.items() if key != "status"}
    noted = {**wanted, "metadata": _without_note(wanted["metadata"])}
    text = orjson.dumps(noted, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    metadata = wanted["metadata"]
    annotations = {**(metadata.get("annotations") or {}), names.LAST_APPLIED_CONFIGURATION: text}
    wanted["metadata"] = {**metadata, "annotations": annotations}
    patch_type = PatchType.STRATEGIC if is_builtin else PatchType.MERGE
    return patch_type, _map(schema, {key: value for key, value in last.items() if key != "status"}, wanted)


def _without_note(metadata: Mapping[str, Any]) -> Object:
    annotations = metadata.get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if key != names.LAST_APPLIED_CONFIGURATION}
    return {**metadata, "annotations": kept}


def _map(schema: Schema | None, last: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    patch: Object = {key: None for key in last if key not in wanted}
    for key, value in wanted.items():
        field = (schema.properties.get(key) or schema.additional) if schema is not None else None
        before = last.get(key)
        if isinstance(value, Mapping):
            patch[key] = _map(field, before if isinstance(before, Mapping) else {}, value)
            if field is not None and "retainKeys" in field.patch_strategy:
                patch[key]["$retainKeys"] = sorted(value)
        elif isinstance(value, list) and field is not None and "merge" in field.patch_strategy:
            patch |= _list(key, field, before if isinstance(before, list) else [], value)
        else:
            patch[key] = value
    return patch


def _list(name: str, field: Schema, last: list[Any], wanted: list[Any]) -> Object:
    """Return the entries of a patch that make a merged list what is wanted."""
    key = field.patch_merge_key
    if not key:
        gone = [value for value in last if value not in wanted]
        return {name: wanted} | ({f"$deleteFromPrimitiveList/{name}": gone} if gone else {})
    held = {item.get(key): item for item in last if isinstance(item, Mapping)}
    kept = {item.get(key) for item in wanted if isinstance(item, Mapping)}
    items = []
    for item in wanted:
        patched = _map(field.items, held.get(item.get(key), {}), item)
        if "retainKeys" in field.patch_strategy:
            patched["$retainKeys"] = sorted(item)
        items.append(patched)
    removed = [{"$patch": "delete", key: value} for value in held if value not in kept]
    order = [{key: item[key]} for item in wanted if key in item]
    return {name: items + removed, f"$setElementOrder/{name}": order}
