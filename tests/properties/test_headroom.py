"""Invariants of `resettle`: where the replicas of a lost cluster find room."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.placement.headroom import Evacuee, resettle

CLUSTERS = ("a", "b", "c", "d")
amounts = st.fixed_dictionaries(
    {"cpu": st.integers(-500, 8000), "memory": st.integers(0, 64), "pods": st.integers(0, 20)}
)
rooms = st.dictionaries(st.sampled_from(CLUSTERS), amounts)
requests = st.fixed_dictionaries({"cpu": st.sampled_from([0, 100, 700, 2500]), "memory": st.integers(0, 9)})


@st.composite
def evacuees(draw: st.DrawFn) -> list[Evacuee]:
    found = []
    for number in range(draw(st.integers(0, 5))):
        limits = draw(st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, 6)))
        found.append(
            Evacuee(f"w{number}", draw(st.integers(0, 12)), draw(requests), lambda name, at=limits: at.get(name, 9))
        )
    return found


@given(evacuees(), rooms)
def test_every_replica_is_placed_or_homeless_and_no_cluster_is_overcommitted(
    leaving: list[Evacuee], free: dict[str, dict[str, int]]
) -> None:
    found = {each.name: each for each in resettle(leaving, free)}
    for evacuee in leaving:
        result = found[evacuee.name]
        assert sum(result.placed.values()) + result.homeless == evacuee.replicas
        assert result.homeless >= 0
        assert all(0 < count <= evacuee.fits(cluster) for cluster, count in result.placed.items())
    for cluster, room in free.items():
        for name, amount in room.items():
            taken = sum(found[each.name].placed.get(cluster, 0) * {**each.request, "pods": 1}[name] for each in leaving)
            assert taken <= max(0, amount)


@given(evacuees(), rooms, st.randoms(use_true_random=False))
def test_the_order_of_input_does_not_matter(
    leaving: list[Evacuee], free: dict[str, dict[str, int]], random: object
) -> None:
    shuffled, others = list(leaving), list(free)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    random.shuffle(others)  # type: ignore[attr-defined]  # a random.Random
    assert resettle(shuffled, {name: free[name] for name in others}) == resettle(leaving, free)


@given(evacuees(), rooms)
def test_nobody_is_homeless_with_a_cluster_of_unlimited_room(
    leaving: list[Evacuee], free: dict[str, dict[str, int]]
) -> None:
    endless = {"cpu": 10**9, "memory": 10**9, "pods": 10**9}
    unlimited = [replace(each, fits=lambda _: 10**9) for each in leaving]
    assert all(each.homeless == 0 for each in resettle(unlimited, {**free, "e": endless}))


@given(evacuees(), rooms)
def test_nobody_has_room_where_there_is_no_cluster(leaving: list[Evacuee], free: dict[str, dict[str, int]]) -> None:
    nowhere = [replace(each, fits=lambda _: 0) for each in leaving]
    for evacuee, result in zip(
        sorted(leaving, key=lambda each: each.name),
        sorted(resettle(nowhere, free), key=lambda each: each.name),
        strict=True,
    ):
        assert result.homeless == evacuee.replicas
