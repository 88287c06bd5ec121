"""The choice between clusters for a job with a deadline."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.features.queues.rules.bidding import choose
from federation.scheduling.deadlines import Deadline, Offer, to_alternatives

NOW = 1_000.0
offers = st.lists(
    st.builds(
        Offer,
        st.sampled_from("abcdefgh"),
        st.none() | st.integers(0, 10**12),
        st.booleans(),
        st.none() | st.floats(NOW, NOW + 10_000),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda offer: offer.cluster,
)
deadlines = st.builds(
    Deadline,
    st.floats(0, NOW + 20_000),
    st.floats(1, 5_000),
    st.floats(0, 5_000),
    st.integers(0, 3),
    st.sampled_from(("price", "carbon")),
)


@given(deadlines, offers, st.randoms(use_true_random=False))
@examples(200)
def test_a_job_starts_where_nothing_cheaper_ends_in_time(
    deadline: Deadline, found: list[Offer], random: object
) -> None:
    alternatives = to_alternatives(deadline, found, NOW)
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random
    assert to_alternatives(deadline, shuffled, NOW) == alternatives
    assert sorted(each.cluster for each in alternatives) == sorted(each.cluster for each in found)

    by_name = {each.cluster: each for each in found}
    met = [each for each in alternatives if each.is_met]
    assert alternatives[: len(met)] == met
    for each in met:
        offer = by_name[each.cluster]
        assert offer.start_s is not None
        assert deadline.end_s(offer.start_s, is_spot=offer.is_spot) <= deadline.by_s
        assert not offer.is_spot or deadline.spot_retries

    open_ = {each.cluster for each in found if each.start_s == NOW}
    chosen = choose(alternatives, open_)
    assert chosen <= open_
    if open_ and not chosen:
        assert met, "it waits only for a cluster in which it ends in time"
        assert met[0].cluster not in open_
    for name in chosen:
        mine = next(each for each in alternatives if each.cluster == name)
        if met:
            assert mine.is_met
            costs = [each.cost for each in met if each.cost is not None]
            assert mine.cost == (min(costs) if costs else None)
