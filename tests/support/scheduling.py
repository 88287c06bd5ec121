"""Convert scheduling units and clusters of the behaviour vectors."""

from datetime import UTC, datetime, timedelta
from typing import Any

from federation.api.selectors import compile_cluster_terms
from federation.scheduling.framework.migrations import AutoMigration, CustomMigration
from federation.scheduling.framework.testing import NOW, changed_unit
from federation.scheduling.framework.types import (
    Cluster,
    GroupVersionKind,
    PreferredTerm,
    ReplicasStrategy,
    SchedulingMode,
    SchedulingUnit,
)
from federation.scheduling.policyspec import to_tolerations
from federation.scheduling.snapshot import to_cluster


def to_moment(value: Any) -> datetime:
    """Return `{"now_plus_ns": n}` as a time relative to NOW; no time is the first of all, as Go's zero time."""
    if value is None:
        return datetime.min.replace(tzinfo=UTC)
    if isinstance(value, dict):
        return NOW + timedelta(microseconds=(value.get("now_plus_ns") or 0) / 1000)
    return datetime.fromisoformat(value)


def make_cluster(source: dict[str, Any] | None) -> Cluster | None:
    """Return the cluster, None for null."""
    return None if source is None else to_cluster(source)


def make_unit(su: dict[str, Any] | None) -> SchedulingUnit | None:
    """Return the unit, None for null."""
    if su is None:
        return None
    group_version = su.get("groupVersion") or {}
    affinity = (su.get("affinity") or {}).get("clusterAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    request = su.get("resourceRequest") or {}
    amounts = {
        "cpu": request.get("millicpu") or 0,
        "memory": request.get("memory") or 0,
        "ephemeral-storage": request.get("ephemeralStorage") or 0,
        **(request.get("scalarResources") or {}),
    }
    return changed_unit(
        SchedulingUnit(),
        gvk=GroupVersionKind(
            group_version.get("group") or "", group_version.get("version") or "", su.get("kind") or ""
        ),
        plural=su.get("resource") or "",
        namespace=su.get("namespace") or "",
        name=su.get("name") or "",
        labels=su.get("labels") or {},
        annotations=su.get("annotations") or {},
        desired_replicas=su.get("desiredReplicas"),
        request={name: amount for name, amount in amounts.items() if amount},
        current=su.get("currentClusters") or {},
        mode=SchedulingMode(su.get("schedulingMode") or "Duplicate"),
        strategy=ReplicasStrategy(su.get("replicasStrategy") or "Spread"),
        sticky=bool(su.get("stickyCluster")),
        avoid_disruption=bool(su.get("avoidDisruption")),
        cluster_selector=tuple((su.get("clusterSelector") or {}).items()),
        cluster_names=frozenset(su.get("clusterNames") or ()),
        required=None if required is None else compile_cluster_terms(required.get("clusterSelectorTerms")),
        preferred=tuple(
            PreferredTerm(
                entry["weight"],
                compile_cluster_terms([{"matchExpressions": (entry.get("preference") or {}).get("matchExpressions")}]),
            )
            for entry in affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
            if entry.get("weight")
        ),
        tolerations=to_tolerations(su.get("tolerations") or ()),
        max_clusters=su.get("maxClusters"),
        min_replicas=su.get("minReplicas") or {},
        max_replicas=su.get("maxReplicas") or {},
        weights=su.get("weights") or {},
        priorities=su.get("priorities") or {},
        auto_migration=_auto_migration(su.get("autoMigration")),
        custom_migration=_custom_migration(su.get("customMigration")),
    )


def _auto_migration(value: dict[str, Any] | None) -> AutoMigration | None:
    if value is None:
        return None
    info = value.get("info") or {}
    return AutoMigration(
        bool(value.get("keepUnschedulableReplicas")),
        info.get("estimatedCapacity") or {},
        info.get("scheduledReplicas") or {},
    )


def _custom_migration(value: dict[str, Any] | None) -> CustomMigration | None:
    if value is None:
        return None
    info = value.get("info") or {}
    return CustomMigration(
        info.get("limitedCapacity") or {},
        {entry["cluster"]: to_moment(entry.get("validUntil")) for entry in info.get("unavailableClusters") or ()},
    )
