"""Facts of clusters in a plan file, to say in words why a plan is no longer valid. Pure.

`differences` in planfile.py decides that; labels, taints, kinds and readiness of a cluster always count, nodes and
capacity only if another result follows from them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from federation.apimachinery.amounts import to_amount, to_count
from federation.apimachinery.resources import Object
from federation.scheduling.snapshot import to_cluster

Facts = Mapping[str, Any]


def to_facts(cluster: Object) -> dict[str, Any]:
    """Return the facts of a FederatedCluster, as JSON values."""
    view = to_cluster(cluster)
    resources = (cluster.get("status") or {}).get("resources") or {}
    return {
        "ready": view.is_joined and view.is_ready,
        "labels": dict(view.labels),
        "taints": sorted(f"{taint.key}={taint.value}:{taint.effect}" for taint in view.taints),
        "nodes": int(resources.get("schedulableNodes") or 0),
        "allocatable": dict(view.allocatable),
        "free": dict(view.available),
    }


def decisive_changes(name: str, before: Facts, after: Facts) -> Iterator[str]:
    """Yield what changed of a cluster that makes every plan invalid."""
    if before.get("ready") != after.get("ready"):
        yield f"{name} is {'ready again' if after.get('ready') else 'not ready'} since"
    old, new = before.get("taints") or (), after.get("taints") or ()
    for taint in (each for each in new if each not in old):
        yield f"{name} got the taint {taint} since"
    for taint in (each for each in old if each not in new):
        yield f"{name} lost the taint {taint} since"
    labels, others = before.get("labels") or {}, after.get("labels") or {}
    for label in sorted(labels.keys() | others.keys()):
        one, other = labels.get(label), others.get(label)
        if other is None:
            yield f"{name} lost the label {label} since"
        elif one is None:
            yield f"{name} got the label {label}={other} since"
        elif one != other:
            yield f"{name} has the label {label}={other} since, instead of {one}"


def capacity_changes(name: str, before: Facts, after: Facts) -> Iterator[str]:
    """Yield what changed of a cluster's nodes and room, which may be why a decision has another result."""
    old, new = int(before.get("nodes") or 0), int(after.get("nodes") or 0)
    if old != new:
        count = to_count(abs(new - old), "node")
        yield f"{name} {'gained' if new > old else 'lost'} {count} since: {old} before, {new} now"
        return
    for field, what in (("allocatable", "has"), ("free", "has free")):
        amounts, others = before.get(field) or {}, after.get(field) or {}
        changed = [key for key in sorted(amounts.keys() | others.keys()) if amounts.get(key) != others.get(key)]
        if changed:
            parts = (
                f"{to_amount(key, others.get(key, 0))} {key} instead of {to_amount(key, amounts.get(key, 0))}"
                for key in changed
            )
            yield f"{name} {what} {', '.join(parts)}"
            return
