"""Properties of a cluster's sums, and of retention."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.clustersums import aggregate

from federation.apimachinery.quantity import parse
from federation.planning.clusters.clusterresources import Collector
from federation.planning.rendering.retention import retain_for_apply

_CPUS = st.integers(0, 64)


def node(cpu: int, *, cordoned: bool = False) -> dict[str, Any]:
    return {
        "metadata": {},
        "spec": {"unschedulable": cordoned},
        "status": {"allocatable": {"cpu": str(cpu), "pods": "9"}},
    }


def pod(cpu: int, phase: str = "Running") -> dict[str, Any]:
    containers = [{"resources": {"requests": {"cpu": str(cpu)}}}]
    return {"metadata": {}, "spec": {"containers": containers}, "status": {"phase": phase}}


@given(st.lists(_CPUS, min_size=1, max_size=6), st.lists(_CPUS, max_size=6))
def test_sums_add_up(nodes: list[int], pods: list[int]) -> None:
    sums = aggregate(map(node, nodes), map(pod, pods))
    possible = [cpu for cpu in pods if cpu <= max(nodes)]
    assert sums.schedulable_nodes == len(nodes)
    assert sums.allocatable["cpu"] == parse(str(sum(nodes)))
    assert sums.available["cpu"].nanos == parse(str(sum(nodes))).nanos - parse(str(sum(possible))).nanos
    assert "pods" not in sums.allocatable
    assert sums.by_node.get("waiting", {}).get("pods", "0") == str(len(possible))


def test_a_pod_that_fits_on_no_node_at_all_takes_nothing_from_others() -> None:
    huge, bound = pod(10_000), pod(10_000)
    bound["spec"]["nodeName"] = "0"
    with_it, without = (aggregate([node(8), node(4)], pods) for pods in ([huge, pod(6)], [pod(6)]))
    assert with_it == without
    assert str(without.available["cpu"]) == "6"
    assert aggregate([node(8)], [bound]).available["cpu"].nanos == 0, "it takes its node, and no more"
    assert aggregate([node(8, cordoned=True)], [huge]).by_node == {"waiting": {"cpu": "10k", "pods": "1"}}


def test_a_node_that_comes_lets_a_waiting_pod_count_again() -> None:
    collector = Collector()
    collector.set_node("a", node(8))
    collector.set_pod("p", pod(16))
    assert str(collector.resources().available["cpu"]) == "8"
    collector.set_node("b", node(16))
    assert str(collector.resources().available["cpu"]) == "8", "24 less 16"
    collector.set_pod("p", None)
    assert str(collector.resources().available["cpu"]) == "24"


@given(st.lists(_CPUS, min_size=1, max_size=6), st.lists(_CPUS, max_size=6), st.randoms())
def test_order_does_not_matter(nodes: list[int], pods: list[int], rng: Any) -> None:
    shuffled = rng.sample(pods, len(pods))
    assert aggregate(map(node, nodes), map(pod, pods)) == aggregate(map(node, nodes[::-1]), map(pod, shuffled))


@given(st.lists(_CPUS, max_size=4))
def test_ended_pods_and_closed_nodes_do_not_count(pods: list[int]) -> None:
    ended = [pod(cpu, phase) for cpu in pods for phase in ("Succeeded", "Failed")]
    sums = aggregate([node(8), node(8, cordoned=True)], ended)
    assert sums.to_status() == {
        "schedulableNodes": 1,
        "allocatable": {"cpu": "8"},
        "available": {"cpu": "8"},
        "nodeClasses": [
            {
                "nodes": 1,
                "largest": {"cpu": "8", "pods": "9"},
                "free": [{"nodes": 1, "resources": {"cpu": "8", "pods": "9"}}],
            }
        ],
    }


@given(st.integers(30000, 32000), st.integers(30000, 32000))
def test_retention_is_idempotent(mine: int, theirs: int) -> None:
    def service_of(port: int) -> dict[str, Any]:
        ports = [{"name": "http", "port": 80, "protocol": "TCP", "nodePort": port}]
        return {"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": ports}}

    desired, live = service_of(mine), service_of(theirs)
    before = copy.deepcopy(desired)
    once = retain_for_apply(desired, live)
    assert once["spec"]["ports"][0]["nodePort"] == theirs
    assert retain_for_apply(once, live) == once
    assert desired == before, "nothing is changed in place"
