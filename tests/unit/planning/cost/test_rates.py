"""Rates from labels, and the cost of a replica."""

import pytest

from federation.api import names
from federation.planning.cost.names import GRID_CARBON, POWER_PREFIX
from federation.planning.cost.rates import NANO, Rates, rates_from, to_rate

PREFIX = "price.example/"
GIB = 2**30


def test_a_replica_costs_its_requests_times_the_rates() -> None:
    rates = rates_from({"price.example/cpu": "0.03", "price.example/memory": "0.004", "region": "eu"}, PREFIX)
    assert rates.problems == ()
    assert rates.cost_of({"cpu": 2000, "memory": 4 * GIB}) == 76_000_000


def test_gpus_are_named_without_their_domain() -> None:
    assert Rates({"gpu": 2 * NANO}).cost_of({"nvidia.com/gpu": 3}) == 6 * NANO


def test_a_replica_without_requests_counts_as_a_small_one() -> None:
    assert Rates({"cpu": NANO}).cost_of({}) == NANO // 10


def test_a_cluster_without_rates_has_no_cost() -> None:
    assert Rates().cost_of({"cpu": 1000}) is None


def test_a_free_cluster_costs_nothing() -> None:
    assert rates_from({"price.example/cpu": "0"}, PREFIX).cost_of({"cpu": 1000}) == 0


@pytest.mark.parametrize("text", ["", "cheap", "-1", "NaN", "Infinity", "1e99", "0.03 EUR"])
def test_what_is_no_rate_is_named_and_left_out(text: str) -> None:
    rates = rates_from({"price.example/cpu": text}, PREFIX)
    assert rates.per_hour == {}
    assert "price.example/cpu" in rates.problems[0]


def test_rates_are_exact_to_a_billionth() -> None:
    assert to_rate("0.000000031") == 31


def carbon(grid: str, **more: str) -> Rates:
    labels = {GRID_CARBON: grid, f"{POWER_PREFIX}cpu": "5", f"{POWER_PREFIX}gpu": "300"}
    return rates_from({**labels, **more}, names.CARBON_PREFIX)


def test_emissions_follow_from_those_of_a_kwh_and_the_power_of_a_resource() -> None:
    assert carbon("200").per_hour == {"cpu": NANO, "gpu": 60 * NANO}
    assert carbon("200", **{f"{names.CARBON_PREFIX}cpu": "3"}).per_hour == {"cpu": 3 * NANO, "gpu": 60 * NANO}
    assert rates_from({GRID_CARBON: "200"}, names.CARBON_PREFIX) == Rates()
    assert rates_from({f"{POWER_PREFIX}cpu": "5"}, names.CARBON_PREFIX) == Rates()


def test_a_malformed_grid_or_power_gives_no_emissions_and_is_named() -> None:
    assert carbon("clean").per_hour == {}
    assert GRID_CARBON in carbon("clean").problems[0]
    assert carbon("200", **{f"{POWER_PREFIX}gpu": "lots"}).per_hour == {"cpu": NANO}
    assert rates_from({GRID_CARBON: "200"}, names.PRICE_PREFIX) == Rates()
