"""Fields that the host's admission fills in because the user did not write them, such as default classes. Pure.

Such a value is the host's. A member has default classes, LimitRanges and service accounts of its own, and may not have
what the host's name. The managed fields of
the source tell what a user wrote: an API server records them before admission. An object without such a record, as a
controller inside the API server creates it, is delivered as it is. `runtime/transforms.py` keeps that part of them.

Reference: docs/reference/federation.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from federation.apimachinery.resources import INGRESSES, PERSISTENT_VOLUME_CLAIMS, PODS, Object
from federation.planning.federatedobject.finished import kind_of

_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (PERSISTENT_VOLUME_CLAIMS.group, PERSISTENT_VOLUME_CLAIMS.kind): ("storageClassName",),
    (INGRESSES.group, INGRESSES.kind): ("ingressClassName",),
    (PODS.group, PODS.kind): (
        "imagePullSecrets",
        "overhead",
        "priorityClassName",
        "serviceAccount",
        "serviceAccountName",
    ),
}
"""The fields of `spec` by group and kind."""
_CONTAINERS = ("containers", "initContainers")
_AMOUNTS = ("limits", "requests")


def without_admitted(obj: Mapping[str, Any], spec: Object) -> Object:
    """Return the source's spec without the fields that only the host's admission has written."""
    kind = kind_of(obj)
    is_pod = kind == (PODS.group, PODS.kind)
    fields = [field for field in _FIELDS.get(kind, ()) if field in spec]
    if not (fields or is_pod):
        return spec
    records = list(_records(obj["metadata"].get("managedFields")))
    if not records:
        return spec
    written = {field for record in records for field in record}
    unwritten = {field for field in fields if f"f:{field}" not in written}
    if is_pod:
        spec = _without_admitted_amounts(spec, records)
    return {key: value for key, value in spec.items() if key not in unwritten} if unwritten else spec


def _records(managed: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what each writer wrote of `spec`, as managed fields have it."""
    for entry in managed if isinstance(managed, list) else ():
        fields = entry.get("fieldsV1") if isinstance(entry, Mapping) and not entry.get("subresource") else None
        spec = fields.get("f:spec") if isinstance(fields, Mapping) else None
        if isinstance(spec, Mapping) and spec:
            yield spec


def _without_admitted_amounts(spec: Object, records: Sequence[Mapping[str, Any]]) -> Object:
    """Return a Pod's spec without requests and limits that only a LimitRange of the host has written."""
    changed: Object = {}
    for field in _CONTAINERS:
        containers = spec.get(field)
        if isinstance(containers, list):
            kept = [_container(each, [_part(record, f"f:{field}") for record in records]) for each in containers]
            if any(new is not old for new, old in zip(kept, containers, strict=True)):
                changed[field] = kept
    return {**spec, **changed} if changed else spec


def _container(container: Any, records: Iterable[Mapping[str, Any]]) -> Any:
    resources = container.get("resources") if isinstance(container, Mapping) else None
    if not isinstance(resources, Mapping) or not any(resources.get(part) for part in _AMOUNTS):
        return container
    item = f'k:{{"name":"{container.get("name")}"}}'
    written = [_part(_part(record, item), "f:resources") for record in records]
    kept = dict(resources)
    for part in _AMOUNTS:
        amounts = resources.get(part)
        if isinstance(amounts, Mapping):
            named = {key for each in written for key in _part(each, f"f:{part}")}
            kept[part] = {name: amount for name, amount in amounts.items() if f"f:{name}" in named}
            if not kept[part]:
                del kept[part]
    return container if kept == resources else {**container, "resources": kept}


def _part(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = record.get(key)
    return found if isinstance(found, Mapping) else {}
