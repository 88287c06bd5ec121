"""Collect the configured fields of member objects for a CollectedStatus (docs/reference/status.md). Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from federation.api import names
from federation.apimachinery.dotpaths import Path
from federation.apimachinery.resources import Object

_PUBLIC_METADATA = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "labels"}
)
BYTES_MAX = 128 * 1024
"""The largest fields of one cluster, in bytes of JSON: the host stores them, and writes them at each change."""
_DIGITS_MAX = 18
"""So that the number is one in other JSON readers too."""
_PUBLIC_FIELDS = frozenset({"apiVersion", "kind", "type", "immutable"})


def _is_public(path: Path) -> bool:
    """Return whether a field of a Secret can be shown to those who may not read the Secret.

    Annotations cannot: `kubectl apply` stores the data in one.
    """
    return (path[:1] == ("metadata",) and path[1:2] != () and path[1] in _PUBLIC_METADATA) or path[0] in _PUBLIC_FIELDS


def collect(obj: Mapping[str, Any], fields: Sequence[Path], *, holds_secrets: bool = False) -> tuple[Object, str]:
    """Return the fields as a nested map, and an error with the missing fields, "" when there are none.

    With `holds_secrets`, only fields without confidential data are collected; the error names the others.
    """
    collected: Object = {}
    missing = []
    for path in fields:
        if holds_secrets and not _is_public(path):
            missing.append(f"{'.'.join(path)}: may hold the data of the Secret")
            continue
        value, problem = _read(obj, path)
        if problem:
            missing.append(f"{'.'.join(path)}: {problem}")
        else:
            _put(collected, path, value)
    return collected, f"Failed to get those fields: {', '.join(sorted(missing))}" if missing else ""


def _read(obj: Mapping[str, Any], path: Path) -> tuple[Any, str]:
    value: Any = obj
    for index, key in enumerate(path):
        if not isinstance(value, Mapping):
            return None, f"{'.'.join(path[:index])} is not a map"
        if key not in value:
            return None, "not found"
        value = value[key]
    return value, ""


def _put(target: Object, path: Path, value: Any) -> None:
    for key in path[:-1]:
        inner = target.get(key)
        # A longer path may follow a prefix of it, whose value belongs to the member object and must not change.
        inner = dict(inner) if isinstance(inner, Mapping) else {}
        target[key] = inner
        target = inner
    target[path[-1]] = value


def to_entry(cluster: str, obj: Mapping[str, Any], fields: Sequence[Path], *, holds_secrets: bool = False) -> Object:
    """Return the entry of `clusters` for one cluster's object."""
    collected, error = collect(obj, fields, holds_secrets=holds_secrets)
    if (size := len(orjson.dumps(collected))) > BYTES_MAX:
        collected, error = {}, f"The fields have {size} bytes; at most {BYTES_MAX} are collected"
    entry: Object = {"cluster": cluster, "collectedFields": collected}
    if error:
        entry["error"] = error
    return entry


_DIGESTS = (
    ("replicas", "replicas"),
    ("available-replicas", "availableReplicas"),
    ("ready-replicas", "readyReplicas"),
    ("observed-generation", "observedGeneration"),
)


def replicaset_digests(members: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return the annotation latest-replicaset-digests of the member Deployments, None without digests."""
    digests = []
    for cluster in sorted(members):
        metadata = members[cluster].get("metadata") or {}
        annotations = metadata.get("annotations") or {}
        name = annotations.get(names.LATEST_REPLICASET_PREFIX + "name")
        if not name:
            continue
        digest: Object = {"clusterName": cluster, "replicasetName": name}
        for key, field in _DIGESTS:
            if number := _number(annotations.get(names.LATEST_REPLICASET_PREFIX + key)):
                digest[field] = number
        if generation := _number(annotations.get(names.SOURCE_GENERATION)):
            digest["sourceGeneration"] = generation
        digests.append(digest)
    return orjson.dumps(digests).decode() if digests else None


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) <= _DIGITS_MAX else 0
