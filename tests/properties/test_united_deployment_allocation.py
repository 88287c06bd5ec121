"""Divisions of a UnitedDeployment's replicas keep their totals and bounds, for arbitrary subsets and states."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.features.uniteddeployment.rules.allocation import (
    Bounds,
    SubsetState,
    adapt_bounds,
    allocate,
    divide_rest,
    fill,
    fill_reserving,
)
from federation.features.uniteddeployment.rules.subsetcounts import (
    UNLIMITED,
    AllocationError,
    divide_by_percentage,
    parse_count,
)

NAMES = tuple("abcdef")
TOTALS = st.integers(0, 60)
STATES = st.builds(
    SubsetState,
    replicas=st.integers(0, 30),
    ready=st.integers(0, 30),
    reserved=st.integers(0, 10),
    is_schedulable=st.booleans(),
    was_schedulable=st.booleans(),
)
REACHABLE_OR_NOT = st.builds(
    SubsetState,
    replicas=st.integers(0, 30),
    ready=st.integers(0, 30),
    is_schedulable=st.booleans(),
    is_reachable=st.booleans(),
)


@st.composite
def bounds(draw: st.DrawFn, *, is_open: bool = True) -> list[Bounds]:
    """Draw subsets with bounds; with `is_open` the last one has no maximum."""
    found = []
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        minimum = draw(st.integers(0, 8))
        found.append(Bounds(name, minimum, draw(st.sampled_from((UNLIMITED, minimum + draw(st.integers(0, 8)))))))
    if is_open:
        found[-1] = Bounds(found[-1].name, found[-1].minimum, UNLIMITED)
    return found


OBSERVED = st.dictionaries(st.sampled_from(NAMES), STATES)


@given(bounds(is_open=False), TOTALS)
def test_elastic_divisions_keep_the_total_and_never_exceed_a_maximum(subsets: list[Bounds], total: int) -> None:
    allocation = fill(subsets, total)
    assert list(allocation) == [subset.name for subset in subsets]
    assert sum(allocation.values()) == min(total, sum(subset.maximum for subset in subsets))
    assert all(0 <= allocation[subset.name] <= subset.maximum for subset in subsets)


@given(bounds(is_open=False), TOTALS)
def test_minimums_come_before_maximums_and_in_order(subsets: list[Bounds], total: int) -> None:
    allocation = fill(subsets, total)
    for place, subset in enumerate(subsets):
        if allocation[subset.name] < subset.minimum:
            assert all(allocation[other.name] <= other.minimum for other in subsets)
            assert all(allocation[other.name] == 0 for other in subsets[place + 1 :])
        if allocation[subset.name] > subset.minimum:
            assert all(allocation[other.name] == other.maximum for other in subsets[:place])


@given(bounds(), TOTALS)
def test_a_scale_in_takes_one_replica_at_a_time_in_reverse(subsets: list[Bounds], total: int) -> None:
    larger, smaller = fill(subsets, total + 1), fill(subsets, total)
    changed = [name for name in larger if larger[name] != smaller[name]]
    assert len(changed) == 1
    assert larger[changed[0]] == smaller[changed[0]] + 1


@given(bounds(), TOTALS, OBSERVED)
def test_adaptive_divisions_keep_the_total_while_one_subset_is_open(
    subsets: list[Bounds], total: int, observed: dict[str, SubsetState]
) -> None:
    adapted = adapt_bounds(subsets, observed)
    allocation = fill(adapted, total)
    assert sum(allocation.values()) <= total
    if any(s.maximum == UNLIMITED and (s.name not in observed or observed[s.name].is_schedulable) for s in subsets):
        assert sum(allocation.values()) == total
    for subset in subsets:
        state = observed.get(subset.name)
        if state is not None and not state.is_schedulable:
            assert allocation[subset.name] <= max(state.ready, subset.minimum)
        else:
            assert allocation[subset.name] <= subset.maximum


@given(bounds(), TOTALS, OBSERVED)
def test_healthy_replicas_are_not_drained_while_the_total_covers_them(
    subsets: list[Bounds], total: int, observed: dict[str, SubsetState]
) -> None:
    adapted = adapt_bounds(subsets, observed)
    allocation = fill(adapted, total)
    if sum(subset.minimum for subset in adapted) <= total:
        for subset in subsets:
            state = observed.get(subset.name, SubsetState())
            if state.is_schedulable:
                assert allocation[subset.name] >= min(state.ready, subset.maximum)


@given(bounds(), TOTALS)
def test_without_unschedulable_subsets_reserving_divides_like_elastic(subsets: list[Bounds], total: int) -> None:
    assert fill_reserving(subsets, total, {}) == fill(subsets, total)


@given(bounds(), TOTALS, OBSERVED)
def test_reserving_adds_at_most_one_substitute_for_each_replica_that_may_not_run(
    subsets: list[Bounds], total: int, observed: dict[str, SubsetState]
) -> None:
    observed = {
        name: SubsetState(s.replicas, min(s.ready, s.replicas), min(s.reserved, s.replicas), s.is_schedulable)
        for name, s in observed.items()
    }
    allocation = fill_reserving(subsets, total, observed)
    unsure = {name: state for name, state in observed.items() if not state.is_schedulable and name in allocation}
    surplus = sum(allocation.values()) - total
    assert surplus <= sum(max(0, allocation[name] - (s.replicas - s.reserved)) for name, s in unsure.items())
    if any(s.maximum == UNLIMITED and s.name not in unsure for s in subsets):
        assert surplus >= 0


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), min_size=1),
    st.data(),
    TOTALS,
)
def test_shares_of_the_rest_differ_by_at_most_one(current: dict[str, int], data: st.DataObject, extra: int) -> None:
    chosen = data.draw(st.lists(st.sampled_from(sorted(current)), unique=True, max_size=len(current) - 1))
    specified = {name: data.draw(st.integers(0, 9)) for name in chosen}
    total = sum(specified.values()) + extra
    allocation = divide_rest(current, total, specified)
    assert sum(allocation.values()) == total
    assert {name: allocation[name] for name in specified} == specified
    rest = [allocation[name] for name in current if name not in specified]
    assert max(rest) - min(rest) <= 1
    largest = max((name for name in current if name not in specified), key=lambda name: (current[name], name))
    assert allocation[largest] == max(rest)


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"minReplicas": st.integers(0, 4), "replicas": st.integers(0, 4)}),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from((None, {"type": "Adaptive"}, {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}})),
    TOTALS,
    st.data(),
)
def test_subsets_that_cannot_be_reached_keep_their_replicas_and_get_no_substitutes(
    given_subsets: list[dict[str, int]], strategy: dict[str, Any] | None, total: int, data: st.DataObject
) -> None:
    subsets = [{"name": NAMES[place], **subset} for place, subset in enumerate(given_subsets)]
    lost = data.draw(st.lists(st.sampled_from([subset["name"] for subset in subsets]), unique=True))
    observed = {name: SubsetState(replicas=data.draw(st.integers(0, 9)), is_reachable=False) for name in lost}
    spec = {"replicas": total, "topology": {"subsets": subsets, "scheduleStrategy": strategy}}
    try:
        allocation = allocate(spec, observed)
    except AllocationError:
        return
    is_specific = strategy is None and not any("minReplicas" in subset for subset in subsets)
    own = {str(subset["name"]) for subset in subsets if is_specific and "replicas" in subset}
    kept = {name: observed[name].replicas for name in lost if name not in own}
    assert {name: allocation[name] for name in kept} == kept
    fixed = sum(allocation[name] for name in own) + sum(kept.values())
    if own | kept.keys() != allocation.keys():
        assert sum(allocation.values()) == max(total, fixed)


@st.composite
def percentages(draw: st.DrawFn) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, 100), max_size=5)))
    return [high - low for low, high in zip([0, *cuts], [*cuts, 100], strict=True)]


@given(percentages(), st.integers(0, 10_000))
def test_percentages_of_everything_divide_the_total_within_one_of_the_exact_share(
    shares: list[int], total: int
) -> None:
    counts = divide_by_percentage(shares, total)
    assert sum(counts) == total
    assert all(abs(100 * count - share * total) < 100 for count, share in zip(counts, shares, strict=True))
    subsets: list[dict[str, Any]] = [
        {"name": str(place), "replicas": f"{share}%"} for place, share in enumerate(shares)
    ]
    spec = {"replicas": total, "topology": {"subsets": subsets}}
    assert list(allocate(spec, {}).values()) == counts


@given(st.integers(0, 100), st.integers(0, 10_000))
def test_a_percentage_is_rounded_half_up(percentage: int, total: int) -> None:
    count = parse_count(f"{percentage}%", total)
    assert -1 < 2 * (count - percentage * total / 100) <= 1


@given(st.dictionaries(st.sampled_from(NAMES), REACHABLE_OR_NOT), TOTALS, st.sampled_from(("Fixed", "Adaptive")))
def test_unreachable_subsets_never_shrink_and_grow_only_with_the_fixed_strategy(
    observed: dict[str, SubsetState], total: int, strategy: str
) -> None:
    topology = {
        "subsets": [{"name": name, "maxReplicas": 5} for name in NAMES[:-1]] + [{"name": NAMES[-1]}],
        "scheduleStrategy": {"type": strategy},
    }
    allocation = allocate({"replicas": total, "topology": topology}, observed)
    for name, state in observed.items():
        if not state.is_reachable:
            assert allocation[name] >= state.replicas
            assert strategy == "Fixed" or allocation[name] == state.replicas
