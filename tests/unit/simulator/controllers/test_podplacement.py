"""The simulated kube-scheduler: selection of a node for a pod."""

from typing import Any

from federation.simulator.controllers.podplacement import SchedulerCache, compute_pod_request


def a_node(name: str, cpu: str = "4", pods: str = "10", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"zone": name[-1]}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": pods}},
    }


def a_spec(cpu: str = "1", **more: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **more}


def a_cache(*nodes: dict[str, Any]) -> SchedulerCache:
    cache = SchedulerCache()
    for node in nodes:
        cache.set_node(node)
    return cache


def select(cache: SchedulerCache, spec: dict[str, Any]) -> tuple[str, str]:
    return cache.select_node(spec, compute_pod_request(spec))


def test_the_least_allocated_node_is_selected() -> None:
    cache = a_cache(a_node("a"), a_node("b"))
    cache.add_pod("uid", "a", {"cpu": 2000})
    assert select(cache, a_spec()) == ("b", "")


def test_a_pod_without_a_feasible_node_gets_kube_schedulers_message() -> None:
    cache = a_cache(
        a_node("a", cpu="1"), a_node("b", cpu="1", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    )
    assert select(cache, a_spec("2")) == (
        "",
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint {k: v}.",
    )


def test_a_toleration_permits_a_tainted_node() -> None:
    cache = a_cache(a_node("a", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
    assert select(cache, a_spec(tolerations=[{"key": "k", "operator": "Exists"}]))[0] == "a"


def test_node_selector_and_affinity_are_respected() -> None:
    cache = a_cache(a_node("a"), a_node("b"))
    assert select(cache, a_spec(nodeSelector={"zone": "b"}))[0] == "b"
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert select(cache, a_spec(affinity=affinity))[0] == "b"


def test_a_pods_resources_are_counted_once_and_freed_on_removal() -> None:
    cache = a_cache(a_node("a", cpu="1"))
    cache.add_pod("uid", "a", {"cpu": 1000})
    cache.add_pod("uid", "a", {"cpu": 1000})
    assert select(cache, a_spec())[0] == ""
    assert cache.remove_pod("uid")
    assert not cache.remove_pod("uid")
    assert select(cache, a_spec())[0] == "a"


def test_a_node_takes_no_pods_beyond_its_pod_limit() -> None:
    cache = a_cache(a_node("a", pods="1"))
    cache.add_pod("uid", "a", {})
    assert "Too many pods" in select(cache, a_spec("0"))[1]


def test_a_pod_request_includes_init_containers_and_overhead() -> None:
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "100m"}}}, {"resources": {"requests": {"cpu": "200m"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "1"}}}],
        "overhead": {"cpu": "50m"},
    }
    assert compute_pod_request(spec) == {"cpu": 1050}
