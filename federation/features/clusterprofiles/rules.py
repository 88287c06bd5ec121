"""The content of a FederatedCluster's ClusterProfile. Pure.

Only what changes rarely is a property: free resources would be written each time that a pod starts.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.conditions import find, set_condition
from federation.apimachinery.resources import Object
from federation.features.clusterprofiles.names import (
    ALLOCATABLE,
    CLUSTER_ID,
    CONTROL_PLANE_HEALTHY,
    JOINED,
    MANAGER,
    MANAGER_LABEL,
    NODES,
    REGION,
)

_CONDITIONS = {CONTROL_PLANE_HEALTHY: names.CLUSTER_READY, JOINED: names.CLUSTER_JOINED}
"""By condition of the profile: that of the FederatedCluster with the same meaning."""
_VALUE_LENGTH_MAX = 1024


def is_ours(profile: Mapping[str, Any]) -> bool:
    """Return whether this product manages the profile."""
    return bool(((profile.get("spec") or {}).get("clusterManager") or {}).get("name") == MANAGER)


def to_profile(cluster: Mapping[str, Any]) -> Object:
    """Return the ClusterProfile of a cluster without its status; it has the cluster's labels and goes with it."""
    metadata = cluster["metadata"]
    name = str(metadata["name"])
    owner = {
        "apiVersion": FEDERATED_CLUSTERS.api_version,
        "kind": FEDERATED_CLUSTERS.kind,
        "name": name,
        "uid": metadata["uid"],
    }
    return {
        "metadata": {
            "name": name,
            "namespace": names.SYSTEM_NAMESPACE,
            "labels": {**(metadata.get("labels") or {}), MANAGER_LABEL: MANAGER},
            "ownerReferences": [owner],
        },
        "spec": {"clusterManager": {"name": MANAGER}, "displayName": name},
    }


def changes_of(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> Object:
    """Return the merge patch that makes a stored profile as wanted, besides its status; {} when it is."""
    before, after = found["metadata"], wanted["metadata"]
    old_labels, labels = before.get("labels") or {}, after["labels"]
    patch: Object = {}
    if old_labels != labels:
        patch["metadata"] = {"labels": {**dict.fromkeys(old_labels.keys() - labels.keys()), **labels}}
    if before.get("ownerReferences") != after["ownerReferences"]:
        patch.setdefault("metadata", {})["ownerReferences"] = after["ownerReferences"]
    if (found.get("spec") or {}).get("displayName") != wanted["spec"]["displayName"]:
        patch["spec"] = {"displayName": wanted["spec"]["displayName"]}
    return patch


def to_status(cluster: Mapping[str, Any], before: Mapping[str, Any], now: datetime) -> Object:
    """Return the status of a cluster's profile; conditions that did not change keep their times in `before`."""
    status = cluster.get("status") or {}
    conditions = before.get("conditions") or []
    for type_, source in _CONDITIONS.items():
        known = find(status.get("conditions") or [], source) or {}
        conditions = set_condition(
            conditions,
            type_=type_,
            status=str(known.get("status") or "Unknown"),
            now=now,
            reason=str(known.get("reason") or "NotObserved"),
            message=str(known.get("message") or "the cluster has not joined yet"),
        )
    version = {"kubernetes": status["kubernetesVersion"]} if status.get("kubernetesVersion") else {}
    return {"conditions": conditions, "properties": _properties(cluster), "version": version}


def _properties(cluster: Mapping[str, Any]) -> list[Object]:
    status = cluster.get("status") or {}
    resources = status.get("resources") or {}
    found = {CLUSTER_ID: cluster["metadata"]["name"], REGION: status.get("region")}
    if resources.get("schedulableNodes") is not None:
        found[NODES] = resources["schedulableNodes"]
    found |= {f"{ALLOCATABLE}{name}": value for name, value in sorted((resources.get("allocatable") or {}).items())}
    return [
        {"name": name[:253], "value": str(value)[:_VALUE_LENGTH_MAX]}
        for name, value in found.items()
        if value not in (None, "")
    ]
