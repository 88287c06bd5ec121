"""Requests and node needs of pods, and the free capacity of nodes."""

from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import SelectorError
from federation.planning.clusters.clusterresources import Collector
from federation.runtime.transforms import slim_node, slim_pod
from federation.scheduling.podrequest import request_of, shape_of


def a_node(name: str, *, cpu: str = "4", pods: str = "10", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "labels": {"disk": name}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods, "odd": "?"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_spec(cpu: str = "1", **more: Any) -> Object:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more}


def a_pod(node: str, cpu: str = "1", phase: str = "Running", **metadata: str) -> Object:
    metadata = {"name": "p", "namespace": "n", "resourceVersion": "1", **metadata}
    return {"metadata": metadata, "spec": a_spec(cpu, nodeName=node), "status": {"phase": phase}}


def room(nodes: list[Object], pods: list[Object], spec: Object) -> int:
    """Count on full objects; assert that trimmed ones give the same result."""
    full, slim = Collector(), Collector()
    for node in nodes:
        full.set_node(node["metadata"]["name"], node)
        slim.set_node(node["metadata"]["name"], slim_node(node))
    for number, pod in enumerate(pods):
        full.set_pod(number, pod)
        slim.set_pod(number, slim_pod(pod))
    shape = shape_of({"kind": "Pod", "spec": spec})
    assert shape is not None
    counted = full.count_fitting(shape.request, shape.needs.admit)
    assert counted == slim.count_fitting(shape.request, shape.needs.admit)
    return counted


def test_requests_of_pods_are_not_free_and_pods_do_not_span_nodes() -> None:
    nodes = [a_node("a"), a_node("b")]
    assert room(nodes, [], a_spec("3")) == 2
    assert room(nodes, [a_pod("a"), a_pod("a"), a_pod("gone")], a_spec("1")) == 6
    assert room(nodes, [a_pod("a", "9")], a_spec("1")) == 4


def test_a_terminating_pod_uses_resources_until_it_has_ended() -> None:
    assert room([a_node("a")], [a_pod("a", "3", deletionTimestamp="2026-01-01T00:00:00Z")], a_spec("1")) == 1
    assert room([a_node("a")], [a_pod("a", "3", phase="Succeeded")], a_spec("1")) == 4


def test_a_node_holds_so_many_pods_however_small() -> None:
    assert room([a_node("a", pods="3")], [a_pod("a", "0")], {"containers": []}) == 2
    assert room([a_node("a")], [], {"containers": [{"resources": {"limits": {"gpu": "1"}}}]}) == 0


def test_unschedulable_nodes_have_no_capacity() -> None:
    unready = a_node("a")
    unready["status"]["conditions"][0]["status"] = "Unknown"
    assert room([unready, a_node("b", unschedulable=True)], [], a_spec()) == 0


def test_taints_selectors_and_affinity_are_respected() -> None:
    nodes = [a_node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}]), a_node("b")]
    assert room(nodes, [], a_spec()) == 4
    assert room(nodes, [], a_spec(tolerations=[{"operator": "Exists"}])) == 8
    assert room(nodes, [], a_spec(nodeSelector={"disk": "c"})) == 0
    assert room(nodes, [], a_spec(affinity=required(matchExpressions=[expression("disk", "In", "b")]))) == 4
    assert room(nodes, [], a_spec(affinity=required(matchFields=[expression("metadata.name", "In", "a")]))) == 0
    assert room(nodes, [], a_spec(affinity=required(matchFields=[expression("metadata.name", "In", "b")]))) == 4
    with pytest.raises(SelectorError):
        room(nodes, [], a_spec(affinity=required(matchExpressions=[expression("disk", "Like", "b")])))


def expression(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def required(**term: Any) -> Object:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def test_a_sidecar_runs_beside_the_containers_and_beside_the_init_containers_after_it() -> None:
    def container(cpu: str, **more: str) -> Object:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    pod = {
        "containers": [container("100m")],
        "initContainers": [container("300m"), container("50m", restartPolicy="Always"), container("260m")],
    }
    assert request_of({"kind": "Pod", "spec": pod}) == {"cpu": 310}
