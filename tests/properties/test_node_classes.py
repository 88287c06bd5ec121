"""A histogram of nodes never shows more than fits, for any pods and any precision."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.planning.clusters.clusterresources import Collector
from federation.planning.clusters.nodeclasses import compute_node_classes, round_down
from federation.scheduling.framework.capacity import capacity_of, could_run
from federation.scheduling.framework.types import ANY_NODE, Cluster, NodeNeeds, Toleration, pod_shape
from federation.scheduling.snapshot import to_cluster

ZONES = ("a", "b", "c")
GPU = "nvidia.com/gpu"
Pod = tuple[int, int, int]
"""cpu in thousandths, memory in MiB, GPUs."""


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    taints = draw(st.sampled_from(((), ({"key": "gpu", "value": "", "effect": "NoSchedule"},))))
    allocatable = {
        "cpu": f"{draw(st.integers(0, 17000))}m",
        "memory": f"{draw(st.integers(0, 70000))}Mi",
        "pods": str(draw(st.integers(0, 20))),
        GPU: str(draw(st.integers(0, 4))),
    }
    return {
        "metadata": {"labels": {"zone": draw(st.sampled_from(ZONES))}},
        "spec": {"taints": list(taints), "unschedulable": draw(st.sampled_from((False, False, False, True)))},
        "status": {"allocatable": allocatable},
    }


pods = st.tuples(st.integers(0, 5000), st.integers(0, 8000), st.integers(0, 2))
needs = st.builds(
    lambda zone, tolerates: NodeNeeds(
        (("zone", zone),) if zone else (), None, (Toleration("gpu", "Exists"),) if tolerates else ()
    ),
    st.sampled_from(("", *ZONES)),
    st.booleans(),
)


def to_pod(pod: Pod, node: str) -> dict[str, Any]:
    requests = {"cpu": f"{pod[0]}m", "memory": f"{pod[1]}Mi", GPU: str(pod[2])}
    return {"spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]}, "status": {}}


def shape_of(pod: Pod, where: NodeNeeds) -> pod_shape:
    request = {"cpu": pod[0], "memory": pod[1] << 20, GPU: pod[2]}
    return pod_shape(tuple(sorted((name, amount) for name, amount in request.items() if amount)), where)


def really_fit(pod: Pod, where: NodeNeeds, all_nodes: list[dict[str, Any]], running: list[tuple[Pod, int]]) -> int:
    """Count node by node, with exact amounts, how many more of the pod fit."""
    total = 0
    for number, node in enumerate(all_nodes):
        offered = node["status"]["allocatable"]
        if node["spec"]["unschedulable"] or (node["spec"]["taints"] and not where.tolerations):
            continue
        if any(node["metadata"]["labels"][key] != value for key, value in where.selector):
            continue
        free = [int(offered["cpu"][:-1]), int(offered["memory"][:-2]), int(offered[GPU])]
        mine = [held for held, place in running if place % len(all_nodes) == number]
        room = int(offered["pods"]) - len(mine)
        for side in range(3):
            left = free[side] - sum(held[side] for held in mine)
            if pod[side]:
                room = min(room, left // pod[side])
        total += max(0, room)
    return total


def collect(all_nodes: list[dict[str, Any]], running: list[tuple[Pod, int]]) -> Collector:
    collector = Collector()
    for number, (pod, place) in enumerate(running):
        collector.set_pod(number, to_pod(pod, str(place % len(all_nodes))))
    for number, node in enumerate(all_nodes):
        collector.set_node(str(number), node)
    return collector


def clustered(status: dict[str, Any]) -> Cluster:
    return to_cluster({"metadata": {"name": "c"}, "status": {"resources": status}})


_NODES = st.lists(nodes(), min_size=1, max_size=8)
_RUNNING = st.lists(st.tuples(pods, st.integers(0, 7)), max_size=12)


@given(_NODES, _RUNNING, pods, needs)
def test_few_nodes_are_counted_exactly(
    all_nodes: list[dict[str, Any]], running: list[tuple[Pod, int]], pod: Pod, where: NodeNeeds
) -> None:
    collector, shape = collect(all_nodes, running), shape_of(pod, where)
    cluster = clustered(collector.resources().to_status())
    capacity = capacity_of(cluster, shape)
    assert capacity == really_fit(pod, where, all_nodes, running)
    assert capacity == collector.count_fitting(shape.request, shape.needs.admit)
    if capacity:
        assert could_run(cluster, shape)


@examples(40)
@given(st.lists(nodes(), min_size=12, max_size=40), pods, needs, st.integers(2, 9))
def test_a_coarse_histogram_never_shows_more_than_fits(
    all_nodes: list[dict[str, Any]], pod: Pod, where: NodeNeeds, buckets: int
) -> None:
    amounts = [
        {"cpu": int(o["cpu"][:-1]), "memory": int(o["memory"][:-2]) << 20, "pods": int(o["pods"]), GPU: int(o[GPU])}
        for o in (node["status"]["allocatable"] for node in all_nodes)
        if o
    ]
    plain = [{**node, "spec": {"taints": [], "unschedulable": False}} for node in all_nodes]
    status = compute_node_classes({((), ()): [(amount, amount) for amount in amounts]}, buckets_max=buckets)
    assert len(status["nodeClasses"][0].get("free", ())) <= buckets
    anywhere = NodeNeeds((), None, where.tolerations)
    assert capacity_of(clustered(status), shape_of(pod, anywhere)) <= really_fit(pod, anywhere, plain, [])


@given(_NODES, _RUNNING, pods)
def test_another_pod_never_frees_capacity(
    all_nodes: list[dict[str, Any]], running: list[tuple[Pod, int]], pod: Pod
) -> None:
    collector, shape = collect(all_nodes, running), shape_of(pod, NodeNeeds())
    before = capacity_of(clustered(collector.resources().to_status()), shape)
    collector.set_pod("one more", to_pod(pod, "0"))
    assert capacity_of(clustered(collector.resources().to_status()), shape) <= before


@given(pods, pods, _NODES)
def test_a_larger_request_fits_less_often(pod: Pod, more: Pod, all_nodes: list[dict[str, Any]]) -> None:
    cluster = clustered(collect(all_nodes, []).resources().to_status())
    larger = (pod[0] + more[0], pod[1] + more[1], pod[2] + more[2])
    assert capacity_of(cluster, shape_of(larger, NodeNeeds())) <= capacity_of(cluster, shape_of(pod, NodeNeeds()))


@given(_NODES, st.lists(st.tuples(st.integers(0, 5), st.none() | st.tuples(pods, st.integers(0, 7))), max_size=30))
def test_sums_kept_event_by_event_are_those_of_the_final_state(
    all_nodes: list[dict[str, Any]], events: list[tuple[int, tuple[Pod, int] | None]]
) -> None:
    collector, final = Collector(), {}
    for number, node in enumerate(all_nodes):
        collector.set_node(str(number), node)
    for key, state in events:
        collector.set_pod(key, None if state is None else to_pod(state[0], str(state[1] % len(all_nodes))))
        final[key] = state
    fresh = collect(all_nodes, [state for state in final.values() if state is not None])
    assert collector.resources().to_status() == fresh.resources().to_status()
    assert all(
        collector.count_fitting(request, ANY_NODE.admit) == fresh.count_fitting(request, ANY_NODE.admit)
        for request in ((), (("cpu", 1000),), (("cpu", 1), ("memory", 1 << 30)))
    )


@given(_NODES, _RUNNING, _RUNNING)
def test_pods_that_are_only_counted_give_the_same_sums(
    all_nodes: list[dict[str, Any]], stays: list[tuple[Pod, int]], goes: list[tuple[Pod, int]]
) -> None:
    collector = collect(all_nodes, stays[::2])
    by_node = [to_pod(pod, str(place % len(all_nodes))) for pod, place in stays[1::2]]
    ended = [to_pod(pod, str(place % len(all_nodes))) for pod, place in goes]
    for pod in (*ended, *by_node):
        collector.count_pod(pod, 1)
    for pod in ended:
        collector.count_pod(pod, -1)
    fresh = collect(all_nodes, stays)
    assert collector.resources().to_status() == fresh.resources().to_status()
    assert collector.free_by_node(ANY_NODE.admit) == fresh.free_by_node(ANY_NODE.admit)
    collector.reset_counted()
    assert collector.resources().to_status() == collect(all_nodes, stays[::2]).resources().to_status()


def test_pods_without_a_node_wait_and_take_nothing_from_nodes() -> None:
    node = {"metadata": {}, "status": {"allocatable": {"cpu": "24", "pods": "110"}}}
    collector = Collector()
    collector.set_node("n", node)
    collector.set_pod("p", to_pod((3000, 0, 0), ""))
    collector.set_pod("q", to_pod((3000, 0, 0), ""))
    cluster = clustered(collector.resources().to_status())
    assert (cluster.waiting, cluster.available) == ({"cpu": 6000, "pods": 2}, {"cpu": 18000})
    assert capacity_of(cluster, pod_shape((("cpu", 1000),))) == 24
    collector.set_pod("p", None)
    collector.set_pod("q", to_pod((3000, 0, 0), "n"))
    cluster = clustered(collector.resources().to_status())
    assert (cluster.waiting, capacity_of(cluster, pod_shape((("cpu", 1000),)))) == ({}, 21)


@given(st.integers(0, 2**50))
def test_rounding_goes_down_by_little(amount: int) -> None:
    assert amount * 31 // 32 <= round_down(amount) <= amount
