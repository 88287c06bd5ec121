"""Dot paths into plain objects, as FederatedTypeConfigs write them: `spec.replicas`, `metadata.generation`.

A path is split once, at parse time, into a tuple of keys; reading never raises and never copies.
"""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]


def split(text: str) -> Path:
    """Return the keys of a dot path; () for the empty text. A leading dot is tolerated."""
    return tuple(part for part in text.split(".") if part)


def get(obj: Mapping[str, Any], path: Path) -> Any:
    """Return the value at the path, None when any step is missing or no mapping."""
    value: Any = obj
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def to_pointer(path: Path) -> str:
    """Return the JSON pointer of the path: /spec/replicas."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)
