"""Compute the three-way patch that client-side `kubectl apply` sends for a manifest. Pure.

The last applied manifest is in an annotation of the live object. A field that was in it and is not in the new manifest
is removed; fields set by others stay. Built-in kinds get a strategic merge patch with the merge keys of their schemas,
custom resources a merge patch, as in kubectl.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery import wellknown
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.semantics.schema import builtin
from federation.apiserver.semantics.schema.model import Schema
from federation.client.client import PatchType

MANAGER = "kubectl-client-side-apply"


def last_applied(live: Mapping[str, Any]) -> Object | None:
    """Return the manifest that kubectl applied last, None when the annotation is absent or does not parse."""
    return parse_object((live["metadata"].get("annotations") or {}).get(wellknown.LAST_APPLIED_CONFIGURATION, ""))


def three_way(resource: Resource, last: Mapping[str, Any], manifest: Mapping[str, Any]) -> tuple[PatchType, Object]:
    """Return the patch and its type; the patch also updates the last-applied annotation."""
    is_builtin = builtin.definition_name(resource.group, resource.version, resource.kind) is not None
    schema = builtin.builtin_schema(resource.group, resource.version, resource.kind) if is_builtin else None
    wanted = {key: value for key, value in manifest.items() if key != "status"}
    recorded = {**wanted, "metadata": _without_last_applied(wanted["metadata"])}
    text = orjson.dumps(recorded, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    metadata = wanted["metadata"]
    annotations = {**(metadata.get("annotations") or {}), wellknown.LAST_APPLIED_CONFIGURATION: text}
    wanted["metadata"] = {**metadata, "annotations": annotations}
    patch_type = PatchType.STRATEGIC if is_builtin else PatchType.MERGE
    return patch_type, _patch_map(schema, {key: value for key, value in last.items() if key != "status"}, wanted)


def _without_last_applied(metadata: Mapping[str, Any]) -> Object:
    annotations = metadata.get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if key != wellknown.LAST_APPLIED_CONFIGURATION}
    return {**metadata, "annotations": kept}


def _patch_map(schema: Schema | None, last: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    patch: Object = {key: None for key in last if key not in wanted}
    for key, value in wanted.items():
        field = (schema.properties.get(key) or schema.additional) if schema is not None else None
        before = last.get(key)
        if isinstance(value, Mapping):
            patch[key] = _patch_map(field, before if isinstance(before, Mapping) else {}, value)
            if field is not None and "retainKeys" in field.patch_strategy:
                patch[key]["$retainKeys"] = sorted(value)
        elif isinstance(value, list) and field is not None and "merge" in field.patch_strategy:
            patch |= _patch_list(key, field, before if isinstance(before, list) else [], value)
        else:
            patch[key] = value
    return patch


def _patch_list(name: str, field: Schema, last: list[Any], wanted: list[Any]) -> Object:
    """Return the patch entries, with strategic merge directives, that turn a merged list into the wanted one."""
    key = field.patch_merge_key
    if not key:
        gone = [value for value in last if value not in wanted]
        return {name: wanted} | ({f"$deleteFromPrimitiveList/{name}": gone} if gone else {})
    last_by_key = {item.get(key): item for item in last if isinstance(item, Mapping)}
    wanted_keys = {item.get(key) for item in wanted if isinstance(item, Mapping)}
    items = []
    for item in wanted:
        patched = _patch_map(field.items, last_by_key.get(item.get(key), {}), item)
        if "retainKeys" in field.patch_strategy:
            patched["$retainKeys"] = sorted(item)
        items.append(patched)
    removed = [{"$patch": "delete", key: value} for value in last_by_key if value not in wanted_keys]
    order = [{key: item[key]} for item in wanted if key in item]
    return {name: items + removed, f"$setElementOrder/{name}": order}
