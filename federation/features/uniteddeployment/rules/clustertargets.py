"""The member clusters of subsets: their registry, target clusters, and how a workload is kept in one cluster. Pure.

A cluster registry selects FederatedClusters by label. They have no namespace, so each is registered in every namespace
that the registry lists. The workload of a subset with a target has annotations that make the scheduler place it in that
cluster only, with all its replicas. The workload of any subset has the policy labels of its UnitedDeployment.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind

ClusterName = tuple[str, str]
"""Namespace and name of a cluster in a cluster registry."""
_NAMESPACE = "default"
_CLUSTER_TYPES = (
    (FEDERATED_CLUSTERS.api_version, FEDERATED_CLUSTERS.kind),
    ("clusterregistry.k8s.io/v1alpha1", "Cluster"),
)
"""Kinds that stand for FederatedClusters: their own, and that of Kubernetes' former cluster registry."""
_POLICY_LABELS = (
    names.PROPAGATION_POLICY_LABEL,
    names.CLUSTER_PROPAGATION_POLICY_LABEL,
    names.OVERRIDE_POLICY_LABEL,
    names.CLUSTER_OVERRIDE_POLICY_LABEL,
)


def registered_clusters(spec: Mapping[str, Any], clusters: Iterable[Mapping[str, Any]]) -> frozenset[ClusterName]:
    """Return the clusters that subsets of the spec can have as targets; `clusters` are all FederatedClusters.

    A registry of another kind of cluster has none.
    """
    registry = (spec.get("topology") or {}).get("clusterRegistry") or {}
    type_ = registry.get("clusterType") or {}
    default = _CLUSTER_TYPES[0]
    if (type_.get("apiVersion") or default[0], type_.get("kind") or default[1]) not in _CLUSTER_TYPES:
        return frozenset()
    wanted = (registry.get("selector") or {}).items()
    selected = [
        cluster["metadata"]["name"]
        for cluster in clusters
        if wanted <= (cluster["metadata"].get("labels") or {}).items()
    ]
    namespaces = registry.get("namespaces") or (_NAMESPACE,)
    return frozenset((namespace or _NAMESPACE, name) for namespace in namespaces for name in selected)


def target_of(subset: Mapping[str, Any]) -> ClusterName | None:
    """Return the target cluster of a subset, None without one."""
    target = subset.get("targetCluster")
    return (target.get("namespace") or _NAMESPACE, target.get("name") or "") if target else None


def target_annotations(subset: Mapping[str, Any]) -> dict[str, str]:
    """Return the scheduling annotations that place a workload in the target cluster only; {} without a target."""
    target = target_of(subset)
    if target is None:
        return {}
    placements = orjson.dumps([{"cluster": target[1]}]).decode()
    return {names.SCHEDULING_MODE: "Duplicate", names.PLACEMENTS: placements}


def policy_labels(united: Mapping[str, Any], kind: WorkloadKind) -> dict[str, str]:
    """Return the policy labels of the workloads: those of the template, then those of the UnitedDeployment."""
    template = ((united.get("spec") or {}).get("template") or {}).get(kind.template) or {}
    return labelled_policies(template) | labelled_policies(united)


def labelled_policies(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of an object that name policies."""
    labels = (obj.get("metadata") or {}).get("labels") or {}
    return {key: labels[key] for key in _POLICY_LABELS if key in labels}
