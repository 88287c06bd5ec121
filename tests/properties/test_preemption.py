"""Who gives way: never more than needed, never an equal, within the budgets, and the same each time."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import ConfigurationError
from federation.features.preemption.rules.victims import (
    Need,
    Victim,
    choose_victims,
    missing_for,
    most_to_give,
    to_interval,
)
from federation.scheduling.yields import Yield, yields_from, yields_to_text

AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 8), "memory": st.integers(0, 8)})
NEEDS = st.builds(
    Need, st.integers(0, 5), st.integers(0, 5), AMOUNTS, AMOUNTS, AMOUNTS | st.just({"pods": 1, "cpu": 2})
)
VICTIMS = st.lists(
    st.builds(Victim, st.sampled_from("abcdef"), st.integers(0, 5), AMOUNTS, st.integers(0, 4)),
    unique_by=lambda victim: victim.key,
    max_size=6,
)


def freed(chosen: Mapping[str, int], victims: list[Victim]) -> dict[str, int]:
    by_key = {victim.key: victim for victim in victims}
    return {
        name: sum((1 if name == "pods" else by_key[key].request.get(name, 0)) * n for key, n in chosen.items())
        for name in ("cpu", "memory", "pods")
    }


def suffices(missing: Mapping[str, int], chosen: Mapping[str, int], victims: list[Victim]) -> bool:
    given_up = freed(chosen, victims)
    return all(given_up[name] >= amount for name, amount in missing.items())


@given(NEEDS, VICTIMS)
def test_nobody_gives_more_than_its_budget_or_to_an_equal(need: Need, victims: list[Victim]) -> None:
    by_key = {victim.key: victim for victim in victims}
    for key, count in choose_victims(need, victims).items():
        assert 0 < count <= by_key[key].most
        assert by_key[key].priority < need.priority


@given(NEEDS, VICTIMS)
def test_no_replica_gives_way_that_is_not_needed(need: Need, victims: list[Victim]) -> None:
    chosen = choose_victims(need, victims)
    if not chosen:
        return
    served = [n for n in range(1, need.replicas + 1) if suffices(missing_for(need, n), chosen, victims)]
    assert served, "replicas give way and not one that waits gets room"
    missing = missing_for(need, max(served))
    for key in chosen:
        fewer = {**chosen, key: chosen[key] - 1}
        assert not suffices(missing, fewer, victims), f"one replica of {key} would not be needed"


@given(NEEDS, VICTIMS)
def test_room_is_made_whenever_it_can_be(need: Need, victims: list[Victim]) -> None:
    everything = {victim.key: victim.most for victim in victims if victim.priority < need.priority}
    possible = [n for n in range(1, need.replicas + 1) if suffices(missing_for(need, n), everything, victims)]
    chosen = choose_victims(need, victims)
    if possible:
        assert suffices(missing_for(need, max(possible)), chosen, victims)
    else:
        assert not chosen


@given(NEEDS, VICTIMS, st.randoms(use_true_random=False))
def test_the_order_of_workloads_does_not_matter(need: Need, victims: list[Victim], order: random.Random) -> None:
    shuffled = list(victims)
    order.shuffle(shuffled)
    assert choose_victims(need, shuffled) == choose_victims(need, victims)


@given(VICTIMS)
def test_what_leaves_already_is_not_asked_for_again(victims: list[Victim]) -> None:
    need = Need(1, 9, {"cpu": 4}, leaving={"cpu": 4, "pods": 1})
    assert choose_victims(need, victims) == {}


def test_the_lowest_priority_goes_first_and_only_as_far_as_needed() -> None:
    low, middle, high = Victim("low", 1, {"cpu": 2}, 1), Victim("middle", 2, {"cpu": 2}, 5), Victim("high", 9, {}, 5)
    assert choose_victims(Need(2, 9, {"cpu": 3}), [high, middle, low]) == {"low": 1, "middle": 2}
    assert choose_victims(Need(2, 9, {"cpu": 3}, free={"cpu": 4}), [high, middle, low]) == {"low": 1}
    assert choose_victims(Need(9, 9, {"cpu": 3}), [low]) == {}, "it would not make room for a single replica"


COUNTS = st.dictionaries(st.sampled_from(("east", "north", "west")), st.integers(0, 9))


@given(COUNTS, COUNTS, st.integers(0, 9), st.dictionaries(st.sampled_from(("east", "west")), st.integers(0, 9)))
def test_no_more_are_unavailable_than_the_budget_allows(
    placed: dict[str, int], available: dict[str, int], allowed: int, keeps: dict[str, int]
) -> None:
    wanted, cluster = sum(placed.values()), "east"
    yields = {name: Yield(count, 1, "Deployment default/web") for name, count in keeps.items()}
    given_up = most_to_give(cluster, wanted, allowed, available, placed, yields)
    if given_up:
        stay = {
            name: min(count, available.get(name, 0), keeps.get(name, count)) - (given_up if name == cluster else 0)
            for name, count in placed.items()
        }
        assert min(stay.values()) >= 0
        assert wanted - sum(stay.values()) <= allowed


def test_the_record_is_read_as_it_was_written() -> None:
    yields = {"east": Yield(3, 2, "Deployment default/web"), "west": Yield(0, 1, "Deployment other/web")}
    assert yields_from(yields_to_text(yields)) == yields
    assert yields_to_text({}) is None
    assert yields_from('{"east": {"keeps": "many"}, "west": 3}') == {}


def test_a_round_cannot_come_before_members_have_shown_the_last_one() -> None:
    assert to_interval(0) == 0
    assert to_interval(10) == 10
    for wrong in (-1, 1, float("nan")):
        with pytest.raises(ConfigurationError, match="preemption-interval-s"):
            to_interval(wrong)
