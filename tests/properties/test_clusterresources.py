"""Properties of a cluster's sums, and of retention."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.clustersums import aggregate

from federation.apimachinery.quantity import parse
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
    assert sums.schedulable_nodes == len(nodes)
    assert sums.allocatable["cpu"] == parse(str(sum(nodes)))
    assert sums.available["cpu"].nanos == parse(str(sum(nodes))).nanos - parse(str(sum(pods))).nanos
    assert "pods" not in sums.allocatable


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
