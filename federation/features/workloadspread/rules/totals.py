"""The replicas of a WorkloadSpread's target, and the pods that its filter selects. Pure.

The total comes from the paths of `targetFilter.replicasPathList`, else from the whitelist's path, else from the field
of the kind, else from the scale subresource. Only percentages need it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.selectors import EVERYTHING, Selector, compile_label_selector

UNKNOWN = -1
"""The total of a workload that shows no replicas."""
_PATHS = {
    "Deployment": "spec.replicas",
    "ReplicaSet": "spec.replicas",
    "CloneSet": "spec.replicas",
    "StatefulSet": "spec.replicas",
    "Job": "spec.parallelism",
}


def filter_of(spread: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `spec.targetFilter`, {} when it is absent."""
    return (spread.get("spec") or {}).get("targetFilter") or {}


def pod_selector(spread: Mapping[str, Any]) -> Selector:
    """Return the selector of the filter, which selects all pods when it is absent; SelectorError when malformed."""
    selector = filter_of(spread).get("selector")
    return EVERYTHING if selector is None else compile_label_selector(selector)


def is_selected(spread: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Return True if the filter selects the pod; SelectorError when its selector is malformed."""
    return pod_selector(spread).matches((pod.get("metadata") or {}).get("labels"))


def total_replicas(
    spread: Mapping[str, Any],
    workload: Mapping[str, Any] | None,
    *,
    replicas_path: str = "",
    scale: Mapping[str, Any] | None = None,
) -> int:
    """Return the replicas of the target, `UNKNOWN` when it shows none, 0 when it does not exist.

    `replicas_path` is that of the whitelist. `scale` is the scale subresource of a kind that has one; it is read only
    for kinds without a path. InvalidInput when a path leads to no integer.
    """
    if workload is None:
        return 0
    if paths := filter_of(spread).get("replicasPathList"):
        return sum(replicas_at(workload, path) for path in paths)
    if replicas_path:
        return replicas_at(workload, replicas_path)
    kind = ((spread.get("spec") or {}).get("targetRef") or {}).get("kind") or workload.get("kind")
    if kind in _PATHS:
        section, field = _PATHS[kind].split(".")
        value = (workload.get(section) or {}).get(field)
        return 1 if value is None else _integer(value, _PATHS[kind])
    if scale is not None:
        return _integer((scale.get("spec") or {}).get("replicas") or 0, "spec.replicas")
    return UNKNOWN


def has_pods(workload: Mapping[str, Any] | None) -> bool:
    """Return False if the pods of a workload do not count: it is gone, being deleted, or scaled to 0."""
    if workload is None or (workload.get("metadata") or {}).get("deletionTimestamp"):
        return False
    spec = workload.get("spec") or {}
    return 0 not in (spec.get("replicas"), spec.get("parallelism"))


def replicas_at(obj: Any, path: str) -> int:
    """Return the integer at a dot path, 0 for an empty path; InvalidInput when there is none."""
    return _integer(nested_value(obj, path.split(".")), path) if path else 0


def nested_value(obj: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys and list indexes; InvalidInput when it does not exist."""
    value = obj
    for key in path:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise InvalidInput(f"the path {'.'.join(path)} does not exist")
    return value


def _integer(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"the value at {path} is not an integer")
    return value
