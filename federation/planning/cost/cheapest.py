"""Divide replicas so that they cost as little as possible: the cost planner (docs/decisions/0065).

Every cluster first gets its minimum, then all clusters as many as bounds and capacity allow, the cheapest first. In
both steps on-demand clusters come first until the floor is reached. Costs are linear in replicas, so no division within
the same bounds is cheaper. Clusters of unknown cost come last; among equals the order of the clusters counts.

Running replicas are lower bounds when a workload grows, and upper bounds when it shrinks: then it leaves the most
expensive clusters. They move only if that is allowed and saves enough. Pure and deterministic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from federation.planning.placement.capacity import countable_replicas, kept_unschedulable, upper_bounds
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

_ANY = Preference()
Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Floor:
    """The least number of on-demand replicas: `count`, or `percent` of all replicas, rounded up."""

    count: int = 0
    percent: int = 0

    def of(self, total: int) -> int:
        """Return the floor for so many replicas."""
        return min(total, max(self.count, -(-total * self.percent // 100)))


NO_FLOOR = Floor()


@dataclass(frozen=True, slots=True)
class Tariff:
    """Prices of a replica by cluster (None: unknown), clusters that can be reclaimed, the saving that a move needs."""

    each: Mapping[str, int | None]
    spot: frozenset[str] = frozenset()
    floor: Floor = NO_FLOOR
    saving_percent_min: int = 0
    """Running replicas move only if the whole division becomes cheaper by at least so many percent."""

    def cost_of(self, replicas: Counts) -> tuple[int, int]:
        """Return the number of replicas of unknown cost, and the cost of all others."""
        unknown = sum(count for name, count in replicas.items() if self.each.get(name) is None)
        return unknown, sum(count * (self.each.get(name) or 0) for name, count in replicas.items())


@dataclass(slots=True)
class _Filling:
    """A division in progress: clusters in the order of cost, and their upper bounds."""

    order: Sequence[str]
    most: Counts
    plan: dict[str, int]
    left: int

    def raise_to(self, levels: Counts, clusters: Sequence[str], amount: int) -> None:
        """Add up to `amount` replicas, so that each cluster in turn reaches its level."""
        amount = max(0, min(amount, self.left))
        for name in clusters:
            given = max(0, min(levels.get(name, 0), self.most[name]) - self.plan[name])
            given = min(given, amount)
            self.plan[name] += given
            amount -= given
            self.left -= given


def plan_cheapest(tariff: Tariff, demand: Demand, steps: Steps | None = None) -> Plan:
    """Divide `demand.total` replicas at the lowest cost; append a trace to `steps` when given."""
    held, staying = countable_replicas(demand), _plan(tariff, replace(demand, avoid_disruption=True))
    plan, because = staying, ""
    if not demand.avoid_disruption:
        plan = _plan(tariff, demand)
        if plan != staying and _is_as_good(tariff, demand, staying, plan) and not _pays(tariff, staying, plan):
            plan, because = staying, f"moving saves less than {tariff.saving_percent_min} %"
    if steps is not None:
        placed = {name: count for name, count in plan.items() if count}
        step = {"step": "cheapest", "total": demand.total, "replicas": placed}
        steps.append({**step, "because": because} if because else step)
    return Plan(plan, kept_unschedulable(demand, held, plan))


def _plan(tariff: Tariff, demand: Demand) -> dict[str, int]:
    """Return the cheapest division that leaves running replicas where they are if the demand says so."""
    bounds, total = upper_bounds(demand), demand.total
    most = {name: bounds.get(name, total) for name in demand.clusters}
    start = dict.fromkeys(demand.clusters, 0)
    if demand.avoid_disruption:
        held = countable_replicas(demand)
        if sum(held.values()) > total:
            most = held
        else:
            most = {name: max(most[name], count) for name, count in held.items()}
            start = held
    filling = _Filling(_by_cost(tariff, demand.clusters), most, start, total - sum(start.values()))
    on_demand, floor = [name for name in filling.order if name not in tariff.spot], tariff.floor.of(total)
    for levels in (_minimums(demand), most):
        filling.raise_to(levels, on_demand, floor - sum(filling.plan[name] for name in on_demand))
        filling.raise_to(levels, filling.order, filling.left)
    return filling.plan


def _by_cost(tariff: Tariff, clusters: Sequence[str]) -> list[str]:
    costs = [(cost is None, cost or 0) for cost in map(tariff.each.get, clusters)]
    return [name for _, name in sorted(zip(costs, clusters, strict=True), key=lambda entry: entry[0])]


def _minimums(demand: Demand) -> dict[str, int]:
    return {name: demand.preferences.get(name, _ANY).minimum for name in demand.clusters}


def _is_as_good(tariff: Tariff, demand: Demand, staying: Counts, moved: Counts) -> bool:
    """Return whether the division without moves meets as many bounds as the one with moves."""

    def unmet(plan: Counts) -> tuple[int, int, int]:
        minimums = sum(max(0, least - plan[name]) for name, least in _minimums(demand).items())
        bounds = upper_bounds(demand)
        beyond = sum(max(0, plan[name] - bounds[name]) for name in plan if name in bounds)
        on_demand = sum(count for name, count in plan.items() if name not in tariff.spot)
        return minimums, beyond, max(0, tariff.floor.of(demand.total) - on_demand)

    return sum(staying.values()) == sum(moved.values()) and all(
        stays <= moves for stays, moves in zip(unmet(staying), unmet(moved), strict=True)
    )


def _pays(tariff: Tariff, staying: Counts, moved: Counts) -> bool:
    (unknown_before, before), (unknown, after) = tariff.cost_of(staying), tariff.cost_of(moved)
    if unknown_before != unknown:
        return unknown < unknown_before
    return after < before and (before - after) * 100 >= before * tariff.saving_percent_min
