"""The shape of a Kubernetes object in another server's answer: caches and controllers rely on it.

A member can send anything. `client/http.py` checks single objects, `runtime/admittance.py` the items of lists and
watches. The content of spec and status is not checked here. Pure.
"""

from typing import Any

from federation.apimachinery.quantity import INT64_MAX

REVISION_LENGTH_MAX = 64
"""The longest resourceVersion, in characters: it is parsed as a number."""
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_NONE = type(None)
# Made once: it runs for every event of every member, and each `str | None` in an expression makes a new type.
_TEXT, _LIST, _MAPPING = (str, _NONE), (list, _NONE), (dict, _NONE)


def is_storable(obj: Any) -> bool:
    """Return True if the value has the shape of a stored Kubernetes object."""
    if not isinstance(obj, dict) or not isinstance(metadata := obj.get("metadata"), dict):
        return False
    name, version, generation = metadata.get("name"), metadata.get("resourceVersion"), metadata.get("generation")
    return (
        isinstance(name, str)
        and name != ""
        and isinstance(version, str)
        and len(version) <= REVISION_LENGTH_MAX
        and (generation is None or is_count(generation, INT64_MAX))
        and isinstance(metadata.get("namespace"), _TEXT)
        and isinstance(metadata.get("uid"), _TEXT)
        and isinstance(metadata.get("deletionTimestamp"), _TEXT)
        and _is_texts(metadata.get("labels"))
        and _is_texts(metadata.get("annotations"))
        and isinstance(metadata.get("finalizers"), _LIST)
        and _are_owners(metadata.get("ownerReferences"))
        and isinstance(obj.get("spec"), _MAPPING)
        and isinstance(obj.get("status"), _MAPPING)
    )


def is_count(value: Any, limit: int) -> bool:
    """Return True for an integer from 0 to `limit`."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= limit


def _is_texts(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and {str}.issuperset(map(type, value.values())))


def _are_owners(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_owner, value)))


def _is_owner(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(field), str) for field in _OWNER_FIELDS)
