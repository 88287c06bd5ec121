"""The `v1alpha1` payload: the scheduling unit and the clusters.

Existing KubeAdmiral webhooks parse this, so names, order, what is left out when empty and what is not, the order of
maps (by key) and the notation of quantities are those of KubeAdmiral's Go types. Lists that it sends in the random
order of its maps are sorted. Pure; `v1alpha1.py` sends it and reads the answers.

Reference: docs/reference/webhook-plugins.md.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from federation.apimachinery.quantity import NANOS, Notation, Quantity
from federation.scheduling.framework.types import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    Cluster,
    ClusterScore,
    Resources,
    SchedulingMode,
    SchedulingUnit,
)
from federation.scheduling.webhooks.expectedreports import expected_report

_ALWAYS = frozenset({"apiVersion", "kind", "resource", "name", "schedulingMode", "currentClusters"})
"""Fields that are present even when empty."""
_HUGE_PAGES = "hugepages-"


def unit_payload(unit: SchedulingUnit) -> dict[str, Any]:
    """Return `schedulingUnit`: lists in the order of cluster names, optional fields left out when empty."""
    group, version, kind = unit.gvk
    payload = {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "resource": unit.plural,
        "namespace": unit.namespace,
        "name": unit.name,
        "labels": _by_key(unit.labels),
        "annotations": _by_key(unit.annotations),
        "schedulingMode": str(unit.mode),
        "desiredReplicas": unit.desired_replicas,
        "resourceRequest": quantities(unit.request),
        "currentClusters": sorted(unit.current),
        "currentReplicaDistribution": _distribution(unit),
        "clusterSelector": _by_key(dict(unit.affinity.cluster_selector)),
        "clusterAffinity": affinity(unit),
        "tolerations": tolerations(unit),
        "maxClusters": unit.max_clusters,
        "placements": placements(unit),
    }
    return {key: value for key, value in payload.items() if key in _ALWAYS or value not in (None, "", [], {})}


def cluster_bodies(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> list[bytes]:
    """Return the body of the filter or score call for each cluster."""
    head = b'{"schedulingUnit":' + orjson.dumps(unit_payload(unit)) + b',"cluster":'
    return [head + orjson.dumps(expected_report(unit, cluster)) + b"}" for cluster in clusters]


def select_body(unit: SchedulingUnit, scored: Sequence[ClusterScore]) -> bytes:
    """Return the body of the select call."""
    scores = [{"cluster": expected_report(unit, entry.cluster), "score": entry.score} for entry in scored]
    return orjson.dumps({"schedulingUnit": unit_payload(unit), "clusterScores": scores})


def quantities(request: Resources) -> dict[str, str]:
    """Return the request as Kubernetes writes it, by name: bytes in powers of 1024, the rest in powers of 1000."""
    amounts: Mapping[str, int] = {CPU: 0, MEMORY: 0, EPHEMERAL_STORAGE: 0, **request}
    return {name: _quantity(name, amounts[name]) for name in sorted(amounts)}


def affinity(unit: SchedulingUnit) -> list[dict[str, Any]]:
    """Return the terms of the policy's clusterAffinity; an expression has `values` also when there are none."""
    return [
        {
            kind: [{key: each.get(key) for key in ("key", "operator", "values")} for each in term[kind]]
            for kind in ("matchExpressions", "matchFields")
            if term.get(kind)
        }
        for term in (unit.affinity.required.source if unit.affinity.required else ())
    ]


def tolerations(unit: SchedulingUnit) -> list[dict[str, Any]]:
    """Return the unit's tolerations as they were given, without what is empty."""
    entries = []
    for each in unit.tolerations:
        entry = {key: value for key, value in each._asdict().items() if value and key != "seconds"}
        entries.append(entry if each.seconds is None else entry | {"tolerationSeconds": each.seconds})
    return entries


def placements(unit: SchedulingUnit) -> list[dict[str, Any]]:
    """Return the clusters that the policy names, with its preferences for each."""
    return [
        {"cluster": name, "preferences": _preferences(unit, name)} for name in sorted(unit.preferences.cluster_names)
    ]


def _quantity(name: str, amount: int) -> str:
    if name == CPU:
        return str(Quantity(amount * NANOS // 1000))
    is_bytes = name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith(_HUGE_PAGES)
    return str(Quantity(amount * NANOS, Notation.BINARY_SI if is_bytes else Notation.DECIMAL_SI))


def _distribution(unit: SchedulingUnit) -> dict[str, int]:
    if unit.mode is not SchedulingMode.DIVIDE:
        return {}
    return {cluster: replicas or 0 for cluster, replicas in sorted(unit.current.items())}


def _preferences(unit: SchedulingUnit, cluster: str) -> dict[str, int]:
    preferences = {"minReplicas": least} if (least := unit.preferences.min_replicas.get(cluster)) else {}
    for field, values in (("maxReplicas", unit.preferences.max_replicas), ("weight", unit.preferences.weights)):
        if cluster in values:
            preferences[field] = values[cluster]
    return preferences


def _by_key(values: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(values.items()))
