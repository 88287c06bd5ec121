"""A ReplicaSchedulingPreference as fields of a PropagationPolicy that divides. Pure.

| KubeFed | policy |
|---|---|
| `clusters` | `placement`, with its preferences; "*" stands for all clusters that are not listed |
| no `clusters` | the same weight for all |
| `rebalance` | `avoidDisruption: false`, and replicas that a cluster cannot run stay counted there |
| pods that are unschedulable for a minute | `autoMigration` |
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.kubefed.selection import ALL, Selection, to_label_selection
from federation.planning.placement.replicas import WILDCARD

_EQUAL: Mapping[str, Mapping[str, int]] = {WILDCARD: {"weight": 1}}


def to_divided_policy(
    preference: Mapping[str, Any], placement: Mapping[str, Any] | None, namespace: Selection
) -> Object | None:
    """Return the fields of a policy's spec; None when no cluster may get replicas.

    `placement` is that of the federated object, `namespace` the clusters of its namespace.
    """
    spec = preference["spec"]
    selection = namespace
    if spec.get("intersectWithClusterSelector"):
        selection = (to_label_selection(placement) or ALL).intersect(namespace)
    entries = _placement(spec.get("clusters") or _EQUAL, selection)
    if not entries:
        return None
    is_moved = bool(spec.get("rebalance"))
    return {
        "schedulingMode": "Divide",
        "placement": entries,
        **selection.to_policy(),
        "autoMigration": {"when": {"podUnschedulableFor": "1m"}, "keepUnschedulableReplicas": is_moved},
        "reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": not is_moved}},
    }


def _placement(preferences: Mapping[str, Mapping[str, Any]], selection: Selection) -> list[Object]:
    """Return the entries of `placement`, by name and the wildcard last."""
    if selection.clusters is not None:
        fallback = preferences.get(WILDCARD)
        preferences = {
            name: found for name in selection.clusters if (found := preferences.get(name, fallback)) is not None
        }
    ordered = sorted(preferences, key=lambda name: (name == WILDCARD, name))
    return [{"cluster": name, "preferences": _limits(preferences[name])} for name in ordered]


def _limits(given: Mapping[str, Any]) -> Object:
    limits: Object = {"weight": given.get("weight") or 0}
    if given.get("minReplicas"):
        limits["minReplicas"] = given["minReplicas"]
    if given.get("maxReplicas") is not None:
        limits["maxReplicas"] = given["maxReplicas"]
    return limits
