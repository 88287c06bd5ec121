"""The merge function per kind; the status of other kinds is not aggregated."""

from collections.abc import Mapping

from federation.api import names
from federation.planning.aggregation import daemonset, deployment, job, pod, replicaset, service, statefulset
from federation.planning.aggregation.context import Merge

_BY_KIND: Mapping[tuple[str, str], Merge] = {
    ("apps", "Deployment"): deployment.merge,
    ("apps", "StatefulSet"): statefulset.merge,
    ("apps", "DaemonSet"): daemonset.merge,
    ("apps", "ReplicaSet"): replicaset.merge,
    ("batch", "Job"): job.merge,
    ("", "Pod"): pod.merge,
    ("", "Service"): service.merge,
    ("networking.k8s.io", "Ingress"): service.merge,
}

FEEDBACK_ANNOTATIONS = (names.SCHEDULING, names.APPLIED_MIGRATION_CONFIGURATION, names.ORDINAL_STARTS)
"""Annotations that are copied from the federated object to its source."""


def merge_of(group: str, kind: str) -> Merge | None:
    """Return the merge function of a kind, None when its status is not merged."""
    return _BY_KIND.get((group, kind))


def plan_feedback(
    source: Mapping[str, str] | None, federated: Mapping[str, str] | None, keys: tuple[str, ...] = FEEDBACK_ANNOTATIONS
) -> dict[str, str | None]:
    """Return the changed annotations of the source, None for one to remove."""
    have, want = source or {}, federated or {}
    return {key: want.get(key) for key in keys if have.get(key) != want.get(key)}
