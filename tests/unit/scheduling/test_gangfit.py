"""Whether a gang fits into a cluster, and what the cluster lacks."""

from dataclasses import replace
from typing import Any

import pytest

from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.gangfit import Lack, amount_text, find_shortfall
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import DEPLOYMENT, NOW, ClusterBuilder, a_cluster, a_unit
from federation.scheduling.framework.types import (
    ANY_NODE,
    Cluster,
    NodeNeeds,
    PodSet,
    SchedulingMode,
    Taint,
    Toleration,
    pod_shape,
)
from federation.scheduling.snapshot import Snapshot

GPU = NodeNeeds((("pool", "gpu"),), tolerations=(Toleration("gpu", "Exists"),))
TAINTED = (Taint("gpu", "", "NoSchedule"),)


def part(
    name: str, count: int, cores: float, needs: NodeNeeds = ANY_NODE, gpus: int = 0, least: int | None = None
) -> PodSet:
    request = [("cpu", round(cores * 1000))] + ([("nvidia.com/gpu", gpus)] if gpus else [])
    return PodSet(name, count, count if least is None else least, pod_shape(tuple(request), needs))


def nodes(count: int, cores: int) -> ClusterBuilder:
    return a_cluster().with_nodes(count, cpu=str(cores), memory="64Gi")


def pools() -> ClusterBuilder:
    """Return 2 nodes of 8 cores, and 2 tainted ones of 16 cores with 4 GPUs each."""
    plain = nodes(2, 8)
    return plain.with_nodes(2, cpu="16", taints=TAINTED, labels={"pool": "gpu"}, **{"nvidia.com/gpu": "4"})


CASES = {
    "a Job that fits exactly": (nodes(4, 24), [part("pods", 48, 2)], None, 0),
    "one pod too many": (nodes(4, 24), [part("pods", 49, 2)], Lack.SIZE, 96000),
    "enough in sum but not on any node": (nodes(20, 1), [part("pods", 1, 2)], Lack.NO_NODE, 1000),
    "enough in sum but on too few nodes": (nodes(3, 5), [part("pods", 5, 3)], Lack.NODES, 3),
    "a head and its workers": (nodes(3, 16), [part("head", 1, 4), part("workers", 5, 8)], None, 0),
    "workers that the head leaves no node for": (
        nodes(3, 16),
        [part("head", 1, 4), part("workers", 6, 8)],
        Lack.SIZE,
        48000,
    ),
    "pods that fit only if they are arranged well": (
        nodes(2, 8),
        [part("small", 2, 4), part("big", 1, 8)],
        Lack.NODES,
        0,
    ),
    "GPU pods on their tainted pool": (pools(), [part("ps", 2, 8), part("workers", 8, 4, GPU, gpus=1)], None, 0),
    "too many for the GPUs of each node": (
        pools().with_nodes(1, cpu="16", taints=TAINTED, labels={"pool": "gpu"}, **{"nvidia.com/gpu": "4"}),
        [part("workers", 4, 1, GPU, gpus=3)],
        Lack.NODES,
        3,
    ),
    "pods that tolerate no taint": (pools(), [part("pods", 3, 8)], Lack.ROOM, 16000),
    "pods for a pool that does not exist": (nodes(2, 8), [part("pods", 1, 1, GPU)], Lack.NO_NODE, 0),
    "more GPUs than there are": (pools(), [part("workers", 9, 1, GPU, gpus=1)], Lack.SIZE, 8),
    "a minimum that fits": (nodes(2, 8), [part("tasks", 9, 4, least=4)], None, 0),
    "a cluster that reports sums only": (a_cluster().offering(cpu="16"), [part("pods", 4, 4)], None, 0),
    "a cluster that reports nothing": (a_cluster(), [part("pods", 4, 4)], Lack.SIZE, 0),
    "nothing to start": (nodes(1, 1), [], None, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_a_gang_fits_or_the_cluster_says_what_it_lacks(case: str) -> None:
    builder, pods, lack, found = CASES[case]
    shortfall = find_shortfall(pods, builder.built())
    assert (None if shortfall is None else shortfall.lack) is lack
    assert shortfall is None or shortfall.found == found


def in_use(name: str, count: int, cores: int, free: int) -> Cluster:
    """Return a cluster of equal nodes that have so many cores free each."""
    cluster = named(name, count, cores).serving(DEPLOYMENT).built()
    (each,) = cluster.node_classes or ()
    amounts = {**each.free, "cpu": (free * 1000,)}
    return replace(cluster, node_classes=(replace(each, free=amounts),), memo={}, lasting={})


def test_what_is_in_use_is_not_free() -> None:
    shortfall = find_shortfall([part("pods", 48, 2)], in_use("a", 4, 24, free=10))
    assert shortfall is not None
    assert shortfall.describe() == "needs 96 cores, the cluster has 40 free"


def test_tainted_nodes_count_for_pods_that_tolerate_them_although_sums_leave_them_out() -> None:
    cluster = pools().built()
    cluster = replace(cluster, allocatable={"cpu": 16000}, available={"cpu": -4000}, memo={}, lasting={})
    assert find_shortfall([part("workers", 8, 4, GPU, gpus=1)], cluster) is None
    shortfall = find_shortfall([part("workers", 9, 1, GPU, gpus=1)], cluster)
    assert shortfall is not None
    assert shortfall.describe() == "needs 9 nvidia.com/gpu, the cluster has 8"


def test_a_gang_of_many_components_is_counted_with_less_precision() -> None:
    gang = [part(f"part-{n}", 1, 1 + n / 100) for n in range(100)]  # 149.5 cores
    assert find_shortfall(gang, nodes(40, 16).built()) is None
    shortfall = find_shortfall(gang, nodes(9, 16).built())
    assert shortfall is not None
    assert shortfall.lack is Lack.SIZE


def test_a_gang_that_is_too_much_work_to_arrange_counts_as_one_without_room() -> None:
    cluster = a_cluster()
    for cores in range(20, 84):
        cluster = cluster.with_nodes(1, cpu=str(cores), labels={"size": str(cores)})
    many, large = part("many", 3000, 1), part("large", 2, 8)
    assert find_shortfall([many, large], cluster.built()) is not None
    assert find_shortfall([many], cluster.built()) is None


def test_two_gangs_are_not_promised_the_same_room() -> None:
    cluster, first = nodes(4, 24).built(), {(("cpu", 2000),): 30}
    assert find_shortfall([part("pods", 18, 2)], cluster, first) is None
    shortfall = find_shortfall([part("pods", 19, 2)], cluster, first)
    assert shortfall is not None
    assert shortfall.lack is Lack.DECISIONS


def test_components_on_separate_pools_do_not_take_each_others_room() -> None:
    gang = [part("ps", 2, 8), part("workers", 8, 4, GPU, gpus=1)]
    assert find_shortfall(gang, pools().built(), {(("cpu", 1),): 0}) is None


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 120_000, "120 cores"),
        ("cpu", 1000, "1 core"),
        ("cpu", 1500, "1.5 cores"),
        ("memory", 8 * 2**30, "8Gi memory"),
        ("memory", 512 * 2**20, "512Mi memory"),
        ("nvidia.com/gpu", 4, "4 nvidia.com/gpu"),
    ],
)
def test_amounts_have_the_units_of_people(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


def decide(pods: list[PodSet], *given: ClusterBuilder | Cluster, **fields: Any) -> Decision:
    clusters = tuple(each if isinstance(each, Cluster) else each.serving(DEPLOYMENT).built() for each in given)
    unit = a_unit(mode=SchedulingMode.DUPLICATE, max_clusters=1, is_gang=True, sets=tuple(pods), **fields)
    return Engine(load_plugins()).decide(unit, Snapshot(1, clusters), DEFAULT_PROFILE, now=NOW)


def named(name: str, count: int, cores: int) -> ClusterBuilder:
    return a_cluster(name).with_nodes(count, cpu=str(cores), memory="64Gi")


@pytest.mark.parametrize(
    ("pods", "builders", "reason"),
    [
        (
            [part("pods", 60, 2)],
            [named("a", 2, 24), named("b", 3, 24), named("c", 4, 24)],
            (
                "needs 120 cores, the largest of 3 clusters has 96; 0/3 clusters are available: "
                "3 cluster(s) were too small for the gang"
            ),
        ),
        ([part("pods", 60, 2)], [named("a", 2, 24)], "needs 120 cores, cluster a has 48; "),
        (
            [part("pods", 20, 2)],
            [in_use("a", 2, 24, free=5), in_use("b", 3, 24, free=10)],
            "needs 40 cores, the freest of 2 clusters has 30 free; ",
        ),
        (
            [part("head", 1, 1), part("workers", 5, 3)],
            [named("a", 4, 5), named("b", 20, 1)],
            (
                "needs room for all of its pods at once, which no cluster has; "
                "cluster a: its nodes have room for 4 of 5 pods of workers; "
            ),
        ),
    ],
)
def test_a_gang_that_fits_nowhere_says_what_it_waits_for(
    pods: list[PodSet], builders: list[ClusterBuilder | Cluster], reason: str
) -> None:
    decision = decide(pods, *builders)
    assert decision.outcome is Outcome.NO_FEASIBLE_CLUSTER
    assert decision.reason.startswith(reason)
    assert decision.placements == {}
    assert set(decision.remarks["Gang"]) == set(decision.snapshot.names)


def test_a_gang_goes_whole_to_the_cluster_that_holds_it() -> None:
    decision = decide([part("head", 1, 4), part("workers", 10, 8)], named("a", 2, 24), named("b", 6, 16))
    assert decision.placements == {"b": None}
    assert decision.remarks == {"Gang": {"a": ("needs 84 cores, the cluster has 48",)}}


def test_a_gang_stays_in_the_cluster_where_it_runs() -> None:
    full = in_use("a", 2, 24, free=0)
    assert decide([part("pods", 24, 2)], full, named("b", 9, 24), current={"a": None}).placements == {"a": None}


def test_a_gang_whose_pods_cannot_be_counted_waits() -> None:
    decision = decide([], named("a", 2, 24), uncounted="it has more than 256 components")
    assert decision.reason.startswith("it has more than 256 components; 0/1 clusters are available")
