"""What a webhook plugin is told: the scheduling unit and the clusters in the `v1alpha1` payload (spec §6.7).

Existing KubeAdmiral webhooks parse this, so names, order and what is left out when empty are KubeAdmiral's. Quantities
are in their canonical form. Pure; `webhook.py` sends it and reads the answers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from federation.api import quantity
from federation.scheduling.framework.types import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Cluster,
    ClusterScore,
    Resources,
    SchedulingMode,
    SchedulingUnit,
    Toleration,
)


def unit_payload(unit: SchedulingUnit) -> dict[str, Any]:
    """Return `schedulingUnit`: lists in the order of cluster names, optional fields left out when empty."""
    group, version, kind = unit.gvk
    payload = {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "resource": unit.plural,
        "namespace": unit.namespace,
        "name": unit.name,
        "labels": dict(unit.labels),
        "annotations": dict(unit.annotations),
        "schedulingMode": str(unit.mode),
        "desiredReplicas": unit.desired_replicas,
        "resourceRequest": _quantities(unit.request),
        "currentClusters": sorted(unit.current),
        "currentReplicaDistribution": _distribution(unit),
        "clusterSelector": dict(unit.cluster_selector),
        "clusterAffinity": list(unit.required.source) if unit.required else None,
        "tolerations": [_toleration(toleration) for toleration in unit.tolerations],
        "maxClusters": unit.max_clusters,
        "placements": [_placement(unit, cluster) for cluster in sorted(unit.cluster_names)],
    }
    return {key: value for key, value in payload.items() if value not in (None, "", [], {})}


def cluster_bodies(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> list[bytes]:
    """Return the body of the filter or score call for each cluster."""
    head = b'{"schedulingUnit":' + orjson.dumps(unit_payload(unit)) + b',"cluster":'
    return [head + orjson.dumps(cluster.source) + b"}" for cluster in clusters]


def select_body(unit: SchedulingUnit, scored: Sequence[ClusterScore]) -> bytes:
    """Return the body of the select call."""
    scores = [{"cluster": entry.cluster.source, "score": entry.score} for entry in scored]
    return orjson.dumps({"schedulingUnit": unit_payload(unit), "clusterScores": scores})


def _quantities(request: Resources) -> dict[str, str]:
    amounts: Mapping[str, int] = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, **request}
    return {name: str(quantity.parse(f"{amount}m" if name == CPU else str(amount))) for name, amount in amounts.items()}


def _distribution(unit: SchedulingUnit) -> dict[str, int]:
    if unit.mode is not SchedulingMode.DIVIDE:
        return {}
    return {cluster: replicas for cluster, replicas in sorted(unit.current.items()) if replicas is not None}


def _toleration(toleration: Toleration) -> dict[str, str]:
    return {key: value for key, value in toleration._asdict().items() if value}


def _placement(unit: SchedulingUnit, cluster: str) -> dict[str, Any]:
    preferences = {
        field: values[cluster]
        for field, values in (
            ("minReplicas", unit.min_replicas),
            ("maxReplicas", unit.max_replicas),
            ("weight", unit.weights),
        )
        if cluster in values
    }
    return {"cluster": cluster, "preferences": preferences} if preferences else {"cluster": cluster}
