"""Fields that the host's admission fills in because the user did not write them, such as default classes. Pure.

Such a value is the host's. A member has default classes of its own, and may not have the host's. The managed fields of
the source tell what a user wrote: an API server records them before admission. An object without such a record, as a
controller inside the API server creates it, is delivered as it is. `runtime/transforms.py` keeps that part of them.

Reference: docs/reference/federation.md.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import INGRESSES, PERSISTENT_VOLUME_CLAIMS, PODS, Object
from federation.planning.federatedobject.finished import kind_of

_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (PERSISTENT_VOLUME_CLAIMS.group, PERSISTENT_VOLUME_CLAIMS.kind): ("storageClassName",),
    (INGRESSES.group, INGRESSES.kind): ("ingressClassName",),
    (PODS.group, PODS.kind): ("overhead", "priorityClassName"),
}
"""The fields of `spec` by group and kind."""


def without_admitted(obj: Mapping[str, Any], spec: Object) -> Object:
    """Return the source's spec without the fields that only the host's admission has written."""
    fields = [field for field in _FIELDS.get(kind_of(obj), ()) if field in spec]
    if not fields:
        return spec
    written = _written(obj["metadata"].get("managedFields"))
    unwritten = {field for field in fields if f"f:{field}" not in written} if written else ()
    return {key: value for key, value in spec.items() if key not in unwritten} if unwritten else spec


def _written(managed: Any) -> set[str]:
    found: set[str] = set()
    for entry in managed if isinstance(managed, list) else ():
        fields = entry.get("fieldsV1") if isinstance(entry, Mapping) and not entry.get("subresource") else None
        spec = fields.get("f:spec") if isinstance(fields, Mapping) else None
        found |= spec.keys() if isinstance(spec, Mapping) else set()
    return found
