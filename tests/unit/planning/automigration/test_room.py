"""How many pods of a shape fit, which ReplicaSet counts, and which pods."""

from datetime import UTC, datetime, timedelta
from typing import Any

from federation.api.resources import Object
from federation.planning.automigration.pods import count_pods
from federation.planning.automigration.replicasets import newest_replica_set, slim_replica_set
from federation.planning.automigration.room import count_room, free_by_node
from federation.runtime.slim import slim_node, slim_pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


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


def a_pod(node: str, cpu: str = "1", phase: str = "Running") -> Object:
    metadata = {"name": "p", "namespace": "n", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": a_spec(cpu, nodeName=node), "status": {"phase": phase}}


def room(nodes: list[Object], pods: list[Object], spec: Object) -> int:
    """Count on full objects, and hold that slim ones give the same."""
    full = count_room(free_by_node(nodes, pods), spec)
    assert full == count_room(free_by_node(map(slim_node, nodes), map(slim_pod, pods)), spec)
    return full


def test_what_pods_have_taken_is_not_free_and_pods_do_not_span_nodes() -> None:
    nodes = [a_node("a"), a_node("b")]
    assert room(nodes, [], a_spec("3")) == 2
    assert room(nodes, [a_pod("a"), a_pod("a"), a_pod("gone")], a_spec("1")) == 6
    assert room(nodes, [a_pod("a", "9")], a_spec("1")) == 4
    assert room(nodes, [a_pod("a", "4", phase="Succeeded")], a_spec("1")) == 8


def test_a_node_holds_so_many_pods_however_small() -> None:
    assert room([a_node("a", pods="3")], [a_pod("a", "0")], {"containers": []}) == 2
    assert room([a_node("a")], [], a_spec(nvidia="x") | {"containers": [{"resources": {"limits": {"gpu": "1"}}}]}) == 0


def test_nodes_that_take_no_pods_have_no_room() -> None:
    unready = a_node("a")
    unready["status"]["conditions"][0]["status"] = "Unknown"
    assert room([unready, a_node("b", unschedulable=True)], [], a_spec()) == 0


def test_taints_selectors_and_affinity_are_respected() -> None:
    nodes = [a_node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}]), a_node("b")]
    assert room(nodes, [], a_spec()) == 4
    assert room(nodes, [], a_spec(tolerations=[{"operator": "Exists"}])) == 8
    assert room(nodes, [], a_spec(nodeSelector={"disk": "c"})) == 0
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["b"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert room(nodes, [], a_spec(affinity={"nodeAffinity": required})) == 4


def a_replica_set(name: str, labels: dict[str, str], created: str) -> Object:
    metadata = {"name": name, "namespace": "n", "uid": name, "creationTimestamp": created}
    return slim_replica_set({"metadata": metadata, "spec": {"template": {"metadata": {"labels": labels}}}})


def test_the_newest_replica_set_is_the_one_with_the_deployments_template() -> None:
    deployment = {"metadata": {"name": "web"}, "spec": {"template": {"metadata": {"labels": {"app": "2"}}}}}
    old = a_replica_set("old", {"app": "1", "pod-template-hash": "x"}, "2026-01-02T00:00:00Z")
    new = a_replica_set("new", {"app": "2", "pod-template-hash": "y"}, "2026-01-01T00:00:00Z")
    twin = a_replica_set("twin", {"app": "2", "pod-template-hash": "z"}, "2026-01-03T00:00:00Z")
    assert newest_replica_set(deployment, [old, twin, new]) is new
    assert newest_replica_set(deployment, [old]) is None


def test_pods_wait_until_the_threshold_and_those_that_leave_do_not_count() -> None:
    def waiting(age_s: float, **metadata: str) -> Object:
        since = (NOW - timedelta(seconds=age_s)).isoformat()
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
        return {"metadata": metadata, "status": {"conditions": [condition]}}

    gated = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}
    timeless = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}
    leaving, ended = waiting(99, deletionTimestamp="x"), {"status": {"phase": "Failed"}}
    on_node = {"spec": {"nodeName": "a"}}
    pods = [waiting(60), waiting(10), waiting(25), gated, timeless, leaving, ended, on_node]
    count = count_pods(pods, NOW, 60)
    assert (count.total, count.scheduled, count.unschedulable, count.next_crossing_s) == (6, 1, 2, 35)
