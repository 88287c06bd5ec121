"""The simulation before a pod exists: free resources, node rules, virtual nodes."""

from typing import Any

import pytest

from federation.planning.clusters.clusterresources import Collector
from federation.scheduling.nodefit import fits_nodes

NO_SCHEDULE = {"key": "x", "value": "y", "effect": "NoSchedule"}


def _node(cpu: str = "4", pods: str = "10", taints: Any = None, ready: str = "True", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"labels": labels},
        "spec": {"taints": taints},
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def _pod(cpu: str = "1", memory: str = "1Gi", **spec: Any) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": memory}
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec}}


def _requiring(**term: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _nodes(*nodes: dict[str, Any], pods: tuple[dict[str, Any], ...] = ()) -> Collector:
    collector = Collector()
    for number, node in enumerate(nodes):
        collector.set_node(f"node-{number}", node)
    for number, pod in enumerate(pods):
        collector.set_pod(str(number), pod)
    return collector


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (_pod(), True),
        (_pod(cpu="4"), True),
        (_pod(cpu="4001m"), False),
        (_pod(memory="9Gi"), False),
        (_pod(nodeSelector={"zone": "a"}), True),
        (_pod(nodeSelector={"zone": "b"}), False),
        (_pod(**_requiring(matchExpressions=[{"key": "zone", "operator": "In", "values": ["a"]}])), True),
        (_pod(**_requiring(matchExpressions=[{"key": "zone", "operator": "NotIn", "values": ["a"]}])), False),
        (_pod(**_requiring(matchFields=[{"key": "metadata.name", "operator": "In", "values": ["node-0"]}])), True),
        (_pod(**_requiring(matchExpressions=[{"key": "zone", "operator": "Near"}])), False),
    ],
)
def test_node_rules_and_free_resources_decide(pod: dict[str, Any], expected: bool) -> None:
    assert fits_nodes(pod, _nodes(_node(zone="a"))) is expected


def test_assigned_and_waiting_pods_use_resources() -> None:
    assigned = _pod(cpu="2", nodeName="node-0")
    nodes = _nodes(_node(), pods=(assigned,))
    assert fits_nodes(_pod(cpu="2"), nodes)
    assert not fits_nodes(_pod(cpu="2"), nodes, waiting=1)
    assert not fits_nodes(_pod(cpu="3"), nodes)
    assert not fits_nodes(_pod(cpu="0"), _nodes(_node(pods="1"), pods=(assigned,)))


def test_closed_and_tainted_nodes_do_not_fit() -> None:
    assert not fits_nodes(_pod(), _nodes(_node(ready="Unknown")))
    tainted = _nodes(_node(taints=[NO_SCHEDULE]))
    assert not fits_nodes(_pod(), tainted)
    assert fits_nodes(_pod(tolerations=[{"key": "x", "value": "y"}]), tainted)
    assert not fits_nodes(_pod(), _nodes())
    assert not fits_nodes({}, _nodes(_node())), "a pod without a spec"


@pytest.mark.parametrize(
    ("labels", "taints"),
    [({"type": "virtual-kubelet"}, []), ({}, [{"key": "virtual-kubelet.io/provider", "effect": "NoSchedule"}])],
    ids=["label", "taint"],
)
def test_a_virtual_node_that_admits_the_pod_takes_any_number(labels: dict[str, str], taints: Any) -> None:
    nodes = _nodes(_node(cpu="0", taints=taints, **labels))
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    assert fits_nodes(_pod(**tolerant), nodes, waiting=1000)
    assert not fits_nodes(_pod(**tolerant, nodeSelector={"zone": "a"}), nodes)
