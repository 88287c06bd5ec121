"""The WorkloadSpreads that members get, and the status over all members. Pure.

A member gets the subsets that cover it, without expressions on clusters, and with its quotas as absolute limits: it
would take percentages of its own replicas. The ordinals of a StatefulSet start at another number in each cluster, so
the limit of the first subset there includes the ordinals below.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery.conditions import find, set_condition
from federation.apimachinery.resources import Object
from federation.features.workloadspread.names import (
    REASON_KIND_NOT_SERVED,
    REASON_KIND_SERVED,
    REASON_POD_UNSCHEDULABLE,
    REASON_SUFFICIENT,
    SUBSET_ENFORCED,
)
from federation.features.workloadspread.rules.clusterterms import without_cluster_terms
from federation.features.workloadspread.rules.subsets import (
    ADAPTIVE,
    UNLIMITED,
    critical_s,
    is_stateful,
    name_of,
    strategy_of,
    subsets_of,
)
from federation.planning.placement.subsetquotas import Counts

_REPLICAS_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Divided:
    """The quotas by subset and cluster and the caps by subset of a workload's last decision."""

    quotas: Mapping[str, Counts]
    caps: Counts


def local_subsets(
    spread: Mapping[str, Any], cluster: str, covering: Sequence[bool], divided: Divided | None, first_ordinal: int = 0
) -> list[Object]:
    """Return the subsets of one member; [] when none covers it.

    `covering` says for each subset whether it covers the cluster. Without `divided` every cluster has all replicas, and
    the limits stay as they are.
    """
    local = [subset for subset, covers in zip(subsets_of(spread), covering, strict=True) if covers]
    found = [without_cluster_terms(subset) for subset in local]
    if divided is None:
        return found
    for subset in found:
        if subset.get("maxReplicas") is not None:
            subset["maxReplicas"] = divided.quotas.get(name_of(subset), {}).get(cluster, 0)
    if len(found) > 1 and strategy_of(spread).get("type") == ADAPTIVE:
        # Pods that leave a subset need another one, which is why a limited last subset is invalid.
        found[-1].pop("maxReplicas", None)
    if found and first_ordinal and is_stateful(spread) and found[0].get("maxReplicas") is not None:
        found[0]["maxReplicas"] += first_ordinal
    return found


def federated_status(
    spread: Mapping[str, Any],
    divided: Divided,
    reported: Mapping[str, Mapping[str, Any]],
    unserved: Iterable[str],
    now: datetime,
) -> Object:
    """Return the status over all members.

    `reported` are the statuses of the members that answer and whose WorkloadSpread is up to date. The quotas of all
    other clusters count as replicas: what a silent cluster runs is unknown, and its quota is not given away. `unserved`
    are the clusters that do not serve the kind.
    """
    held = {name_of(entry): entry for entry in (spread.get("status") or {}).get("subsetStatuses") or ()}
    unable, entries = frozenset(unserved), []
    for subset in subsets_of(spread):
        name = name_of(subset)
        own, cap = divided.quotas.get(name) or {}, divided.caps.get(name)
        members = {cluster: _entry(status, name) for cluster, status in reported.items()}
        replicas = sum(_count(entry, "replicas") for entry in members.values())
        replicas += sum(count for cluster, count in own.items() if cluster not in members)
        entry: Object = {"name": name, "replicas": replicas}
        entry["missingReplicas"] = UNLIMITED if cap is None else max(0, cap - replicas)
        if cap is not None:
            entry["maxReplicas"] = cap
        if held_conditions := _conditions(held.get(name) or {}, members, sorted(unable & own.keys()), now):
            entry["conditions"] = held_conditions
        entries.append(entry)
    return {"observedGeneration": (spread.get("metadata") or {}).get("generation") or 0, "subsetStatuses": entries}


def running_replicas(
    spread: Mapping[str, Any], reported: Mapping[str, Mapping[str, Any]], kept: Mapping[str, Counts]
) -> dict[str, dict[str, int]]:
    """Return by cluster and subset how many replicas have a node, where the subset also has pods without one.

    `reported` are the statuses of the members that answer; `kept` are the last results for those that do not. {} when
    pods never leave a subset, as those of a StatefulSet, whose volumes stay in their cluster.
    """
    if not critical_s(spread) or is_stateful(spread):
        return {}
    found = {cluster: dict(own) for cluster, own in kept.items()}
    listed = {name_of(subset) for subset in subsets_of(spread)}
    for cluster, status in reported.items():
        own = {}
        for entry in _entries(status):
            if _mark(entry).get("status") == "False" and name_of(entry) in listed:
                own[name_of(entry)] = max(0, _count(entry, "replicas") - _count(entry, "unschedulableReplicas"))
        if own:
            found[cluster] = own
    return {cluster: found[cluster] for cluster in sorted(found)}


def _entry(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((entry for entry in _entries(status) if name_of(entry) == name), {})


def _entries(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the statuses of subsets that a member reports; it can report anything."""
    listed = status.get("subsetStatuses")
    return [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []


def _count(entry: Mapping[str, Any], field: str) -> int:
    value = entry.get(field)
    return value if type(value) is int and 0 <= value <= _REPLICAS_MAX else 0


def _mark(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the condition Schedulable of a subset in a member, {} without one."""
    listed = entry.get("conditions")
    known = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return find(known, names.SUBSET_SCHEDULABLE) or {}


def _conditions(
    held: Mapping[str, Any], members: Mapping[str, Mapping[str, Any]], unable: Sequence[str], now: datetime
) -> list[Object]:
    """Return the conditions of a subset: whether its members can run more, and whether all of them enforce it."""
    present = list(held.get("conditions") or ())
    found: list[Object] = []
    states = {c: _mark(entry) for c, entry in members.items()}
    if known := {cluster: state for cluster, state in states.items() if state}:
        failing = sorted(cluster for cluster, state in known.items() if state.get("status") == "False")
        found += _condition(
            present,
            names.SUBSET_SCHEDULABLE,
            "False" if failing else "True",
            REASON_POD_UNSCHEDULABLE if failing else REASON_SUFFICIENT,
            f"in clusters [{','.join(failing)}]" if failing else "",
            now,
        )
    if unable:
        message = f"clusters [{','.join(unable)}] do not serve WorkloadSpread v1beta1; they keep their replicas"
        found += _condition(present, SUBSET_ENFORCED, "False", REASON_KIND_NOT_SERVED, message, now)
    elif find(present, SUBSET_ENFORCED) is not None:
        found += _condition(present, SUBSET_ENFORCED, "True", REASON_KIND_SERVED, "", now)
    return found


def _condition(
    present: list[Object], type_: str, status: str, reason: str, message: str, now: datetime
) -> list[Object]:
    updated = set_condition(present, type_=type_, status=status, reason=reason, message=message, now=now)
    return [condition for condition in updated if condition["type"] == type_]
