"""The nearest division: shares rounded down or up, monotone in the total, and as few moves as possible."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from federation.planning.placement.apportionment import apportion
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Preference, plan_replicas

CLUSTERS = tuple("abcdefgh")
Shares = dict[str, Preference]
WEIGHTS = st.one_of(st.integers(0, 3), st.integers(0, 100), st.integers(0, 10**9))


@st.composite
def bounded(draw: st.DrawFn, *, clusters_max: int = len(CLUSTERS), number_max: int = 30) -> Shares:
    names = CLUSTERS[: draw(st.integers(1, clusters_max))]
    numbers = st.integers(0, number_max)
    return {name: Preference(draw(WEIGHTS), draw(st.just(0) | numbers), draw(st.none() | numbers)) for name in names}


def free(shares: Shares) -> Shares:
    return {name: Preference(own.weight) for name, own in shares.items()}


def span(own: Preference, total: int) -> tuple[int, int]:
    """Return the least and the most number of a cluster; without weight it gets its minimum."""
    most = max(total, own.minimum) if own.maximum is None else own.maximum
    least = min(own.minimum, most)
    return least, most if own.weight else least


def fair_shares(total: int, shares: Shares) -> dict[str, Fraction] | None:
    """Return each cluster's exact share within its bounds; None if the bounds do not allow the total."""
    spans = {name: span(own, total) for name, own in shares.items()}
    if not sum(low for low, _ in spans.values()) <= total <= sum(high for _, high in spans.values()):
        return None

    def at(factor: Fraction) -> dict[str, Fraction]:
        return {
            name: max(Fraction(low), min(factor * shares[name].weight, Fraction(high)))
            for name, (low, high) in spans.items()
        }

    bends = sorted(
        {Fraction(0)}
        | {
            Fraction(bound, shares[name].weight)
            for name, both in spans.items()
            if shares[name].weight
            for bound in both
        }
    )
    below = max(bend for bend in bends if sum(at(bend).values()) <= total)
    beyond = next((bend for bend in bends if bend > below), below)
    low, high = sum(at(below).values()), sum(at(beyond).values())
    return at(below + (beyond - below) * (total - low) / (high - low) if high > low else below)


def check_shares(total: int, shares: Shares, numbers: Mapping[str, int]) -> None:
    fair = fair_shares(total, shares)
    if fair is None:
        least = sum(span(own, total)[0] for own in shares.values())
        assert sum(numbers.values()) == (total if least > total else sum(span(o, total)[1] for o in shares.values()))
        return
    assert sum(numbers.values()) == total
    for name, share in fair.items():
        assert abs(numbers[name] - share) < 1, (name, share, numbers)


@given(bounded(), st.integers(0, 120))
def test_every_cluster_has_its_share_rounded_down_or_up(shares: Shares, total: int) -> None:
    for own in (shares, free(shares)):
        check_shares(total, own, apportion(total, own, "default/web"))


@given(bounded(), st.integers(0, 120))
@example({"a": Preference(1, 0, 1), "c": Preference(1), "d": Preference(1, 0, 1)}, 1)
def test_one_more_replica_takes_none_away_and_one_less_adds_none(shares: Shares, total: int) -> None:
    fewer, more = apportion(total, shares, "default/web"), apportion(total + 1, shares, "default/web")
    assert all(more[name] >= count for name, count in fewer.items())


@given(bounded(), st.integers(0, 60), st.randoms())
def test_the_order_of_clusters_does_not_matter_to_the_numbers(shares: Shares, total: int, random: Random) -> None:
    names = list(shares)
    random.shuffle(names)
    assert apportion(total, {name: shares[name] for name in names}, "k") == apportion(total, shares, "k")


@given(st.lists(st.sampled_from(CLUSTERS), unique=True, min_size=1), st.integers(0, 40))
def test_no_cluster_of_equal_weight_is_empty_while_another_has_two(names: list[str], total: int) -> None:
    for current in ({}, {names[0]: total}):
        demand = Demand(total, tuple(names), dict.fromkeys(names, Preference(5)), "k", current, avoid_disruption=False)
        counts = plan_nearest(demand).replicas.values()
        assert max(counts) - min(counts) <= 1


@st.composite
def histories(draw: st.DrawFn, *, clusters_max: int = len(CLUSTERS), number_max: int = 30) -> Demand:
    shares = draw(bounded(clusters_max=clusters_max, number_max=number_max))
    counts = st.dictionaries(st.sampled_from(list(shares)), st.integers(0, number_max))
    return Demand(
        draw(st.integers(0, number_max * 2)),
        tuple(shares),
        {name: own._replace(minimum=span(own, number_max)[0]) for name, own in shares.items()},
        draw(st.sampled_from(("default/web", "ns/api"))),
        current=draw(counts),
        estimated=draw(st.just({}) | counts),
        limited=draw(st.just({}) | counts),
    )


def held(demand: Demand) -> dict[str, int]:
    """Return the current replicas within caps and estimates."""
    return {
        name: min(demand.current.get(name, 0), demand.limited.get(name, 1 << 30), demand.estimated.get(name, 1 << 30))
        for name in demand.clusters
    }


def check_moves(demand: Demand) -> None:
    before, plan = held(demand), plan_nearest(demand)
    moves = sum(abs(plan.replicas[name] - count) for name, count in before.items())
    assert moves == abs(sum(plan.replicas.values()) - sum(before.values()))
    assert sum(plan.totals().values()) <= max(demand.total, sum(before.values()) + sum(plan.overflow.values()))
    for name, count in plan.replicas.items():
        assert count >= 0
        top = demand.preferences[name].maximum
        assert count <= min(demand.limited.get(name, count), demand.estimated.get(name, count))
        assert top is None or count <= max(top, before[name])


@given(histories())
def test_replicas_move_only_by_the_difference_of_the_totals(demand: Demand) -> None:
    check_moves(demand)


@given(histories())
def test_a_division_that_is_fed_back_stays(demand: Demand) -> None:
    first = plan_nearest(replace(demand, estimated={}))
    again = replace(demand, estimated={}, current=first.replicas, total=sum(first.replicas.values()))
    assert plan_nearest(again).replicas == first.replicas


@given(histories())
def test_what_additions_or_removals_alone_can_reach_is_the_division_of_a_new_object(demand: Demand) -> None:
    before, new = held(demand), plan_nearest(replace(demand, current={})).replicas
    differences = [new[name] - count for name, count in before.items()]
    if sum(differences) and (min(differences) >= 0 or max(differences) <= 0):
        assert plan_nearest(demand).replicas == new


def webster(total: int, shares: Shares) -> dict[str, int]:
    """Return the division that knows no quota."""
    numbers = {name: span(own, total)[0] for name, own in shares.items()}
    while sum(numbers.values()) < total:
        open_ = [name for name, own in shares.items() if numbers[name] < span(own, total)[1]]
        numbers[min(open_, key=lambda name: Fraction(2 * numbers[name] + 1, shares[name].weight))] += 1
    return numbers


def largest_remainder(total: int, fair: Mapping[str, Fraction]) -> dict[str, int]:
    """Return the division that is not monotone."""
    numbers = {name: int(share) for name, share in fair.items()}
    ranked = sorted(fair, key=lambda name: numbers[name] - fair[name])
    for name in ranked[: total - sum(numbers.values())]:
        numbers[name] += 1
    return numbers


@given(bounded(), st.integers(0, 120))
@example({"a": Preference(64), "b": Preference(18), "c": Preference(18)}, 4)
def test_no_division_is_farther_from_the_shares_than_webster_and_largest_remainder(shares: Shares, total: int) -> None:
    fair = fair_shares(total, shares)
    if fair is None:
        return

    def distance(numbers: Mapping[str, int]) -> Fraction:
        return sum((abs(numbers[name] - share) for name, share in fair.items()), Fraction(0))

    others = max(distance(webster(total, shares)), distance(largest_remainder(total, fair)))
    assert distance(apportion(total, shares, "default/web")) <= others


def test_a_small_cluster_is_not_empty_while_a_large_one_is_above_its_share() -> None:
    weights = {"a": Preference(64), "b": Preference(18), "c": Preference(18)}
    assert plan_nearest(Demand(4, tuple(weights), weights)).replicas == {"a": 2, "b": 1, "c": 1}


@given(histories())
def test_a_trace_does_not_change_the_answer(demand: Demand) -> None:
    steps: list[dict[str, object]] = []
    assert plan_nearest(demand, steps) == plan_nearest(demand)
    assert steps[0]["step"] == "nearest"


def divisions(total: int, spans: list[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Yield all divisions of the total within the bounds."""
    yield from (d for d in product(*[range(low, high + 1) for low, high in spans]) if sum(d) == total)


def check_against_brute_force(demand: Demand) -> None:
    """Of all divisions with as few moves, the planner's is one of those with less than a replica of deviation."""
    before = held(demand)
    plan = plan_nearest(demand).replicas
    if plan == plan_nearest(replace(demand, current={})).replicas:
        return  # a new object would be divided so
    difference = sum(plan.values()) - sum(before.values())
    spans = []
    for name, own in demand.preferences.items():
        low, high = span(own._replace(weight=1), demand.total)
        low, high = (
            (max(low, before[name]), max(high, before[name]))
            if difference >= 0
            else (min(low, before[name]), min(high, before[name]))
        )
        spans.append((low, high))
    if sum(low for low, _ in spans) > sum(plan.values()):
        return  # the minimums are not met
    shares = {
        name: Preference(own.weight, *both) for (name, own), both in zip(demand.preferences.items(), spans, strict=True)
    }
    fair = fair_shares(sum(plan.values()), shares)
    if fair is None:
        return
    possible = [dict(zip(plan, d, strict=True)) for d in divisions(sum(plan.values()), spans)]
    assert plan in [d for d in possible if all(abs(count - fair[name]) < 1 for name, count in d.items())]


def one_by_one(total: int, shares: Shares) -> dict[Preference, list[int]]:
    """Return the numbers by preference, handed out one by one from the minimums, as the rule is written down."""
    numbers = {name: span(own, total)[0] for name, own in shares.items()}

    def due_by(amount: int) -> dict[str, int]:
        fair = fair_shares(amount, shares)
        return {} if fair is None else {name: max(0, int(share) - numbers[name]) for name, share in fair.items()}

    def leaves_room(name: str, amount: int) -> bool:
        """Return whether all that is due before the next one of a cluster can be given in time after it."""
        later = amount
        while (due := due_by(later)) and not due[name]:
            if sum(due.values()) > later - amount:
                return False
            later += 1
        return True

    def rank(name: str) -> tuple[Fraction, int, int, bool, int]:
        own = shares[name]
        return (
            Fraction(2 * numbers[name] + 1, own.weight),
            numbers[name],
            own.minimum,
            own.maximum is None,
            own.maximum or 0,
        )

    for amount in range(sum(numbers.values()) + 1, total + 1):
        fair = fair_shares(amount, shares)
        if fair is None:
            break
        released = sorted((name for name, count in numbers.items() if count < fair[name]), key=rank)
        numbers[next(name for name in released if leaves_room(name, amount))] += 1
    found: dict[Preference, list[int]] = {}
    for name, own in shares.items():
        found.setdefault(own, []).append(numbers[name])
    return {own: sorted(counts) for own, counts in found.items()}


@given(bounded(clusters_max=5, number_max=8), st.integers(0, 25))
@example({"a": Preference(1), "b": Preference(2, 0, 4), "c": Preference(0, 6), "d": Preference(9)}, 14)
@example(
    {"a": Preference(9), "b": Preference(9, 4), "c": Preference(3), "d": Preference(1), "e": Preference(3, 6, 7)}, 24
)
def test_the_shortcuts_give_what_handing_out_one_by_one_gives(shares: Shares, total: int) -> None:
    if total < sum(span(own, total)[0] for own in shares.values()):
        return
    found: dict[Preference, list[int]] = {}
    for name, count in apportion(total, shares).items():
        found.setdefault(shares[name], []).append(count)
    assert {own: sorted(counts) for own, counts in found.items()} == one_by_one(total, shares)


@given(histories(clusters_max=4, number_max=5).map(lambda d: replace(d, estimated={}, limited={})))
def test_small_divisions_are_among_the_nearest_of_all(demand: Demand) -> None:
    check_against_brute_force(demand)


def random_demand(random: Random, *, small: bool) -> Demand:
    names, most = CLUSTERS[: random.randint(1, 4 if small else 8)], 5 if small else 60

    def bound(chance: float) -> int | None:
        return random.randint(0, most) if random.random() < chance else None

    preferences = {
        name: Preference(random.choice((0, 1, 1, 2, random.randint(0, 100))), bound(0.2) or 0, bound(0.3))
        for name in names
    }
    preferences = {name: own._replace(minimum=span(own, most)[0]) for name, own in preferences.items()}
    current = {name: random.randint(0, most) for name in names if random.random() < 0.5}
    caps = {name: random.randint(0, most) for name in names if random.random() < 0.2 and not small}
    return Demand(random.randint(0, 2 * most), names, preferences, "default/web", current, limited=caps)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_random_inputs(seed: int) -> None:
    random = Random(seed)
    for _ in range(10_000):
        is_small = random.random() < 0.1
        demand = random_demand(random, small=is_small)
        shares = dict(demand.preferences)
        for own in (shares, free(shares)):
            fewer, more = (apportion(total, own, demand.key) for total in (demand.total, demand.total + 1))
            check_shares(demand.total, own, fewer)
            assert all(more[name] >= count for name, count in fewer.items())
        check_moves(demand)
        if is_small:
            check_against_brute_force(demand)


@given(st.text("abcdefgh/", max_size=12))
def test_the_examples_of_document_003_have_the_results_that_they_had(key: str) -> None:
    equal, three = dict.fromkeys("abc", Preference(10)), tuple("abc")
    weights = {"a": Preference(40), "b": Preference(30), "c": Preference(40)}
    for demand in (
        Demand(15, three, equal, key, current={"a": 15, "b": 15}),
        Demand(6, three, equal, key),
        Demand(6, three, equal, key, current={"a": 2, "b": 2, "c": 2}, estimated={"c": 0}),
        Demand(110, three, weights, key),
    ):
        assert plan_nearest(demand) == plan_replicas(demand)


def test_kubeadmirals_formula_fails_these_properties() -> None:
    """The tests above are not vacuous."""
    equal = Demand(4, tuple("abc"), dict.fromkeys("abc", Preference(1)))
    assert sorted(plan_replicas(equal).replicas.values()) == [0, 2, 2]
    assert sorted(plan_nearest(equal).replicas.values()) == [1, 1, 2]
    weights = {f"c{at}": Preference(w) for at, w in enumerate((92, 81, 67, 2, 87, 53, 64, 100, 81, 8, 70))}
    uneven = Demand(57, tuple(weights), weights)
    assert (plan_replicas(uneven).replicas["c5"], plan_nearest(uneven).replicas["c5"]) == (0, 4)
