"""The fields of an object that a manager has applied: what it must apply again to keep them. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery.resources import Object


def applied_status(obj: Mapping[str, Any], manager: str) -> Object:
    """Return the fields of the status that the manager owns by server-side apply on the subresource."""
    for entry in (obj.get("metadata") or {}).get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource")) == (manager, "Apply", "status"):
            owned = (entry.get("fieldsV1") or {}).get("f:status") or {}
            found = _owned(obj.get("status") or {}, owned)
            return found if isinstance(found, dict) else {}
    return {}


def _owned(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return the part of a value that the fields name; a field without parts is owned as a whole."""
    parts = {key: inner for key, inner in fields.items() if key != "."}
    if not parts:
        return value
    if isinstance(value, Mapping):
        return {
            key[2:]: _owned(value[key[2:]], inner)
            for key, inner in parts.items()
            if key.startswith("f:") and key[2:] in value
        }
    if isinstance(value, list):
        found = []
        for key, inner in parts.items():
            if not key.startswith("k:"):
                continue
            keys = orjson.loads(key[2:])
            for item in value:
                if isinstance(item, Mapping) and all(item.get(name) == wanted for name, wanted in keys.items()):
                    owned = _owned(item, inner)
                    found.append({**keys, **owned} if isinstance(owned, dict) else owned)
        return found
    return value
