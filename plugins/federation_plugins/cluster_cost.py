"""Score and Replicas: prefer cheap clusters, and divide replicas at the lowest cost (docs/reference/cost.md).

Costs come from labels of the clusters: prices, or grams of CO2e with `objective: Carbon`. As a Score plugin it gives
the cheapest cluster 100, one that costs twice as much 50, and one of unknown cost 0. As a Replicas plugin it fills the
cheapest clusters first, and keeps a floor of replicas out of spot capacity. No profile has it by default.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from federation.api import names
from federation.planning.cost.cheapest import NO_FLOOR, Floor, Tariff, plan_cheapest
from federation.planning.cost.rates import from_nano, to_rate
from federation.planning.placement.capacity import Planner, plan_within_capacity
from federation.planning.placement.replicas import Steps
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.costs import CARBON, PRICE, cost_of, is_spot, problems_of
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.division import demand_of, divide_with
from federation.scheduling.framework.interfaces import (
    Arguments,
    Cacheable,
    ReplicasPlugin,
    ScoreNormaliser,
    ScorePlugin,
)
from federation.scheduling.framework.normalization import SCORE_MAX
from federation.scheduling.framework.topology import topology_of
from federation.scheduling.framework.types import Cluster, Division, SchedulingUnit, Status, error

_UNKNOWN = -1
"""The raw score of a cluster of unknown cost."""
_OBJECTIVES = {"Price": PRICE, "Carbon": CARBON}
_PERCENT_MAX = 100


@dataclass(frozen=True, slots=True)
class ClusterCostArgs:
    """What is minimised, the price of emissions in billionths per kg, the floor, and the saving that a move needs."""

    objective: str = PRICE
    carbon_price_per_kg: int = 0
    floor: Floor = NO_FLOOR
    saving_percent_min: int = 0


class ClusterCost(ScorePlugin, ScoreNormaliser, ReplicasPlugin, Cacheable):
    """Prefers cheap clusters, and divides replicas at the lowest cost."""

    NAME: ClassVar[str] = "ClusterCost"

    def __init__(self, args: ClusterCostArgs | None = None) -> None:
        self._args = args or ClusterCostArgs()

    @classmethod
    def from_args(cls, args: Arguments) -> Self:
        """Return the plugin for `pluginConfig` arguments.

        {"objective": "Price", "carbonPricePerKg": 0.1, "onDemandFloor": "30%", "minSavingPercent": 10}
        """
        unknown = set(args) - {"objective", "carbonPricePerKg", "onDemandFloor", "minSavingPercent"}
        if unknown:
            raise ValueError(f"unknown argument {', '.join(sorted(unknown))}")
        objective = args.get("objective", "Price")
        if objective not in _OBJECTIVES:
            raise ValueError(f"objective must be Price or Carbon, not {objective!r}")
        carbon_price = to_rate(str(args.get("carbonPricePerKg", 0)))
        if carbon_price is None:
            raise ValueError(f"carbonPricePerKg must be a number, not {args['carbonPricePerKg']!r}")
        saving = args.get("minSavingPercent", 0)
        if type(saving) is not int or not 0 <= saving <= _PERCENT_MAX:
            raise ValueError(f"minSavingPercent must be an integer from 0 to {_PERCENT_MAX}, not {saving!r}")
        floor = _to_floor(args.get("onDemandFloor", 0), "onDemandFloor")
        return cls(ClusterCostArgs(_OBJECTIVES[objective], carbon_price, floor, saving))

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return the cost of a replica per hour in billionths; `normalise` prefers low ones."""
        cost = self._cost(unit, cluster)
        return _UNKNOWN if cost is None else cost

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Return 100 for the lowest cost, less in proportion for higher ones, and 0 for unknown ones."""
        lowest = min((score for score in scores if score != _UNKNOWN), default=0)
        return [0 if cost == _UNKNOWN else SCORE_MAX * lowest // cost if cost else SCORE_MAX for cost in scores]

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Costs depend on the request only."""
        return frozenset(unit.request.items())

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return the cheapest replicas per cluster, without those that get none."""
        try:
            floor = _to_floor(unit.annotations.get(names.ON_DEMAND_FLOOR), f"annotation {names.ON_DEMAND_FLOOR}")
        except ValueError as problem:
            return error(str(problem))
        for name, problems in problems_of(clusters).items():
            state.remark(self.NAME, name, *problems)
        tariff = Tariff(
            {cluster.name: self._cost(unit, cluster) for cluster in clusters},
            frozenset([cluster.name for cluster in clusters if is_spot(cluster)]),
            floor if names.ON_DEMAND_FLOOR in unit.annotations else self._args.floor,
            self._args.saving_percent_min,
        )
        steps: Steps = []
        explanation: dict[str, Any] = {"steps": steps}
        rooms = rooms_of(unit, clusters)
        planner: Planner = partial(plan_cheapest, tariff)
        if rooms is not None:
            explanation["room"] = rooms.explain
            planner = partial(plan_within_capacity, rooms, planner)
        topology = topology_of(unit, clusters, rooms)
        division = divide_with(planner, unit, demand_of(unit, clusters, {}), explanation, steps, topology)
        for cluster in clusters:
            if division.replicas.get(cluster.name):
                state.remark(self.NAME, cluster.name, self._price(tariff, cluster))
        if tariff.floor != NO_FLOOR:
            explanation["floor"] = _explain_floor(tariff, division)
        return division

    def _cost(self, unit: SchedulingUnit, cluster: Cluster) -> int | None:
        return cost_of(unit, cluster, self._args.objective, self._args.carbon_price_per_kg)

    def _price(self, tariff: Tariff, cluster: Cluster) -> str:
        cost, spot = tariff.each[cluster.name], ", spot" if cluster.name in tariff.spot else ""
        if cost is None:
            return f"its {self._args.objective} is not known{spot}"
        unit = "g CO2e" if self._args.objective == CARBON else ""
        return f"{f'{from_nano(cost):.4g} {unit}'.strip()} per replica and hour{spot}"


def _explain_floor(tariff: Tariff, division: Division) -> dict[str, int]:
    on_demand = sum(count for name, count in division.replicas.items() if name not in tariff.spot)
    return {"wanted": tariff.floor.of(sum(division.replicas.values())), "onDemand": on_demand}


def _to_floor(value: object, field: str) -> Floor:
    """Return the floor for a number or a percentage; ValueError, with the field's name, for anything else."""
    text = "0" if value is None else str(value)
    digits, is_percent = text.removesuffix("%"), text.endswith("%")
    if not digits.isascii() or not digits.isdigit() or (is_percent and int(digits) > _PERCENT_MAX):
        raise ValueError(f"{field} must be a number of replicas or a percentage up to 100%, not {text!r}")
    return Floor(percent=int(digits)) if is_percent else Floor(count=int(digits))
