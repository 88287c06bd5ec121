"""Numbers of groups of clusters: a choice never violates a limit, keeps the order, and exists if one limit allows it."""

from collections.abc import Mapping, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.planning.placement.groupcounts import GroupLimit, Values, choose_groups, counts_of, values_of

NAMES = tuple("abcdefgh")
LABELS = st.fixed_dictionaries({}, optional={key: st.sampled_from("123") for key in ("zone", "region")})
FLEETS = st.dictionaries(st.sampled_from(NAMES), LABELS, min_size=1)


@st.composite
def limits(draw: st.DrawFn) -> tuple[GroupLimit, ...]:
    keys = draw(st.lists(st.sampled_from(["", "zone", "region"]), min_size=1, max_size=3, unique=True))
    made = []
    for key in keys:
        least = draw(st.integers(1, 3))
        made.append(GroupLimit(key, least, draw(st.none() | st.integers(least, 4))))
    return tuple(made)


def satisfies(
    chosen: Sequence[str], values: Mapping[str, Values], given_limits: Sequence[GroupLimit], most: int | None
) -> bool:
    counts = counts_of(chosen, values, given_limits)
    within = all(
        limit.least <= count and (limit.most is None or count <= limit.most)
        for count, limit in zip(counts, given_limits, strict=True)
    )
    return within and (most is None or len(chosen) <= most) and all(None not in values[name] for name in chosen)


@examples(300)
@given(FLEETS, limits(), st.none() | st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_choice_satisfies_every_limit(fleet: Mapping[str, Mapping[str, str]], given_limits, most, random) -> None:  # type: ignore[no-untyped-def]
    ordered = sorted(fleet)
    random.shuffle(ordered)
    values = {name: values_of(given_limits, name, labels) for name, labels in fleet.items()}
    choice = choose_groups(ordered, values, given_limits, most)
    assert bool(choice.chosen) is not bool(choice.problem)
    if choice.chosen:
        assert satisfies(choice.chosen, values, given_limits, most)
        assert set(choice.needed) <= set(choice.chosen)
        assert list(choice.chosen) == [name for name in ordered if name in choice.chosen]
        again = choose_groups(
            [*choice.chosen, *(n for n in ordered if n not in choice.chosen)], values, given_limits, most
        )
        assert set(again.chosen) == set(choice.chosen), "what runs stays"
    elif len(given_limits) == 1:
        sizes = range(1, len(ordered) + 1)
        every = (each for size in sizes for each in combinations(ordered, size))
        assert not any(satisfies(each, values, given_limits, most) for each in every)
