"""Properties of failover: rates, priorities, what leaves and returns, and halts."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.changehold import Hold
from federation.planning.failover.eviction import evict, is_divided, movable, return_batch, without_returns
from federation.planning.failover.halts import ClusterState, HaltOptions, HaltReason, next_halt
from federation.planning.failover.pace import WINDOW_S, Pace, PaceOptions

NAMES = ["east", "north", "south", "west"]
COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9))
COPIES = st.dictionaries(st.sampled_from(NAMES), st.none())
NOW = datetime(2026, 1, 1, tzinfo=UTC)
_STEPS = st.lists(
    st.tuples(
        st.integers(0, 11),  # object
        st.integers(1, 9),  # replicas that it wants to move
        st.floats(0.0, 40.0),  # time since the last step
        st.sampled_from(["written", "written", "failed", "withdrawn"]),
    ),
    max_size=120,
)
"""Objects 0 to 11; their namespace is their number modulo 3, their priority its quotient by 4."""


def _priority(key: int) -> int:
    return key // 4


@given(_STEPS, st.integers(1, 20), st.floats(0.0, 1.0))
def test_no_minute_has_more_moves_than_the_rate_and_no_namespace_more_than_its_share(
    steps: list[tuple[int, int, float, str]], limit: int, share: float
) -> None:
    options = PaceOptions(limit, share)
    pace: Pace[int] = Pace(options)
    now_s, moves = 0.0, list[tuple[float, int, int]]()
    for key, wanted, gap_s, end in steps:
        now_s += gap_s
        count = pace.propose(key, str(key % 3), _priority(key), wanted, now_s)
        assert 0 <= count <= wanted
        if end == "written" and count:
            pace.confirm(key, now_s)
            moves.append((now_s, key % 3, count))
        elif end == "withdrawn":
            pace.withdraw(key)
        for since_s in {at_s for at_s, _, _ in moves}:
            window = [move for move in moves if since_s <= move[0] < since_s + WINDOW_S]
            assert sum(count for _, _, count in window) <= limit
            for namespace in range(3):
                assert sum(count for _, of, count in window if of == namespace) <= options.per_namespace


@given(st.permutations(range(12)), st.integers(1, 30))
def test_objects_leave_in_the_order_of_their_priority(order: list[int], limit: int) -> None:
    pace: Pace[int] = Pace(PaceOptions(limit, 1.0))
    pace.remember(99, "", limit, 0.0)
    for key in order:
        assert pace.propose(key, str(key % 3), _priority(key), 2, 1.0) == 0
    found, now_s = list[int](), 1.0
    waiting = set(order)
    while waiting:
        turns, wait_s = pace.next_turns(now_s)
        for key in turns:
            count = pace.propose(key, str(key % 3), _priority(key), 2, now_s)
            if count:
                pace.confirm(key, now_s)
                found.append(key)
                waiting.discard(key)
        if not turns:
            assert wait_s is not None
            now_s += max(wait_s, 0.001)
    expected = sorted(order, key=lambda key: (-_priority(key), order.index(key)))
    assert found == expected


@given(_STEPS, st.integers(1, 20))
def test_every_object_has_its_turn(steps: list[tuple[int, int, float, str]], limit: int) -> None:
    pace: Pace[int] = Pace(PaceOptions(limit, 0.5))
    left, now_s = dict[int, int](), 0.0
    for key, wanted, _, _ in steps:
        left[key] = left.get(key, 0) + wanted
    for key, wanted in left.items():
        pace.propose(key, str(key % 3), _priority(key), wanted, now_s)
    rounds = 0
    while any(left.values()):
        rounds += 1
        assert rounds < 10_000
        for key, wanted in left.items():
            if wanted and (count := pace.propose(key, str(key % 3), _priority(key), wanted, now_s)):
                pace.confirm(key, now_s)
                left[key] -= count
        turns, wait_s = pace.next_turns(now_s)
        if not turns and any(left.values()):
            now_s += wait_s or 0.001
    assert pace.waiting == 0


@given(COUNTS, COUNTS, st.sets(st.sampled_from(NAMES)), COUNTS, COUNTS, st.integers(0, 9))
def test_an_eviction_moves_what_was_granted_and_places_no_more_than_wanted(
    before: Mapping[str, int],
    decided: Mapping[str, int],
    leaving: set[str],
    granted: Mapping[str, int],
    excess: Mapping[str, int],
    unplaced: int,
) -> None:
    leaving &= before.keys()
    after = {name: count for name, count in decided.items() if name not in leaving}
    eviction = evict(before, after, leaving, granted, excess=excess, unplaced=unplaced)
    total = sum(count or 0 for count in eviction.placement.values())
    assert sum(after.values()) <= total <= sum(after.values()) + unplaced
    for name in leaving:
        assert 0 <= eviction.moved.get(name, 0) <= min(before[name], granted.get(name, 0))
        assert eviction.moved.get(name, 0) + eviction.stays.get(name, 0) <= before[name]
        assert (eviction.placement.get(name) or 0) == eviction.stays.get(name, 0)
    for name in after.keys() - leaving:
        present = eviction.placement.get(name) or 0
        assert min(before.get(name, 0), after[name]) <= present <= after[name]
    most = movable(before, after, leaving, excess, 1)
    assert most <= sum(before[name] for name in leaving)
    if not any(granted.get(name) for name in leaving) and not unplaced:
        # Nothing was granted: nothing starts elsewhere for a replica that stays.
        started = sum(max(0, (eviction.placement.get(n) or 0) - before.get(n, 0)) for n in after)
        grown = max(0, sum(after.values()) - sum(before.values()))
        lost = sum(max(0, before.get(n, 0) - after[n]) for n in after)
        assert started <= grown + lost


@given(COPIES, COPIES, st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES)), st.integers(1, 4))
def test_copies_leave_as_a_whole_and_their_number_keeps_its_limit(
    before: Mapping[str, None], decided: Mapping[str, None], leaving: set[str], free: set[str], most: int
) -> None:
    leaving &= before.keys()
    after = {name: None for name in sorted(decided) if name not in leaving}
    after = dict(list(after.items())[:most])
    eviction = evict(before, after, leaving, dict.fromkeys(free, 1), excess={}, clusters_max=most)
    if is_divided(before, after):
        return  # both are empty
    assert eviction.placement.keys() & leaving == leaving - free
    assert eviction.placement.keys() <= after.keys() | leaving
    kept = (after.keys() & before.keys()) | (leaving - free)
    assert kept <= eviction.placement.keys()
    assert len(eviction.placement) <= max(most, len(kept))


def test_a_workload_of_one_cluster_returns_as_a_whole() -> None:
    assert return_batch({"b": 9}, {"a": 9}, {"a": 2}, 1) == {"a": 9}
    assert return_batch({"b": 9}, {"a": 9}, {"a": 0}, 1) == {"b": 9}
    assert return_batch({"b": 9}, {"a": 9}, {"a": 2}, 2) == {"a": 2, "b": 7}


@given(
    COUNTS,
    COUNTS,
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5)),
    st.none() | st.integers(1, 4),
)
def test_a_batch_returns_to_the_allowed_clusters_only_and_loses_nothing(
    before: Mapping[str, int], ideal: Mapping[str, int], allowed: Mapping[str, int], most: int | None
) -> None:
    after = return_batch(before, ideal, allowed, most)
    assert most is None or len(after) <= max(most, len(before))
    assert sum(count or 0 for count in after.values()) == sum(before.values())
    if most is not None and after == ideal and len(ideal) == 1 and allowed.get(*ideal, 0):
        return  # it cannot be in one cluster more, so all of it returns at once
    for name in before.keys() | after.keys():
        gain = (after.get(name) or 0) - before.get(name, 0)
        assert gain <= min(allowed.get(name, 0), max(0, ideal.get(name, 0) - before.get(name, 0)))
        assert gain >= min(0, ideal.get(name, 0) - before.get(name, 0))


@given(COUNTS, COUNTS, st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5)), st.sets(st.sampled_from(NAMES)))
def test_a_decision_without_returns_keeps_its_sum_and_moves_no_more_than_allowed(
    before: Mapping[str, int], after: Mapping[str, int], allowed: Mapping[str, int], rejected: set[str]
) -> None:
    found = without_returns(before, after, allowed, rejected)
    assert sum(count or 0 for count in found.values()) == sum(after.values())
    for name in before.keys() | after.keys():
        present = found.get(name) or 0
        assert min(before.get(name, 0), after.get(name, 0)) <= present
        assert present <= max(before.get(name, 0), after.get(name, 0))
    if len(allowed) == 1:
        ((name, most),) = allowed.items()
        gain = after.get(name, 0) - before.get(name, 0)
        losses = sum(max(0, before[other] - after.get(other, 0)) for other in before.keys() - rejected)
        undone = min(max(0, gain - most), losses)
        assert (found.get(name) or 0) == after.get(name, 0) - undone


_STATES = st.lists(st.tuples(st.sampled_from(["True", "False", "Unknown"]), st.integers(0, 60)), min_size=0, max_size=9)


@given(st.lists(st.tuples(_STATES, st.floats(0.0, 50.0)), max_size=12), st.floats(0.0, 1.0))
def test_evictions_halt_for_most_clusters_and_resume_after_a_while(
    history: list[tuple[list[tuple[str, int]], float]], share: float
) -> None:
    options = HaltOptions(share, 10.0, 30.0)
    now, halt = NOW, None
    last_cause: datetime | None = None
    for states, gap_s in history:
        now += timedelta(seconds=gap_s)
        clusters = [
            ClusterState(f"c{number}", ready, now - timedelta(seconds=age_s))
            for number, (ready, age_s) in enumerate(states)
        ]
        halt = next_halt(halt, clusters, now, options)
        lost = sum(cluster.is_lost for cluster in clusters)
        if len(clusters) > 1 and lost > share * len(clusters):
            assert halt is not None
            assert halt.reason is not HaltReason.SETTLING
        if halt is not None and halt.reason is not HaltReason.SETTLING:
            assert lost
            last_cause = now
        elif halt is not None:
            assert last_cause is not None
            assert halt.until is not None
            assert now < halt.until or gap_s == 0.0
        if halt is None and last_cause is not None:
            assert now >= last_cause + timedelta(seconds=options.settle_s)


def test_a_halt_that_held_before_a_restart_ends_with_the_same_delay() -> None:
    options = HaltOptions(settle_s=30.0)
    ready = [ClusterState(name, "True", NOW) for name in NAMES]
    halt = next_halt(Hold(HaltReason.MAJORITY, ""), ready, NOW, options)
    assert halt is not None
    assert halt.until == NOW + timedelta(seconds=30)
    assert next_halt(halt, ready, NOW + timedelta(seconds=29), options) == halt
    assert next_halt(halt, ready, NOW + timedelta(seconds=30), options) is None
