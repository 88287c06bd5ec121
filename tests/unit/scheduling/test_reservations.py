"""Promises of recent decisions: counted at once, gone when a report shows them or after a while."""

from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.framework.promised import Promised, Request, Tallies, content_hash, displaced
from federation.scheduling.reservations import Reservations

CORE: Request = (("cpu", 1000),)
GPU: Request = (("cpu", 1000), ("nvidia.com/gpu", 1))


def test_a_decision_counts_at_once_and_adds_up_by_request() -> None:
    ledger = Reservations()
    ledger.reserve("a", CORE, {}, {"east": 3, "west": 1}, 0.0)
    ledger.reserve("b", CORE, {"east": 2}, {"east": 4}, 0.0)
    ledger.reserve("c", GPU, {}, {"east": 1}, 0.0)
    assert ledger.promised(1.0) == {"east": {CORE: 5, GPU: 1}, "west": {CORE: 1}}


def test_what_was_handed_out_does_not_change_any_more() -> None:
    ledger = Reservations()
    ledger.reserve("a", CORE, {}, {"east": 3}, 0.0)
    seen = ledger.promised(0.0)
    ledger.reserve("b", CORE, {}, {"east": 1}, 0.0)
    ledger.release("a")
    assert seen == {"east": {CORE: 3}}
    assert ledger.promised(0.0) == {"east": {CORE: 1}}


def test_a_promise_lapses_after_its_time_and_a_larger_one_starts_anew() -> None:
    ledger = Reservations(lifetime_s=10.0)
    ledger.reserve("a", CORE, {}, {"east": 3}, 0.0)
    ledger.reserve("b", CORE, {}, {"east": 1}, 1.0)
    ledger.reserve("a", CORE, {"east": 3}, {"east": 5}, 6.0)
    assert ledger.promised(10.5) == {"east": {CORE: 6}}
    assert ledger.promised(11.0) == {"east": {CORE: 5}}
    assert ledger.promised(16.0) == {}


def test_a_report_redeems_the_oldest_promises_as_far_as_less_is_free() -> None:
    ledger = Reservations()
    ledger.reserve("a", CORE, {}, {"east": 3}, 0.0)
    ledger.reserve("b", GPU, {}, {"east": 2}, 0.0)
    ledger.reported("west", {"cpu": 9000}, {"cpu": 0})
    ledger.reported("east", {"cpu": 9000, "nvidia.com/gpu": 4}, {"cpu": 5500, "nvidia.com/gpu": 3})
    assert ledger.promised(0.0) == {"east": {GPU: 2}}
    ledger.reported("east", {"cpu": 5500, "nvidia.com/gpu": 3}, {"cpu": 3500, "nvidia.com/gpu": 2})
    assert ledger.promised(0.0) == {"east": {GPU: 1}}
    ledger.reported("east", {"cpu": 3500}, {"cpu": 9000})
    assert ledger.promised(0.0) == {"east": {GPU: 1}}


def test_a_promise_of_pods_without_requests_is_redeemed_by_any_report() -> None:
    ledger = Reservations()
    ledger.reserve("a", (), {}, {"east": 3}, 0.0)
    ledger.reported("east", {"cpu": 1}, {"cpu": 1})
    assert ledger.promised(0.0) == {}


def test_who_shrinks_or_leaves_gives_its_promise_back() -> None:
    ledger = Reservations()
    ledger.reserve("a", CORE, {}, {"east": 5, "west": 5}, 0.0)
    ledger.reserve("a", CORE, {"east": 5, "west": 5}, {"east": 2}, 0.0)
    assert ledger.promised(0.0) == {"east": {CORE: 2}}
    ledger.reserve("a", CORE, {"east": 9}, {"east": 8}, 0.0)
    assert ledger.promised(0.0) == {"east": {CORE: 1}}
    ledger.release("a")
    assert ledger.promised(0.0) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.dictionaries(st.sampled_from(("east", "west")), st.integers(0, 5)),
            st.floats(0, 20),
        ),
        max_size=20,
    )
)
def test_never_more_is_promised_than_was_decided_and_in_the_end_nothing(
    decisions: list[tuple[str, dict[str, int], float]],
) -> None:
    ledger, placed, now_s = Reservations(30.0), dict[str, dict[str, int]](), 0.0
    for key, after, pause_s in decisions:
        now_s += pause_s
        ledger.reserve(key, CORE, placed.get(key, {}), after, now_s)
        placed[key] = after
        promised = ledger.promised(now_s)
        for cluster in ("east", "west"):
            total = sum(replicas.get(cluster, 0) for replicas in placed.values())
            assert 0 <= promised.get(cluster, {}).get(CORE, 0) <= total
    assert ledger.promised(now_s + 31.0) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from((CORE, GPU, ())),
            st.dictionaries(st.sampled_from(("east", "west")), st.integers(0, 5)),
            st.booleans(),
        ),
        max_size=20,
    )
)
def test_what_is_kept_up_to_date_is_what_counting_everything_gives(
    history: list[tuple[str, Request, dict[str, int], bool]],
) -> None:
    ledger = Reservations(lifetime_s=5.0)
    placed: dict[str, dict[str, int]] = {}
    early = ledger.promised(0.0)
    for now, (key, request, after, is_asked) in enumerate(history):
        ledger.reserve(key, request, placed.get(key, {}), after, float(now))
        placed[key] = after
        promised = ledger.promised(float(now))
        for seen in (promised, early) if is_asked else ():
            plain = {cluster: dict(held) for cluster, held in seen.items()}
            assert content_hash(seen) == content_hash(plain)
            for asked in (CORE, GPU, ()):
                kept = {cluster: count for cluster, count in displaced(seen, asked).items() if count}
                assert kept == displaced(plain, asked)


def test_what_is_kept_of_promises_is_bounded() -> None:
    tallies = Tallies()
    early = Promised({"east": {CORE: 1}}, tallies, 0)
    for cpu in range(300):
        assert displaced(early, (("cpu", 500 + cpu),)) == {"east": -(-1000 // (500 + cpu))}
    assert len(tallies._kept) <= 256
    for _ in range(50_001):
        tallies.note(CORE, [("east", 1)])
    late = Promised({"east": {CORE: 50_002}}, tallies, 0)
    assert displaced(late, CORE) == {"east": 50_002}
    assert displaced(early, CORE) == {"east": 1}
    assert len(tallies._log) == 1
    assert tallies.version == 50_001
