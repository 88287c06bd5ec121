"""Read the workload of a subset, and compute partitions. Pure.

A partition is the number of pods that stay on the old revision. `spec.updateStrategy.manualUpdate.partitions` holds the
wanted ones; they are limited to the replicas of the subset, and apply again when the subset grows. Deployments have no
partition.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery import dotpaths
from federation.features.uniteddeployment.names import SUBSET_PATCH, SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules.subsetpods import Pod, count_updated, ready_condition, revision_of
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind, applies_partition, updates_on_delete


@dataclass(frozen=True, slots=True)
class SubsetWorkload:
    """The observed workload of one subset; counts are pods."""

    subset: str
    revision: str
    """The revision that the workload was last written for."""
    replicas: int
    """The replicas in its spec."""
    partition: int
    is_partitioned: bool
    """Whether the partition in its spec has an effect."""
    patch: str
    """The text of the subset's patch when the workload was last written."""
    observed_generation: int
    status_replicas: int
    ready: int
    updated: int
    """Active pods with the wanted revision."""
    updated_ready: int
    reported_updated: int
    """Updated pods as the status of the workload counts them."""


def observe_workload(
    kind: WorkloadKind, workload: Mapping[str, Any], pods: Sequence[Pod], revision: str
) -> SubsetWorkload:
    """Return the facts of a workload; `pods` are its pods, `revision` is the wanted one."""
    metadata, status = workload.get("metadata") or {}, workload.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    updated, updated_ready = count_updated(pods, revision)
    return SubsetWorkload(
        subset=labels.get(names.SUBSET_NAME_LABEL) or "",
        revision=labels.get(SUBSET_REVISION_LABEL) or "",
        replicas=(workload.get("spec") or {}).get("replicas") or 0,
        partition=partition_of(kind, workload, pods, revision),
        is_partitioned=applies_partition(kind, workload),
        patch=annotations.get(SUBSET_PATCH) or "",
        observed_generation=status.get("observedGeneration") or 0,
        status_replicas=status.get("replicas") or 0,
        ready=status.get("readyReplicas") or 0,
        updated=updated,
        updated_ready=updated_ready,
        reported_updated=status.get("updatedReplicas") or 0,
    )


def partition_of(kind: WorkloadKind, workload: Mapping[str, Any], pods: Sequence[Pod], revision: str) -> int:
    """Return the partition of a workload; with OnDelete it is the number of pods without the revision."""
    if updates_on_delete(kind, workload):
        return partition_on_delete(pods, revision)
    partition = dotpaths.get(workload, kind.partition_path) if kind.partition_path else 0
    return partition if type(partition) is int else 0


def partition_on_delete(pods: Sequence[Pod], revision: str) -> int:
    """Return how many pods do not have the revision."""
    return sum(revision_of(pod) != revision for pod in pods)


def next_partitions(update_strategy: Mapping[str, Any] | None, next_replicas: Mapping[str, int]) -> dict[str, int]:
    """Return the partition of each subset: the wanted one or 0, at most the subset's next replicas."""
    wanted = ((update_strategy or {}).get("manualUpdate") or {}).get("partitions") or {}
    return {subset: min(wanted.get(subset) or 0, replicas) for subset, replicas in next_replicas.items()}


def stuck_pods(workload: SubsetWorkload, pods: Sequence[Pod], target_revision: str, partition: int) -> list[str]:
    """Return the pods of a StatefulSet that block its update: old, not ready, and above the partition.

    A StatefulSet waits for such a pod to become ready before it replaces it, so that a broken revision would stay for
    ever (kubernetes/kubernetes#67250). Deleting it lets the StatefulSet create it with the new revision.
    """
    if not workload.is_partitioned:
        return []
    return [
        pod["metadata"]["name"]
        for pod in pods
        if revision_of(pod) != target_revision
        and ready_condition(pod) is None
        and not pod["metadata"].get("deletionTimestamp")
        and ordinal_of(pod["metadata"]["name"]) >= partition
    ]


def ordinal_of(name: str) -> int:
    """Return the number at the end of a pod's name, -1 without one."""
    tail = name.rpartition("-")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else -1
