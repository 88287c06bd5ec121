"""Rates from labels, and the cost of a replica."""

import pytest

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
