"""Assumed replicas: counted at once, removed when a report confirms them or when they expire."""

from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.framework.assumed import (
    AssumedReplicas,
    DisplacedCounts,
    Request,
    displaced_replicas,
    hash_of_assumed,
)

CORE: Request = (("cpu", 1000),)
GPU: Request = (("cpu", 1000), ("nvidia.com/gpu", 1))


def test_assumed_replicas_count_at_once_and_are_summed_by_request() -> None:
    cache = AssumeCache()
    cache.assume("a", CORE, {}, {"east": 3, "west": 1}, 0.0)
    cache.assume("b", CORE, {"east": 2}, {"east": 4}, 0.0)
    cache.assume("c", GPU, {}, {"east": 1}, 0.0)
    assert cache.snapshot(1.0) == {"east": {CORE: 5, GPU: 1}, "west": {CORE: 1}}


def test_a_snapshot_does_not_change() -> None:
    cache = AssumeCache()
    cache.assume("a", CORE, {}, {"east": 3}, 0.0)
    seen = cache.snapshot(0.0)
    cache.assume("b", CORE, {}, {"east": 1}, 0.0)
    cache.forget("a")
    assert seen == {"east": {CORE: 3}}
    assert cache.snapshot(0.0) == {"east": {CORE: 1}}


def test_an_entry_expires_and_a_larger_one_has_a_new_lifetime() -> None:
    cache = AssumeCache(lifetime_s=10.0)
    cache.assume("a", CORE, {}, {"east": 3}, 0.0)
    cache.assume("b", CORE, {}, {"east": 1}, 1.0)
    cache.assume("a", CORE, {"east": 3}, {"east": 5}, 6.0)
    assert cache.snapshot(10.5) == {"east": {CORE: 6}}
    assert cache.snapshot(11.0) == {"east": {CORE: 5}}
    assert cache.snapshot(16.0) == {}


def test_a_report_with_less_free_resources_confirms_the_oldest_entries() -> None:
    cache = AssumeCache()
    cache.assume("a", CORE, {}, {"east": 3}, 0.0)
    cache.assume("b", GPU, {}, {"east": 2}, 0.0)
    cache.confirm("west", {"cpu": 9000}, {"cpu": 0})
    cache.confirm("east", {"cpu": 9000, "nvidia.com/gpu": 4}, {"cpu": 5500, "nvidia.com/gpu": 3})
    assert cache.snapshot(0.0) == {"east": {GPU: 2}}
    cache.confirm("east", {"cpu": 5500, "nvidia.com/gpu": 3}, {"cpu": 3500, "nvidia.com/gpu": 2})
    assert cache.snapshot(0.0) == {"east": {GPU: 1}}
    cache.confirm("east", {"cpu": 3500}, {"cpu": 9000})
    assert cache.snapshot(0.0) == {"east": {GPU: 1}}


def test_all_pods_of_an_object_count_by_request_until_reports_show_them() -> None:
    cache, pods = AssumeCache(), {CORE: 5, GPU: 2}
    cache.assume_whole("a", pods, (), ("east",), 0.0)
    cache.assume_whole("b", {CORE: 1}, (), ("east", "west"), 0.0)
    assert cache.snapshot(0.0) == {"east": {CORE: 6, GPU: 2}, "west": {CORE: 1}}
    cache.assume_whole("a", pods, ("east",), ("west",), 1.0)
    assert cache.snapshot(1.0) == {"east": {CORE: 1}, "west": {CORE: 6, GPU: 2}}
    cache.confirm("west", {"cpu": 9000, "nvidia.com/gpu": 4}, {"cpu": 3000, "nvidia.com/gpu": 4})
    assert cache.snapshot(299.0) == {"east": {CORE: 1}, "west": {GPU: 2}}
    cache.forget("a")
    assert cache.snapshot(299.0) == {"east": {CORE: 1}}
    assert cache.snapshot(300.0) == {}


def test_a_resource_that_reports_leave_out_does_not_keep_an_entry() -> None:
    cache = AssumeCache()
    cache.assume("a", GPU, {}, {"east": 2}, 0.0)
    cache.confirm("east", {"memory": 9000}, {"memory": 7000})
    assert cache.snapshot(0.0) == {"east": {GPU: 2}}
    cache.confirm("east", {"cpu": 9000}, {"cpu": 7000})
    assert cache.snapshot(0.0) == {}


def test_any_report_confirms_assumed_pods_without_requests() -> None:
    cache = AssumeCache()
    cache.assume("a", (), {}, {"east": 3}, 0.0)
    cache.confirm("east", {"cpu": 1}, {"cpu": 1})
    assert cache.snapshot(0.0) == {}


def test_scaling_down_removes_assumed_replicas() -> None:
    cache = AssumeCache()
    cache.assume("a", CORE, {}, {"east": 5, "west": 5}, 0.0)
    cache.assume("a", CORE, {"east": 5, "west": 5}, {"east": 2}, 0.0)
    assert cache.snapshot(0.0) == {"east": {CORE: 2}}
    cache.assume("a", CORE, {"east": 9}, {"east": 8}, 0.0)
    assert cache.snapshot(0.0) == {"east": {CORE: 1}}
    cache.forget("a")
    assert cache.snapshot(0.0) == {}


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
def test_assumed_replicas_never_exceed_decisions_and_expire(
    decisions: list[tuple[str, dict[str, int], float]],
) -> None:
    cache, placed, now_s = AssumeCache(30.0), dict[str, dict[str, int]](), 0.0
    for key, after, pause_s in decisions:
        now_s += pause_s
        cache.assume(key, CORE, placed.get(key, {}), after, now_s)
        placed[key] = after
        assumed = cache.snapshot(now_s)
        for cluster in ("east", "west"):
            total = sum(replicas.get(cluster, 0) for replicas in placed.values())
            assert 0 <= assumed.get(cluster, {}).get(CORE, 0) <= total
    assert cache.snapshot(now_s + 31.0) == {}


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
def test_updated_counts_equal_recounted_ones(
    history: list[tuple[str, Request, dict[str, int], bool]],
) -> None:
    cache = AssumeCache(lifetime_s=5.0)
    placed: dict[str, dict[str, int]] = {}
    early = cache.snapshot(0.0)
    for now, (key, request, after, is_asked) in enumerate(history):
        cache.assume(key, request, placed.get(key, {}), after, float(now))
        placed[key] = after
        assumed = cache.snapshot(float(now))
        for seen in (assumed, early) if is_asked else ():
            plain = {cluster: dict(held) for cluster, held in seen.items()}
            assert hash_of_assumed(seen) == hash_of_assumed(plain)
            for asked in (CORE, GPU, ()):
                kept = {cluster: count for cluster, count in displaced_replicas(seen, asked).items() if count}
                assert kept == displaced_replicas(plain, asked)


def test_displaced_counts_are_limited() -> None:
    displaced = DisplacedCounts()
    displaced.record(CORE, [("east", 1)])
    early = AssumedReplicas({"east": {CORE: 1}}, displaced, 0)
    for cpu in range(300):
        assert displaced_replicas(early, (("cpu", 500 + cpu),)) == {"east": -(-1000 // (500 + cpu))}
    assert len(displaced._counts) <= 256
    for _ in range(50_001):
        displaced.record(CORE, [("east", 1)])
    late = AssumedReplicas({"east": {CORE: 50_002}}, displaced, 0)
    assert displaced_replicas(late, CORE) == {"east": 50_002}
    assert displaced_replicas(early, CORE) == {"east": 1}
    assert len(displaced._log) == 2
    assert displaced.version == 50_002


@given(
    st.lists(
        st.tuples(
            st.sampled_from((CORE, GPU, (), (("cpu", 1),))),
            st.lists(
                st.tuples(
                    st.sampled_from([f"member-{number}" for number in range(12)]),
                    st.one_of(st.integers(-9, 9), st.integers(-(2**33), 2**33)),
                ),
                max_size=14,
            ),
        ),
        max_size=8,
    ),
    st.integers(0, 8),
)
def test_counts_are_exact_for_any_change_and_version(
    history: list[tuple[Request, list[tuple[str, int]]]], behind: int
) -> None:
    displaced, content = DisplacedCounts(), dict[str, dict[Request, int]]()
    versions = [AssumedReplicas({}, displaced, 0)]
    for request, changes in history:
        displaced.record(request, changes)
        for cluster, difference in changes:
            held = content.setdefault(cluster, {})
            held[request] = held.get(request, 0) + difference
        versions.append(AssumedReplicas({name: dict(held) for name, held in content.items()}, displaced, 0))
    for seen in (versions[-1], versions[max(0, len(versions) - 1 - behind)], versions[-1]):
        for asked in (CORE, (), (("cpu", 1), ("memory", 2**40))):
            plain = displaced_replicas(dict(seen), asked)
            assert displaced_replicas(seen, asked) == {name: count for name, count in plain.items() if count}


def test_bounds_of_counts_do_not_end_the_fast_way() -> None:
    displaced, many = DisplacedCounts(), 2**28
    for _ in range(20):
        displaced.record(CORE, [("east", many)])
        displaced.record(CORE, [("east", -many), ("west", 1)])
    assert displaced.counts_for(CORE, AssumedReplicas({}, displaced, 0)) == {"west": 20}  # nothing is counted again
