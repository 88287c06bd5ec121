"""Replicas of several pods, such as the groups of a LeaderWorkerSet: each of them is placed whole."""

import pytest

from federation.scheduling.framework.capacity import capacity_of, could_run, rooms_of
from federation.scheduling.framework.limits import limits_of
from federation.scheduling.framework.testing import a_divided_unit
from federation.scheduling.framework.types import (
    Cluster,
    NodeClass,
    PodSet,
    SchedulingUnit,
    pod_shape,
)


def a_cluster(*free: int, name: str = "one") -> Cluster:
    """Return a cluster with a node of each number of free cores."""
    counts = tuple(free)
    amounts = {"cpu": tuple(cores * 1000 for cores in counts), "pods": (100,) * len(counts)}
    whole = {"cpu": 96_000, "pods": 100}
    node_class = NodeClass(largest=whole, nodes=(1,) * len(counts), free=amounts, size=len(counts))
    allocatable = {"cpu": 96_000 * len(counts)}
    return Cluster(name, allocatable=allocatable, available={"cpu": sum(counts) * 1000}, node_classes=(node_class,))


def a_group(leader: int, workers: int, worker: int) -> tuple[PodSet, ...]:
    return (
        PodSet("leaders", 1, 1, pod_shape((("cpu", leader * 1000),))),
        PodSet("workers", workers, workers, pod_shape((("cpu", worker * 1000),))),
    )


def a_unit(parts: tuple[PodSet, ...], replicas: int = 4, **fields: object) -> SchedulingUnit:
    total = sum(dict(each.shape.request)["cpu"] * each.count for each in parts)
    return a_divided_unit(replicas, request={"cpu": total}, replica_parts=parts, **fields)


@pytest.mark.parametrize(
    ("free", "parts", "groups"),
    [
        ((8, 8, 8, 8), a_group(8, 3, 8), 1),  # 32 cores of which no node has all
        ((8, 8, 8), a_group(8, 3, 8), 0),
        ((32, 32), a_group(8, 3, 8), 2),
        ((16,) * 16, a_group(8, 3, 8), 8),
        ((10,) * 16, a_group(8, 3, 8), 4),  # 2 cores of each node are of no use
        ((8,) * 9, a_group(1, 2, 8), 3),  # leaders of one core lie beside nothing: 3 nodes for each group
    ],
)
def test_as_many_groups_fit_as_have_room_whole(free: tuple[int, ...], parts: tuple[PodSet, ...], groups: int) -> None:
    assert capacity_of(a_cluster(*free), a_unit(parts).shape) == groups


def test_a_group_may_be_larger_than_any_node() -> None:
    unit = a_unit(a_group(64, 3, 64))

    assert could_run(a_cluster(96, 96, 96, 96), unit.shape)
    assert not could_run(a_cluster(8), a_unit(a_group(97, 1, 1)).shape)


def test_a_cluster_is_bounded_by_the_groups_that_run_there_and_its_room() -> None:
    clusters = [a_cluster(32, 32), a_cluster(32, name="two"), a_cluster(8, name="full")]
    unit = a_unit(a_group(8, 3, 8), current={"two": 1})

    most = {name: bound.most for name, bound in limits_of(unit, clusters).most.items()}

    assert most == {"one": 2, "two": 2, "full": 0}
    rooms = rooms_of(unit, clusters)
    assert rooms is not None
    assert rooms.free == {"one": 2, "two": 1, "full": 0}
