"""What a Workload of Kueue asks for, and whether it waits for a nomination. Pure.

A Workload is written by Kueue, but users may have rights to write Workloads too, so no shape is assumed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from federation.apimachinery import conditions
from federation.apimachinery.selectors import SelectorError
from federation.features.kueue.names import DISPATCHES, MULTI_KUEUE, WORKLOADS
from federation.scheduling.framework.types import (
    GroupVersionKind,
    Pods,
    PodSet,
    Preferences,
    SchedulingMode,
    SchedulingUnit,
)
from federation.scheduling.podrequest import pod_count, shape_of, total_request

GVK = GroupVersionKind(WORKLOADS.group, WORKLOADS.version, WORKLOADS.kind)
_POD_SETS_MAX = 64
_PODS_MAX = 1_000_000

Find = Callable[[str], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Pending:
    """A Workload that waits for a nomination: the clusters that it may have, and those nominated now."""

    unit: SchedulingUnit
    queue: str
    candidates: tuple[str, ...]
    nominated: tuple[str, ...]


def to_pending(workload: Mapping[str, Any], find_check: Find, find_config: Find) -> Pending | None:
    """Return the Workload if Kueue asks us for its cluster, None otherwise."""
    status = _mapping(workload.get("status"))
    if workload["metadata"].get("deletionTimestamp") or status.get("clusterName"):
        return None
    stated = status.get("conditions")
    if conditions.is_true(stated, "Finished") or not conditions.is_true(stated, "QuotaReserved"):
        return None
    candidates = _candidates(status, find_check, find_config)
    pods = _pods(_mapping(workload.get("spec")).get("podSets")) if candidates else ()
    if not pods:
        return None
    nominated = tuple(str(name) for name in _list(status.get("nominatedClusterNames")))
    metadata = workload["metadata"]
    unit = SchedulingUnit(
        gvk=GVK,
        plural=WORKLOADS.plural,
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata["name"]),
        labels=_mapping(metadata.get("labels")),
        request=total_request(pods),
        pods=Pods(pods, pod_count(pods), is_gang=True),
        current=dict.fromkeys(nominated),
        mode=SchedulingMode.DUPLICATE,
        max_clusters=1,
        preferences=Preferences(frozenset(candidates)),
    )
    return Pending(unit, str(_mapping(workload.get("spec")).get("queueName") or ""), candidates, nominated)


def _candidates(status: Mapping[str, Any], find_check: Find, find_config: Find) -> tuple[str, ...]:
    """Return the workers of the MultiKueueConfig that we dispatch for, if the Workload's check is pending."""
    for state in _list(status.get("admissionChecks")):
        check = find_check(str(_mapping(state).get("name") or ""))
        spec = _mapping((check or {}).get("spec"))
        if spec.get("controllerName") != MULTI_KUEUE or _mapping(state).get("state") != "Pending":
            continue
        config = find_config(str(_mapping(spec.get("parameters")).get("name") or "")) or {}
        if (_mapping(config.get("metadata")).get("labels") or {}).get(DISPATCHES) == "true":
            return tuple(str(name) for name in _list(_mapping(config.get("spec")).get("clusters")))
    return ()


def _pods(pod_sets: Any) -> tuple[PodSet, ...]:
    """Return the pods, () if they cannot be read: such a Workload gets no nomination."""
    found = []
    for entry in _list(pod_sets)[:_POD_SETS_MAX]:
        pod_set = _mapping(entry)
        count, least = pod_set.get("count"), pod_set.get("minCount")
        spec = _mapping(pod_set.get("template")).get("spec")
        if type(count) is not int or not 0 <= count <= _PODS_MAX or not isinstance(spec, Mapping):
            return ()
        try:
            shape = shape_of({"kind": "Pod", "spec": spec})
        except (SelectorError, AttributeError, TypeError, KeyError, ValueError):
            return ()
        if shape is None:
            return ()
        least = least if type(least) is int and 0 <= least <= count else count
        if count:
            found.append(PodSet(str(pod_set.get("name") or "main"), count, least, shape))
    return tuple(found)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
