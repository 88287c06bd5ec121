"""Dot paths of FederatedTypeConfigs: `spec.replicas`, `metadata.generation`.

A path is split once, at parse time, into a tuple of keys; reading never raises and never copies.
"""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]


def split(text: str) -> Path:
    """Return the keys of a dot path, () for "". A leading dot is ignored."""
    return tuple(part for part in text.split(".") if part)


def get(obj: Mapping[str, Any], path: Path) -> Any:
    """Return the value at the path, None when a key is missing or a parent is no mapping."""
    value: Any = obj
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value
