"""The aggregated status of custom resources, as kstatus reads it: `observedGeneration`, replicas and `conditions`.

The numbers at the paths of the FederatedTypeConfig and those of `_COUNTS` are summed, the conditions merged. Of all
other fields those are kept that are equal in every cluster; in one cluster that is the whole status. Of an object that
no cluster has any more the numbers are zero and the conditions unknown; other fields may be a user's, and stay.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import KRUISE_GROUP
from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import (
    Context,
    Members,
    Merge,
    keep_condition_times,
    observed_generation,
    status_of,
)
from federation.planning.aggregation.mergedconditions import is_ours, merge_conditions
from federation.planning.federatedobject.finished import is_finished, kind_of

_BUILT_IN_GROUPS = frozenset(
    {"", "apps", "autoscaling", "batch", "extensions", "policy"}
    | {
        f"{group}.k8s.io"
        for group in (
            "admissionregistration",
            "apiextensions",
            "apiregistration",
            "certificates",
            "coordination",
            "discovery",
            "events",
            "flowcontrol.apiserver",
            "internal.apiserver",
            "networking",
            "node",
            "rbac.authorization",
            "resource",
            "scheduling",
            "storage",
            "storagemigration",
        )
    }
    | {"core.kubeadmiral.io", "multicluster.x-k8s.io"}
)
_UPDATED = frozenset({"updatedReplicas", "updatedReadyReplicas", "updatedAvailableReplicas"})
_COUNTS: Mapping[tuple[str, str], frozenset[str]] = {
    (KRUISE_GROUP, "CloneSet"): _UPDATED | {"expectedUpdatedReplicas"},
    (KRUISE_GROUP, "StatefulSet"): _UPDATED | {"currentReplicas"},
}
"""Numbers in the status of known kinds that no path of a FederatedTypeConfig names."""


def is_custom(group: str) -> bool:
    """Return whether kinds of the group are neither Kubernetes' own nor ours."""
    return group not in _BUILT_IN_GROUPS


def _nowhere(source: Mapping[str, Any], counted: Iterable[str], context: Context) -> Object | None:
    """Return the status of an object that no cluster has, None if it has finished or never had a status.

    Nothing is known of its conditions, whether they are good or bad when True.
    """
    previous = status_of(source)
    if not previous or is_finished(kind_of(source), source):
        return None
    status: Object = {**previous, **dict.fromkeys((field for field in sorted(counted) if field in previous), 0)}
    held = [each for each in previous.get("conditions") or () if isinstance(each, Mapping) and each.get("type")]
    unknown = [
        {"type": each["type"], "status": "Unknown", "reason": names.REASON_NOT_PLACED, "message": context.nowhere}
        for each in held
        if not is_ours(each)
    ]
    if held:
        times = keep_condition_times(list(map(dict, held)), unknown, context.now)
        status["conditions"] = [*times, *filter(is_ours, held)]
    return status


def merge_of(type_: FederatedType) -> Merge:
    """Return the merge function of a custom kind."""
    paths = type_.paths
    counted = _COUNTS.get((type_.resource.group, type_.resource.kind), frozenset()) | {
        path[1]
        for path in (paths.replicas_status, paths.ready_replicas_status, paths.available_replicas_status)
        if len(path) == 2 and path[0] == "status"
    }

    def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
        if not members and context.is_nowhere:
            return _nowhere(source, counted, context)
        statuses = [status_of(member) for member in members.values()]
        if not any(statuses):
            return None
        status: Object = {
            field: value
            for field, value in statuses[0].items()
            if field not in ("conditions", "observedGeneration")
            and field not in counted
            and all(field in each and is_json_equal(each[field], value) for each in statuses)
        }
        for field in sorted(counted):
            if any(field in each for each in statuses):
                status[field] = sum(count for each in statuses if type(count := each.get(field)) is int)
        if (generation := observed_generation(source, context)) is not None:
            status["observedGeneration"] = generation
        if conditions := merge_conditions(source, members, context):
            status["conditions"] = conditions
        return status

    return merge
