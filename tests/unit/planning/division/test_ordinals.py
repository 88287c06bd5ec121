"""Ranges of ordinals: apart from each other, stable, and with room to grow."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.division.ordinals import (
    OrdinalError,
    count_reserved,
    divide_partition,
    parse_record,
    plan_ranges,
)

CLUSTERS = st.sampled_from(["a", "b", "c", "d", "e"])
REPLICAS = st.dictionaries(CLUSTERS, st.integers(0, 1000), min_size=1)


def test_the_first_cluster_keeps_the_ordinals_of_the_template() -> None:
    assert plan_ranges({"east": 3}, {}, base=0) == {"east": 0}
    assert plan_ranges({"east": 3, "north": 2}, {}, base=0) == {"east": 0, "north": 1000}


def test_a_cluster_that_runs_it_already_keeps_its_ordinals() -> None:
    assert plan_ranges({"east": 3, "north": 2}, {}, base=0, first=["north"]) == {"north": 0, "east": 1000}


def test_a_cluster_that_returns_gets_its_range_again() -> None:
    recorded = {"east": 0, "north": 1000, "west": 2000}
    assert plan_ranges({"west": 3}, recorded, base=0) == recorded
    assert plan_ranges({"west": 3, "south": 1}, recorded, base=0)["south"] == 3000


def test_a_larger_set_gets_wider_ranges() -> None:
    assert plan_ranges({"east": 900, "north": 900}, {}, base=0) == {"east": 0, "north": 4000}


def test_a_range_that_is_full_is_an_error_with_a_remedy() -> None:
    with pytest.raises(OrdinalError, match=r"from 5 .*from 1005.*1001 replicas in east.*maxReplicas: 1000"):
        plan_ranges({"east": 1001, "north": 1}, {"east": 0, "north": 1000}, base=5)


def test_a_range_without_pods_does_not_stop_another_one_from_growing() -> None:
    assert plan_ranges({"east": 1001}, {"east": 0, "north": 1000}, base=0) == {"east": 0}


def test_ordinals_beyond_32_bits_are_an_error() -> None:
    with pytest.raises(OrdinalError, match="exceed 2147483647"):
        plan_ranges({"east": 2}, {}, base=2**31 - 2)


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "nonsense", '{"a": -1}', '{"a": true}', '{"a": "0"}', '{"a": 0, "b": 0}', '{"a": 2147483648}'],
)
def test_a_malformed_record_counts_as_none(text: str | None) -> None:
    assert parse_record(text) == {}


def test_a_record_is_read() -> None:
    assert parse_record('{"a": 0, "b": 1000}') == {"a": 0, "b": 1000}


@given(st.lists(REPLICAS, min_size=1, max_size=8), st.integers(0, 100))
def test_ranges_never_overlap_and_never_move(decisions: list[dict[str, int]], base: int) -> None:
    recorded: dict[str, int] = {}
    for replicas in decisions:
        try:
            starts = plan_ranges(replicas, parse_record(orjson.dumps(recorded).decode()), base=base)
        except OrdinalError:
            continue  # the placement stays, so nothing was renumbered
        taken = [starts[name] + number for name, count in replicas.items() for number in range(count)]
        assert len(taken) == len(set(taken))
        assert all(starts[name] == recorded[name] for name in starts.keys() & recorded.keys())
        recorded = starts


@given(REPLICAS, st.integers(0, 5000))
def test_the_partitions_leave_as_many_pods_as_one_cluster_would(replicas: dict[str, int], partition: int) -> None:
    starts = plan_ranges(replicas, {}, base=0)
    shares = divide_partition(partition, replicas, starts)
    assert sum(shares.values()) == min(partition, sum(replicas.values()))
    assert all(0 <= shares[name] <= count for name, count in replicas.items())
    ordered = sorted(replicas, key=lambda name: starts[name])
    for index, name in enumerate(ordered):
        assert shares[name] == replicas[name] or not any(shares[later] for later in ordered[index + 1 :])


@pytest.mark.parametrize(
    ("entries", "count"),
    [
        (None, 0),
        ("1", 0),
        ([], 0),
        ([1, 3, "5"], 3),
        ([1, "3-5"], 4),
        (["5-3", "a", None, {}, -1, True, "1-", "99999999999"], 0),
        (["0-9999999999"], 2**31),
    ],
)
def test_reserved_ordinals_are_counted(entries: Any, count: int) -> None:
    assert count_reserved(entries) == count
