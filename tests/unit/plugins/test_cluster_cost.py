"""ClusterCost: scores by cost, the cheapest division, the on-demand floor, and what a decision says about costs."""

from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.errors import PluginError
from federation.scheduling.engine import Engine
from federation.scheduling.explain import to_explanation
from federation.scheduling.framework.profile import DEFAULT_PROFILE, apply_profile
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import (
    NOW,
    a_cluster,
    a_divided_unit,
    a_state,
    a_unit,
    run_replicas,
    run_score,
)
from federation.scheduling.framework.types import Cluster, Division, Status
from federation.scheduling.snapshot import Snapshot

PLUGINS = load_plugins()
CPU, CARBON_CPU = f"{names.PRICE_PREFIX}cpu", f"{names.CARBON_PREFIX}cpu"


def a_priced(name: str, price: str, *, nodes: int = 4, **labels: str) -> Cluster:
    return a_cluster(name).labelled(**{CPU: price}, **labels).with_nodes(nodes, cpu="1").built()


EAST, WEST = a_priced("east", "0.04"), a_priced("west", "0.03")
SPOT = a_priced("spot", "0.01", nodes=20, **{names.CAPACITY_TYPE: names.SPOT})
UNPRICED = a_cluster("unpriced").with_nodes(20, cpu="1").built()


def divided(replicas: int, *clusters: Cluster, args: Any = None, **fields: Any) -> Division:
    unit = a_divided_unit(replicas, request={"cpu": 1000}, **fields)
    division = run_replicas(PLUGINS.make("ClusterCost", args or {}), unit, clusters)
    assert isinstance(division, Division)
    return division


def test_the_cheapest_cluster_scores_100_and_others_in_proportion() -> None:
    plugin = PLUGINS.make("ClusterCost", {})
    scores = run_score(plugin, a_unit(request={"cpu": 500}), [EAST, WEST, SPOT, UNPRICED])
    assert scores == [25, 33, 100, 0]


def test_carbon_is_minimised_or_priced() -> None:
    dirty = a_priced("dirty", "0.02", **{CARBON_CPU: "50"})
    clean = a_priced("clean", "0.03", **{CARBON_CPU: "5"})
    assert divided(3, dirty, clean).replicas == {"dirty": 3}
    assert divided(3, dirty, clean, args={"objective": "Carbon"}).replicas == {"clean": 3}
    assert divided(3, dirty, clean, args={"carbonPricePerKg": 1}).replicas == {"clean": 3}


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({}, "0.02 per replica and hour"),
        ({"objective": "Carbon"}, "50 g CO2e per replica and hour"),
    ],
)
def test_the_remark_of_a_cluster_has_the_unit_of_the_objective(args: dict[str, Any], shown: str) -> None:
    plugin, state = PLUGINS.make("ClusterCost", args), a_state()
    unit = a_divided_unit(1, request={"cpu": 1000})
    plugin.replicas(unit, [a_priced("dirty", "0.02", **{CARBON_CPU: "50"})], state)
    assert state.remarks["ClusterCost"] == {"dirty": (shown,)}


def test_replicas_fill_the_cheapest_clusters_first() -> None:
    assert divided(6, EAST, WEST).replicas == {"east": 2, "west": 4}


def test_clusters_of_unknown_cost_come_last() -> None:
    assert divided(6, UNPRICED, WEST).replicas == {"unpriced": 2, "west": 4}


def test_a_floor_of_replicas_runs_on_demand() -> None:
    floor = divided(6, EAST, SPOT, WEST, args={"onDemandFloor": "50%"})
    assert floor.replicas == {"spot": 3, "west": 3}
    assert floor.explanation["floor"] == {"wanted": 3, "onDemand": 3}


def test_an_annotation_sets_the_floor_of_a_workload() -> None:
    division = divided(6, SPOT, WEST, annotations={names.ON_DEMAND_FLOOR: "1"}, args={"onDemandFloor": "50%"})
    assert division.replicas == {"spot": 5, "west": 1}


def test_replicas_beyond_on_demand_capacity_run_on_spot_and_the_shortage_is_explained() -> None:
    division = divided(10, WEST, SPOT, args={"onDemandFloor": 6})
    assert division.replicas == {"spot": 6, "west": 4}
    assert division.explanation["floor"] == {"wanted": 6, "onDemand": 4}


def test_running_replicas_stay_until_they_may_move() -> None:
    assert divided(3, EAST, WEST, current={"east": 3}).replicas == {"east": 3}
    assert divided(3, EAST, WEST, current={"east": 3}, avoid_disruption=False).replicas == {"west": 3}


def test_running_replicas_stay_if_a_move_saves_too_little() -> None:
    fields: dict[str, Any] = {"current": {"east": 3}, "avoid_disruption": False}
    assert divided(3, EAST, WEST, args={"minSavingPercent": 30}, **fields).replicas == {"east": 3}
    assert divided(3, EAST, WEST, args={"minSavingPercent": 25}, **fields).replicas == {"west": 3}


def test_a_shrinking_workload_leaves_the_most_expensive_cluster() -> None:
    assert divided(3, EAST, WEST, current={"east": 2, "west": 3}).replicas == {"west": 3}


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"objective": "Fame"}, "objective must be Price or Carbon"),
        ({"carbonPricePerKg": "much"}, "carbonPricePerKg must be a number"),
        ({"onDemandFloor": "120%"}, "onDemandFloor must be a number of replicas or a percentage up to 100%"),
        ({"minSavingPercent": 101}, "minSavingPercent must be an integer from 0 to 100"),
        ({"floor": 1}, "unknown argument floor"),
    ],
)
def test_wrong_arguments_are_named(args: dict[str, Any], problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        PLUGINS.make("ClusterCost", args)


def test_a_wrong_annotation_is_named() -> None:
    unit = a_divided_unit(3, annotations={names.ON_DEMAND_FLOOR: "some"})
    result = run_replicas(PLUGINS.make("ClusterCost", {}), unit, [EAST])
    assert isinstance(result, Status)
    assert result.reasons[0].startswith(f"annotation {names.ON_DEMAND_FLOOR} must be a number of replicas")


def test_a_label_that_is_no_price_is_named() -> None:
    state = a_state()
    wrong = a_priced("wrong", "cheap")
    PLUGINS.make("ClusterCost", {}).replicas(a_divided_unit(1), [wrong], state)
    assert "is 'cheap'; a rate is a number" in state.remarks["ClusterCost"]["wrong"][0]


def decided(profile: Any = DEFAULT_PROFILE, **fields: Any) -> dict[str, Any]:
    snapshot = Snapshot(1, (EAST, SPOT, UNPRICED, WEST))
    unit = a_divided_unit(6, request={"cpu": 1000}, **fields)
    return to_explanation(Engine(PLUGINS).decide(unit, snapshot, profile, now=NOW))


def test_every_decision_about_priced_clusters_says_what_it_costs() -> None:
    source = {
        "metadata": {"name": "thrifty"},
        "spec": {"plugins": {"replicas": {"enabled": [{"name": "ClusterCost"}]}}},
    }
    explanation = decided(apply_profile(DEFAULT_PROFILE, source), current={"east": 4})
    assert explanation["placements"] == {"east": 4, "spot": 2}
    assert explanation["costs"] == {"price": {"each": {"east": 0.04, "spot": 0.01}, "before": 0.16, "after": 0.18}}


def test_clusters_of_unknown_cost_are_named() -> None:
    costs = decided(weights={"unpriced": 1, "west": 1})["costs"]["price"]
    assert (costs["after"], costs["unknown"]) == (0.09, ["unpriced"])


def test_nothing_is_said_without_rates() -> None:
    assert "costs" not in decided(weights={"unpriced": 1})
