"""The `v1beta1` payload: one envelope per extension point, with all clusters and only the declared fields.

For the object: kind, names, mode, replicas and `fields.unit`. For each cluster: its name, `fields.cluster`, its score
in a select request, and limits and capacity in a replicas request. With a thousand clusters most of a body is clusters,
which hardly change: their JSON is memoized per cluster.
"""

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.limits import limits_of
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD
from federation.scheduling.framework.types import Cluster, ClusterScore, SchedulingUnit
from federation.scheduling.webhooks.expectedreports import expected_report
from federation.scheduling.webhooks.responses import API_VERSION, REQUEST_KIND
from federation.scheduling.webhooks.v1alpha1payload import affinity, placements, quantities, tolerations

Extras = Mapping[str, Mapping[str, int]]
"""Cluster → additional fields of one extension point."""


def request_uid(*parts: str) -> str:
    """Return the uid of a request: equal for its retries, different for every decision."""
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=16).digest()
    return str(uuid.UUID(bytes=digest))


class Payload:
    """Bodies for one plugin, by the fields that it declared."""

    def __init__(
        self, unit_fields: frozenset[str], cluster_fields: frozenset[str], arguments: Mapping[str, Any]
    ) -> None:
        self._unit_fields = unit_fields
        self._cluster_fields = cluster_fields
        self._arguments = {"arguments": dict(arguments)} if arguments else {}

    def body(self, point: str, uid: str, unit: SchedulingUnit, clusters: Sequence[Cluster], extras: Extras) -> bytes:
        """Return the request's body."""
        envelope = {"apiVersion": API_VERSION, "kind": REQUEST_KIND, "uid": uid, "extensionPoint": point}
        head = orjson.dumps({**envelope, **self._arguments, "unit": self.unit(unit)})
        listed = b",".join(self._cluster(unit, cluster, extras.get(cluster.name)) for cluster in clusters)
        return b'%s,"clusters":[%s]}' % (head[:-1], listed)

    def unit(self, unit: SchedulingUnit) -> dict[str, Any]:
        """Return the object's part of the request."""
        group, version, kind = unit.gvk
        fields: dict[str, Any] = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
        if unit.namespace:
            fields["namespace"] = unit.namespace
        fields |= {"name": unit.name, "schedulingMode": str(unit.mode)}
        if unit.desired_replicas is not None:
            fields["desiredReplicas"] = unit.desired_replicas
        declared: dict[str, Callable[[], Any]] = {
            "labels": lambda: unit.labels,
            "annotations": lambda: unit.annotations,
            "resourceRequest": lambda: quantities(unit.request),
            "current": lambda: dict(sorted(unit.current.items())),
            "policy": lambda: _policy(unit),
            "template": lambda: unit.template,
        }
        return fields | {name: value() for name, value in declared.items() if name in self._unit_fields}

    def _cluster(self, unit: SchedulingUnit, cluster: Cluster, extra: Mapping[str, int] | None) -> bytes:
        report, known = expected_report(unit, cluster), cluster.memo.get(self)
        if known is None or known[0] is not report:
            known = cluster.memoize(self, (report, orjson.dumps(self.cluster(cluster, report))))
        text: bytes = known[1]
        return text[:-1] + b"," + orjson.dumps(extra)[1:] if extra else text

    def cluster(self, cluster: Cluster, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return a cluster's part of the request, from this FederatedCluster."""
        metadata, status = report.get("metadata") or {}, report.get("status") or {}
        resources = status.get("resources") or {}
        declared: dict[str, Callable[[], Any]] = {
            "labels": lambda: cluster.labels,
            "annotations": lambda: metadata.get("annotations") or {},
            "taints": lambda: [taint._asdict() for taint in cluster.taints],
            "resources": lambda: {key: resources.get(key) or {} for key in ("allocatable", "available")},
            "apiResourceTypes": lambda: status.get("apiResourceTypes") or [],
            "conditions": lambda: [_condition(condition) for condition in status.get("conditions") or ()],
        }
        fields = {name: value() for name, value in declared.items() if name in self._cluster_fields}
        return {"name": cluster.name, **fields}


def scores_of(scored: Sequence[ClusterScore]) -> Extras:
    """Return the additional fields of a select request: each cluster's total score."""
    return {entry.cluster.name: {"score": entry.score} for entry in scored}


def limits_payload(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> dict[str, dict[str, int]]:
    """Return the additional fields of a replicas request: limits and capacity by cluster.

    The response is validated against the same limits: replicas that must stay are part of `minReplicas`, and during a
    scale-down no cluster may exceed its current replicas.
    """
    rooms, bounds = rooms_of(unit, clusters), limits_of(unit, clusters)
    limits: dict[str, dict[str, int]] = {}
    for cluster in clusters:
        name = cluster.name
        limit = limits[name] = {}
        least, bound = max(unit.preferences.min_replicas.get(name, 0), bounds.least.get(name, 0)), bounds.most.get(name)
        if least := least if bound is None else min(least, bound.most):
            limit["minReplicas"] = least
        if bound is not None:
            limit["maxReplicas"] = bound.most
        if rooms is not None and cluster.node_classes is not None:
            limit["room"] = rooms.unreserved[name]
    return limits


def _policy(unit: SchedulingUnit) -> dict[str, Any]:
    fields = {
        "replicasStrategy": str(unit.strategy),
        "clusterSelector": dict(unit.affinity.cluster_selector),
        "clusterAffinity": affinity(unit),
        "tolerations": tolerations(unit),
        "maxClusters": unit.max_clusters,
        "topologySpread": [constraint.to_json() for constraint in TOPOLOGY_SPREAD.of(unit)],
        "placements": placements(unit),
    }
    return {key: value for key, value in fields.items() if value not in (None, [], {})}


def _condition(condition: Mapping[str, Any]) -> dict[str, Any]:
    return {key: condition.get(key) for key in ("type", "status", "reason")}
