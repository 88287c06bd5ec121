"""What a CollectedStatus shows of one member object: the configured fields, and what could not be found (spec §11).

Pure; `controllers/statuscollect` brings the objects and writes the result.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from federation.api import names
from federation.api.paths import Path
from federation.api.resources import Object


def collect(obj: Mapping[str, Any], fields: Sequence[Path]) -> tuple[Object, str]:
    """Return the fields as a nested map, and an error text that names those that are missing ("" when none is)."""
    collected: Object = {}
    missing = []
    for path in fields:
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
        # A longer path may follow a shorter one that holds it already: never write into the member's own object.
        inner = dict(inner) if isinstance(inner, Mapping) else {}
        target[key] = inner
        target = inner
    target[path[-1]] = value


def to_entry(cluster: str, obj: Mapping[str, Any], fields: Sequence[Path]) -> Object:
    """Return the entry of `clusters` for one cluster's object."""
    collected, error = collect(obj, fields)
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
    """Return the value of the latest-replicaset-digests annotation for member Deployments, None without any digest."""
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
    return int(text) if text and text.isdecimal() else 0
