"""Deletion costs: the order in which a workload's controller deletes pods when it scales in. Pure.

Pods of later subsets are cheaper, so that scale-in reverses scale-out. Pods above the limit of their subset are cheaper
still, pods outside of all subsets the cheapest. In older versions the order of the subsets is reversed: a rollout
removes old pods of the first subset first. Deployments, ReplicaSets and CloneSets read the costs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.adoption import NO_SUBSET, Groups
from federation.features.workloadspread.rules.references import object_name
from federation.features.workloadspread.rules.subsets import name_of, resolve_limit, subsets_of, target_of
from federation.planning.automigration.podanalysis import is_live

TARGET_KINDS = frozenset({"Deployment", "ReplicaSet", "CloneSet"})
_STEP = 100
_PHASES = {"Unknown": 1, "Running": 2}
"""Any other phase of an active pod is Pending."""


def changed_costs(spread: Object, groups: Groups, latest_version: str, total: int) -> dict[str, str]:
    """Return the new value of the annotation by name of pod, for the pods whose annotation differs.

    `groups` is from `adoption.group_pods`. InvalidInput when a limit cannot be parsed.
    """
    if target_of(spread).get("kind") not in TARGET_KINDS:
        return {}
    changed = {}
    for version, by_subset in groups.items():
        costs = _version_costs(subsets_of(spread), by_subset, total, is_latest=version == latest_version)
        for pod in (pod for pods in by_subset.values() for pod in pods):
            name = object_name(pod)
            if name in costs and _current_cost(pod) != str(costs[name]):
                changed[name] = str(costs[name])
    return changed


def initial_cost(spread: Object, subset: Object) -> str | None:
    """Return the annotation of a pod that a subset gets within its limit, None for a target whose pods have no cost.

    It is the cost in the latest version, to which new pods belong; `changed_costs` corrects the others.
    """
    if target_of(spread).get("kind") not in TARGET_KINDS:
        return None
    subsets = subsets_of(spread)
    index = next((index for index, each in enumerate(subsets) if name_of(each) == name_of(subset)), 0)
    return str(_STEP * (len(subsets) - index))


def subset_costs(pods: Iterable[Object], *, index: int, count: int, limit: int | None) -> dict[str, int]:
    """Return the cost of each active pod of one subset by name.

    `index` is the position of the subset among `count`, reversed in an older version; `limit` its number of pods.
    """
    active = [pod for pod in pods if is_live(pod)]
    surplus = 0 if limit is None else max(0, len(active) - limit)
    # The sort is stable, so that equal pods keep their costs from one reconcile to the next.
    ordered = sorted(active, key=_deletion_rank) if surplus else active
    costs = [-_STEP * (index + 1)] * surplus + [_STEP * (count - index)] * (len(active) - surplus)
    return {object_name(pod): cost for pod, cost in zip(ordered, costs, strict=True)}


def outside_costs(pods: Iterable[Object], count: int) -> dict[str, int]:
    """Return the cost of each active pod outside of all `count` subsets by name."""
    return {object_name(pod): -_STEP * (count + 1) for pod in pods if is_live(pod)}


def _version_costs(
    subsets: Sequence[Object], by_subset: Mapping[str, Sequence[Object]], total: int, *, is_latest: bool
) -> dict[str, int]:
    count = len(subsets)
    costs = outside_costs(by_subset.get(NO_SUBSET, ()), count)
    for index, subset in enumerate(subsets):
        limit = resolve_limit(subset.get("maxReplicas"), total)
        effective = index if is_latest else count - 1 - index
        costs |= subset_costs(by_subset.get(name_of(subset), ()), index=effective, count=count, limit=limit)
    return costs


def _current_cost(pod: Mapping[str, Any]) -> str | None:
    return ((pod.get("metadata") or {}).get("annotations") or {}).get(names.POD_DELETION_COST)


def _deletion_rank(pod: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a sort key: pods that the workload's controller would delete first come first."""
    status = pod.get("status") or {}
    ready = find(status.get("conditions"), "Ready")
    is_ready = ready is not None and ready.get("status") == "True"
    regular, sidecars = _restarts_max(pod)
    return (
        bool((pod.get("spec") or {}).get("nodeName")),
        _PHASES.get(status.get("phase") or "", 0),
        is_ready,
        _newest_first(ready.get("lastTransitionTime") if ready is not None and is_ready else None),
        -regular,
        -sidecars,
        _newest_first((pod.get("metadata") or {}).get("creationTimestamp")),
    )


def _newest_first(text: Any) -> tuple[bool, float]:
    moment = parse_rfc3339(text)
    return (False, 0.0) if moment is None else (True, -moment.timestamp())


def _restarts_max(pod: Mapping[str, Any]) -> tuple[int, int]:
    """Return the highest restart count of the containers, and that of the init containers that keep running."""
    status = pod.get("status") or {}
    sidecars = {
        container.get("name")
        for container in (pod.get("spec") or {}).get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    regular = max((item.get("restartCount") or 0 for item in status.get("containerStatuses") or ()), default=0)
    init = (item for item in status.get("initContainerStatuses") or () if item.get("name") in sidecars)
    return regular, max((item.get("restartCount") or 0 for item in init), default=0)
