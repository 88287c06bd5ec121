"""Make hypothetical versions of objects: a cluster that is down, tainted or relabelled, an object that is scaled.

Each function returns a changed copy of an object. Some changes can be applied to the API and some cannot (a cluster
that is down); the caller distinguishes them.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.dotpaths import Path
from federation.apimachinery.resources import Object
from federation.planning.clusters import health


def as_down(cluster: Mapping[str, Any]) -> Object:
    """Return the FederatedCluster in the state after its API server was unreachable for longer than the threshold."""
    status = cluster.get("status") or {}
    verdict = health.unreachable("")
    statuses = {names.CLUSTER_READY: verdict.ready, names.CLUSTER_OFFLINE: verdict.offline}
    conditions = [
        {**condition, "status": statuses.get(condition["type"], condition["status"])}
        for condition in status.get("conditions") or ()
    ]
    return {**cluster, "status": {**status, "conditions": conditions}}


def with_taint(cluster: Mapping[str, Any], key: str, value: str, effect: str) -> Object:
    """Return the FederatedCluster with the taint, in place of one with the same key and effect."""
    taint = {"key": key, "effect": effect} | ({"value": value} if value else {})
    kept = [t for t in _taints(cluster) if (t.get("key"), t.get("effect")) != (key, effect)]
    return _with_taints(cluster, [*kept, taint])


def without_taint(cluster: Mapping[str, Any], key: str, effect: str = "") -> Object:
    """Return the FederatedCluster without the taints of the key, or only without the one with `effect`."""
    kept = [t for t in _taints(cluster) if t.get("key") != key or (effect and t.get("effect") != effect)]
    return _with_taints(cluster, kept)


def with_label(obj: Mapping[str, Any], key: str, value: str | None) -> Object:
    """Return the object with the label, without it when the value is None."""
    metadata = obj["metadata"]
    labels = {name: held for name, held in (metadata.get("labels") or {}).items() if name != key}
    if value is not None:
        labels[key] = value
    return {**obj, "metadata": {**metadata, "labels": labels}}


def replicas_patch(path: Path, replicas: int) -> Object:
    """Return the merge patch that sets the field `path` to the replicas."""
    value: Any = replicas
    for key in reversed(path):
        value = {key: value}
    patch: Object = value
    return patch


def _taints(cluster: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list((cluster.get("spec") or {}).get("taints") or ())


def _with_taints(cluster: Mapping[str, Any], taints: list[Mapping[str, Any]]) -> Object:
    return {**cluster, "spec": {**(cluster.get("spec") or {}), "taints": taints}}
