"""Dot paths of fields: `spec.replicas`, `metadata.generation`.

Reading never raises and never copies. A path that is read often is split once, into a tuple of keys.
"""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]


def split(text: str) -> Path:
    """Return the keys of a dot path, () for "". A leading dot is ignored."""
    return tuple(part for part in text.split(".") if part)


def value_at(obj: Any, text: str) -> Any:
    """Return the value at a dot path that is not split, as `get` does."""
    return get(obj, split(text))


def get(obj: Any, path: Path) -> Any:
    """Return the value at the path, None when a key is missing or a parent is no mapping."""
    value: Any = obj
    for key in path:
        if value.__class__ is not dict and not isinstance(value, Mapping):  # the class is faster to check
            return None
        value = value.get(key)
    return value
