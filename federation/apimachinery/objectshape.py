"""The shape of a Kubernetes object in another server's answer: caches and controllers rely on it.

A member can send anything. `client/http.py` checks single objects, `runtime/admittance.py` the items of lists and
watches. The content of spec and status is not checked here. Pure.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.quantity import INT64_MAX

REVISION_LENGTH_MAX = 64
"""The longest resourceVersion, in characters: it is parsed as a number."""
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_TEXT = frozenset((str, type(None)))
_LIST = frozenset((list, type(None)))
_MAPPING = frozenset((dict, type(None)))


def is_storable(obj: Any) -> bool:
    """Return True if the parsed JSON value has the shape of a stored Kubernetes object."""
    # It runs for every event of every member. Parsed JSON has no subclasses, and comparing types needs no calls.
    if type(obj) is not dict or type(metadata := obj.get("metadata")) is not dict:
        return False
    field, labels, annotations = metadata.get, metadata.get("labels"), metadata.get("annotations")
    generation, version, owners = field("generation"), field("resourceVersion"), field("ownerReferences")
    return (
        type(name := field("name")) is str
        and name != ""
        and type(version) is str
        and len(version) <= REVISION_LENGTH_MAX
        and (generation is None or (type(generation) is int and 0 <= generation <= INT64_MAX))
        and type(field("namespace")) in _TEXT
        and type(field("uid")) in _TEXT
        and type(field("deletionTimestamp")) in _TEXT
        and type(field("finalizers")) in _LIST
        and type(obj.get("spec")) in _MAPPING
        and type(obj.get("status")) in _MAPPING
        and (labels is None or _has_only_texts(labels))
        and (annotations is None or _has_only_texts(annotations))
        and (owners is None or (type(owners) is list and all(map(_is_owner, owners))))
    )


def is_count(value: Any, limit: int) -> bool:
    """Return True for an integer from 0 to `limit`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limit


def _has_only_texts(value: Any) -> bool:
    return type(value) is dict and {str}.issuperset(map(type, value.values()))


def _is_owner(value: Any) -> bool:
    return type(value) is dict and {str}.issuperset([type(value.get(field)) for field in _OWNER_FIELDS])


def revision_of(obj: Mapping[str, Any] | None) -> int:
    """Return an object's resourceVersion as a number, 0 when it has none that is one."""
    return to_revision(((obj or {}).get("metadata") or {}).get("resourceVersion") or "")


def to_revision(resource_version: str) -> int:
    """Return a resourceVersion as a number, 0 when it is none.

    Kubernetes guarantees the order since 1.35, and every server before kept to it.
    """
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) <= REVISION_LENGTH_MAX else 0
