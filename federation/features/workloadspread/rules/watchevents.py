"""Map events of pods and workloads to WorkloadSpreads. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery import wellknown
from federation.apimachinery.resources import Object
from federation.features.workloadspread.rules.ledger import parse_match
from federation.features.workloadspread.rules.references import controller_owner, is_same_workload, object_name
from federation.features.workloadspread.rules.subsets import target_of
from federation.features.workloadspread.rules.versions import pod_version
from federation.planning.automigration.podanalysis import has_scheduling_changed, is_live


def spread_of_workload(spreads: Iterable[Object], workload: Mapping[str, Any]) -> Object | None:
    """Return the WorkloadSpread that targets a workload of its namespace, else one that targets its controller.

    So an event of a ReplicaSet concerns the WorkloadSpread of its Deployment. Those being deleted are ignored.
    """
    present = [spread for spread in spreads if not (spread.get("metadata") or {}).get("deletionTimestamp")]
    own = {**workload, "name": object_name(workload)}
    for reference in (own, controller_owner(workload) or {}):
        for spread in present if reference else ():
            if is_same_workload(target_of(spread), reference):
                return spread
    return None


def spread_of_pod(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str | None:
    """Return the name of the WorkloadSpread to reconcile after a pod changed, None when nothing depends on the change.

    `old` is None for a creation, `new` for a deletion.
    """
    match = parse_match(new or old or {})
    if match is None:
        return None
    if old is None or new is None or parse_match(old) != match:
        return match.spread
    return match.spread if _has_pod_changed(old, new) else None


def is_adoptable(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return True if a pod without a subset just got its node, so that a subset can adopt it."""
    if new is None or parse_match(new) is not None or not is_live(new):
        return False
    had_node = old is not None and (old.get("spec") or {}).get("nodeName")
    return bool((new.get("spec") or {}).get("nodeName")) and not had_node


def has_unmatched_changed(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return True if a pod without a subset appeared, ended, disappeared, or got its node."""
    if parse_match(new or old or {}) is not None:
        return False
    return old is None or new is None or is_live(old) != is_live(new) or is_adoptable(old, new)


def has_workload_changed(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> bool:
    """Return True if the number of pods or the current version of a workload may have changed."""
    if old is None or new is None:
        return True
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if any(before.get(field) != after.get(field) for field in ("replicas", "parallelism")):
        return True
    if _revision(old) != _revision(new):
        return True
    if new.get("kind") != "CloneSet":
        return False
    return (new.get("status") or {}).get("updateRevision") != (old.get("status") or {}).get("currentRevision")


def _has_pod_changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if is_live(old) and not is_live(new):
        return True
    return pod_version(old) != pod_version(new) or has_scheduling_changed(old, new)


def _revision(workload: Mapping[str, Any]) -> Any:
    return ((workload.get("metadata") or {}).get("annotations") or {}).get(wellknown.DEPLOYMENT_REVISION)
