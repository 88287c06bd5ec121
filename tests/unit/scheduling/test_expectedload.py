"""Every step of a decision counts the replicas of the decisions before it, which no member has reported yet."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.attempt import assume
from federation.scheduling.engine import Engine
from federation.scheduling.framework.capacity import capacity_of
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.expectedload import with_assumed
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import Cluster, pod_shape
from federation.scheduling.snapshot import Snapshot

FOUR_CORES = {"cpu": 4000, "memory": 1 << 30}
REQUEST = tuple(sorted(FOUR_CORES.items()))


def a_member(name: str, cores: int, node: int = 8) -> Cluster:
    return a_cluster(name).with_nodes(cores // node, cpu=str(node), memory="64Gi").built()


def place(members: Sequence[Cluster], names: Sequence[str], replicas: int = 2, **fields: Any) -> dict[str, int]:
    """Decide about one workload after the other from the same reports; return the pods by cluster."""
    engine, snapshot, cache = Engine(load_plugins()), Snapshot(1, tuple(members)), AssumeCache()
    placed = dict.fromkeys([member.name for member in members], 0)
    for name in names:
        unit = a_divided_unit(replicas, max_clusters=1, request=FOUR_CORES, assumed=cache.snapshot(0.0), **fields)
        decision = engine.decide(replace(unit, name=name), snapshot, DEFAULT_PROFILE, now=NOW)
        assume(cache, name, decision, 0.0)
        for cluster, count in decision.placements.items():
            placed[cluster] += count or 0
    return placed


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fields", [{}, {"current": {"lost": 2}}], ids=["new", "after a failover"])
def test_a_burst_leaves_no_pod_without_a_core_while_others_are_free(seed: int, fields: dict[str, Any]) -> None:
    names = [f"web-{number}" for number in range(24)]
    Random(seed).shuffle(names)
    cores = {"small": 48, "middle": 72, "large": 96}
    members = [a_member(name, count) for name, count in cores.items()]
    lost = a_cluster("lost").tainted("gone", effect="NoExecute").built()
    placed = place([*members, lost] if fields else members, names, **fields)
    assert sum(placed.values()) == 48
    assert all(4 * placed[name] <= count for name, count in cores.items())


def test_classes_without_nodes_hold_nothing() -> None:
    member = a_member("drained", 8)
    assert member.node_classes is not None
    empty = replace(member, node_classes=tuple([replace(each, nodes=(0,)) for each in member.node_classes]))
    unit = a_divided_unit(2, max_clusters=1, request=FOUR_CORES, assumed={"drained": {REQUEST: 2}})
    (loaded,) = with_assumed(unit, ClusterGroup.of([empty]))
    assert loaded.available["cpu"] == member.available["cpu"] - 8000
    assert [each.nodes for each in loaded.node_classes or ()] == [(0,)]


@pytest.mark.nightly
def test_two_thousand_objects_fill_fifty_clusters_evenly() -> None:
    random = Random(1)
    cores = {f"member-{number:02}": random.choice((160, 320, 480, 640)) for number in range(50)}
    count = 2000
    factor = sum(cores.values()) * 97 // (100 * 8 * count)
    placed = place([a_member(*entry) for entry in cores.items()], [f"w{n}" for n in range(count)], 2 * max(1, factor))
    used = [4 * placed[name] / number for name, number in cores.items()]
    assert max(used) <= 1
    assert max(used) - min(used) < 0.06


def test_the_cluster_with_room_for_all_replicas_takes_the_place_of_a_better_one() -> None:
    emptier, fuller = a_member("emptier", 8), a_member("fuller", 80)
    busy = replace(fuller, available={**fuller.available, "cpu": 16_000})
    busy = replace(busy, node_classes=tuple(replace(c, nodes=(2,)) for c in fuller.node_classes or ()))
    assert place([emptier, busy], ["web"], 3) == {"emptier": 0, "fuller": 3}
    assert place([emptier, busy], ["web"], 2) == {"emptier": 2, "fuller": 0}
    assert place([emptier, busy], ["web"], 9) == {"emptier": 0, "fuller": 9}, "no cluster has room for all"
    assert place([emptier, busy], ["web"], 3, priorities={"emptier": 1}) == {"emptier": 3, "fuller": 0}, "as asked"
    assert place([emptier, busy], ["web"], 3, current={"emptier": 2}) == {"emptier": 3, "fuller": 0}, "what runs stays"


def loaded(cluster: Cluster, **assumed: int) -> Cluster:
    unit = a_divided_unit(1, max_clusters=1, assumed={name: {REQUEST: count} for name, count in assumed.items()})
    return with_assumed(unit, ClusterGroup.of([cluster]))[0]


@pytest.mark.parametrize(("count", "left"), [(1, 5), (4, 2), (6, 0), (7, 0)])
def test_assumed_replicas_use_sums_and_nodes(count: int, left: int) -> None:
    before = a_member("east", 24)
    after = loaded(before, east=count, elsewhere=9)
    assert capacity_of(after, pod_shape(REQUEST)) == left
    assert after.available["cpu"] == before.available["cpu"] - 4000 * count
    assert sum(sum(each.nodes) for each in after.node_classes or ()) == 3
    assert loaded(before, east=count) is after, "caches of scores stay valid"


def test_a_cluster_without_nodes_is_counted_by_sums() -> None:
    before = a_cluster("east").offering(cpu="10").built()
    assert loaded(before, east=2).available == {"cpu": 2000}


@pytest.mark.parametrize(
    "unit",
    [a_divided_unit(2, assumed={"east": {REQUEST: 1}}), a_divided_unit(2, max_clusters=1), a_unit(max_clusters=1)],
    ids=["the division counts them", "nothing is assumed", "copies, nothing is assumed"],
)
def test_clusters_are_as_reported_where_nothing_depends_on_it(unit: Any) -> None:
    group = ClusterGroup.of([a_member("east", 24)])
    assert with_assumed(unit, group) is group


def test_what_a_replica_does_not_request_stays_free() -> None:
    member = a_member("m", 8)
    one = (("cpu", 8000),)
    unit = a_divided_unit(1, max_clusters=1, request={"memory": 64 << 30}, assumed={"m": {one: 1}})
    (loaded,) = with_assumed(unit, ClusterGroup.of([member]))
    assert capacity_of(loaded, unit.shape) == capacity_of(member, unit.shape) == 1
