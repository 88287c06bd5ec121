"""The cost of a replica in a cluster, from the cluster's labels (docs/reference/cost.md).

Part of the public plugin API. Rates are memoized with the cluster, so that a decision looks them up. Without labels
every result is None. The arithmetic is in `federation.planning.cost.rates`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.planning.cost.rates import Rates, from_nano, rates_from
from federation.scheduling.framework.types import Cluster, SchedulingMode, SchedulingUnit

_GRAMS_PER_KG = 1000
PRICE, CARBON = "price", "carbon"
_PREFIXES = {PRICE: names.PRICE_PREFIX, CARBON: names.CARBON_PREFIX}


def rates_of(cluster: Cluster, measure: str) -> Rates:
    """Return the cluster's prices (PRICE) or emissions (CARBON) per unit and hour, memoized."""
    prefix = _PREFIXES[measure]
    known: Rates | None = cluster.lasting.get(prefix)
    return cluster.memoize_lasting(prefix, rates_from(cluster.labels, prefix)) if known is None else known


def cost_of(unit: SchedulingUnit, cluster: Cluster, measure: str, carbon_price_per_kg: int = 0) -> int | None:
    """Return what a replica costs in the cluster per hour, in billionths; None when the cluster has no such rate.

    `carbon_price_per_kg`, in billionths, adds the emissions to a price; a cluster without emissions adds nothing.
    """
    cost = rates_of(cluster, measure).cost_of(unit.request)
    if cost is None or not carbon_price_per_kg or measure != PRICE:
        return cost
    grams = rates_of(cluster, CARBON).cost_of(unit.request) or 0
    return cost + from_grams(grams, carbon_price_per_kg)


def from_grams(grams: int, price_per_kg: int) -> int:
    """Return the price of an amount of grams, all in billionths."""
    return round(from_nano(grams) * price_per_kg / _GRAMS_PER_KG)


def is_spot(cluster: Cluster) -> bool:
    """Return whether the provider may reclaim the cluster's nodes at any time."""
    return cluster.labels.get(names.CAPACITY_TYPE) == names.SPOT


def explain_costs(
    unit: SchedulingUnit, clusters: Mapping[str, Cluster], placements: Mapping[str, int | None]
) -> dict[str, Any]:
    """Return what the unit costs per hour before and after a decision, by measure; {} without rates.

    `each` is one replica by cluster. Clusters without a rate are counted in `unknown`. Kinds whose number of pods is
    not known, such as DaemonSets, have no costs.
    """
    is_one = unit.gvk.kind == "Pod" or (bool(unit.pods.sets) and unit.desired_replicas is None)
    copies = 1 if is_one else unit.desired_replicas
    involved = [clusters[name] for name in (*unit.current, *placements) if name in clusters]
    if copies is None:
        return {}
    if unit.mode is SchedulingMode.DUPLICATE:
        placements = dict.fromkeys(placements)
    counts = {"before": _counts(unit.current, copies), "after": _counts(placements, copies)}
    costs: dict[str, Any] = {}
    for measure in _PREFIXES:
        each = {c.name: cost for c in involved if (cost := cost_of(unit, c, measure)) is not None}
        if each:
            costs[measure] = {
                "each": {name: from_nano(cost) for name, cost in each.items()},
                **{
                    when: from_nano(sum(count * each.get(name, 0) for name, count in amounts.items()))
                    for when, amounts in counts.items()
                },
            }
            if unknown := sorted({name for name, count in counts["after"].items() if count and name not in each}):
                costs[measure]["unknown"] = unknown
    return costs


def has_rates(cluster: Cluster) -> bool:
    """Return whether the cluster has any rate."""
    return bool(rates_of(cluster, PRICE).per_hour or rates_of(cluster, CARBON).per_hour)


def _counts(placements: Mapping[str, int | None], copies: int) -> dict[str, int]:
    return {name: copies if count is None else count for name, count in placements.items()}


def problems_of(clusters: Sequence[Cluster]) -> dict[str, tuple[str, ...]]:
    """Return the problems of labels that should be rates, by cluster."""
    found = {c.name: (*rates_of(c, PRICE).problems, *rates_of(c, CARBON).problems) for c in clusters}
    return {name: problems for name, problems in found.items() if problems}
