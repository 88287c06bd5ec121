"""Attack: pods of one namespace that can never run make a cluster look full to all others."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.plugins.test_plugins import make

from federation.features.clusterrules.rules.matching import Verdict, compile_matching
from federation.planning.clusters.clusterresources import Collector
from federation.scheduling.framework.testing import a_cluster, a_unit, run_score

NODES, CORES, USED = 4, 24, 20
"""Nodes of the cluster, cores of each, and cores that pods of others use."""
RULE = {"when": [{"metrics": [{"measure": "Free", "resource": "cpu", "below": "50%"}]}]}
WAITING = {"when": [{"metrics": [{"measure": "Waiting", "resource": "cpu", "above": "30%"}]}]}


def a_pod(cpu: str, node: str = "", namespace: str = "mine") -> dict[str, Any]:
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}], **({"nodeName": node} if node else {})}
    return {"metadata": {"namespace": namespace}, "spec": spec, "status": {"phase": "Pending"}}


def larger_than_a_node(collector: Collector) -> None:
    collector.set_pod("p", a_pod("10000"))


def many_that_wait(collector: Collector) -> None:
    for number in range(1000):
        collector.set_pod(number, a_pod("10"))


def many_that_wait_and_are_only_counted(collector: Collector) -> None:
    for _ in range(1000):
        collector.count_pod(a_pod("10"), 1)


def on_a_node_that_does_not_exist(collector: Collector) -> None:
    collector.set_pod("p", a_pod("10000", "nowhere"))


def more_than_its_node_has(collector: Collector) -> None:
    collector.set_pod("p", a_pod("10000", "node-0"))


ATTACKS = (
    larger_than_a_node,
    many_that_wait,
    many_that_wait_and_are_only_counted,
    on_a_node_that_does_not_exist,
    more_than_its_node_has,
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_namespace_does_not_decide_how_full_a_cluster_looks(attack: Callable[[Collector], None]) -> None:
    collector = Collector()
    for number in range(NODES):
        allocatable = {"cpu": str(CORES), "pods": "110"}
        collector.set_node(f"node-{number}", {"metadata": {}, "status": {"allocatable": allocatable}})
    collector.set_pod("other", a_pod(str(USED), "node-1", "theirs"))
    attack(collector)
    status = collector.resources().to_status()
    assert int(status["available"]["cpu"]) >= NODES * CORES * 3 / 4 - USED
    cluster = {"metadata": {"name": "east"}, "status": {"resources": status}}
    assert compile_matching(RULE).judge(cluster) is not Verdict.HOLDS
    assert compile_matching(WAITING).judge(cluster) is not Verdict.HOLDS
    cpu, free = status["allocatable"]["cpu"], status["available"]["cpu"]
    seen = a_cluster().offering(cpu=cpu, memory="1Gi").free(cpu=free).built()
    (score,) = run_score(make("ClusterResourcesLeastAllocated"), a_unit(request={"cpu": 1000}), [seen])
    assert score > 70


def test_namespaces_that_wait_together_are_seen_and_what_waits_in_one_too() -> None:
    collector = Collector()
    collector.set_node("node", {"metadata": {}, "status": {"allocatable": {"cpu": "24", "pods": "110"}}})
    collector.set_pod("p", a_pod("4", namespace="a"))
    assert collector.resources().to_status()["waiting"] == {"cpu": "4", "pods": "1"}
    for namespace in "bcd":
        collector.set_pod(namespace, a_pod("20", namespace=namespace))
    status = collector.resources().to_status()
    assert status["waiting"] == {"cpu": "22", "pods": "4"}
    assert status["available"]["cpu"] == "2"
    for key in ("p", *"bcd"):
        collector.set_pod(key, None)
    assert collector.resources().to_status()["available"]["cpu"] == "24"
