"""The merge function per kind."""

from collections.abc import Mapping

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.aggregation import (
    autoscaler,
    cronjob,
    custom,
    daemonset,
    deployment,
    disruptionbudget,
    job,
    pod,
    replicaset,
    service,
    statefulset,
    volumes,
)
from federation.planning.aggregation.context import Merge

_BY_KIND: Mapping[tuple[str, str], Merge] = {
    ("apps", "Deployment"): deployment.merge,
    ("apps", "StatefulSet"): statefulset.merge,
    ("apps", "DaemonSet"): daemonset.merge,
    ("", "ReplicationController"): replicaset.merge,
    ("apps", "ReplicaSet"): replicaset.merge,
    ("batch", "Job"): job.aggregate,
    ("batch", "CronJob"): cronjob.merge,
    ("autoscaling", "HorizontalPodAutoscaler"): autoscaler.merge,
    ("policy", "PodDisruptionBudget"): disruptionbudget.merge,
    ("", "PersistentVolume"): volumes.merge_volume,
    ("", "PersistentVolumeClaim"): volumes.merge_claim,
    ("", "Pod"): pod.merge,
    ("", "Service"): service.merge,
    ("networking.k8s.io", "Ingress"): service.merge,
}

FEEDBACK_ANNOTATIONS = (names.SCHEDULING, names.APPLIED_MIGRATION_CONFIGURATION, names.ORDINAL_STARTS)
"""Annotations that are copied from the federated object to its source."""


def merge_of(type_: FederatedType) -> Merge | None:
    """Return the merge function of a kind, None when its status is not merged.

    Custom kinds have a common one. The status of other built-in kinds, such as CustomResourceDefinition, is the host's.
    """
    group, kind = type_.resource.group, type_.resource.kind
    return custom.merge_of(type_) if custom.is_custom(group) else _BY_KIND.get((group, kind))


def has_own_merge(group: str, kind: str) -> bool:
    """Return whether the kind is one of Kubernetes' whose status has a merge function of its own."""
    return (group, kind) in _BY_KIND


def plan_feedback(
    source: Mapping[str, str] | None, federated: Mapping[str, str] | None, keys: tuple[str, ...] = FEEDBACK_ANNOTATIONS
) -> dict[str, str | None]:
    """Return the changed annotations of the source, None for one to remove."""
    have, want = source or {}, federated or {}
    return {key: want.get(key) for key in keys if have.get(key) != want.get(key)}
