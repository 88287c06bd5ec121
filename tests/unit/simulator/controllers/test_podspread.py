"""The simulated scheduler follows topology spread constraints and pod anti-affinity."""

from typing import Any

import pytest

from federation.simulator.controllers.podplacement import SchedulerCache

LABELS = {"app": "redis"}
ZONE, HOST = "zone", "host"


def a_cache(zones: dict[str, int]) -> SchedulerCache:
    cache = SchedulerCache()
    for zone, count in zones.items():
        for number in range(count):
            name = f"{zone}{number}"
            cache.set_node({"metadata": {"name": name, "labels": {ZONE: zone, HOST: name}}})
    return cache


def a_spec(*constraints: tuple[str, int, str], apart: str = "") -> dict[str, Any]:
    selector = {"matchLabels": LABELS}
    spec: dict[str, Any] = {
        "topologySpreadConstraints": [
            {"labelSelector": selector, "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action}
            for key, skew, action in constraints
        ]
    }
    if apart:
        term = {"labelSelector": {"matchLabels": {"shard": "0"}}, "topologyKey": apart}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return spec


def put(cache: SchedulerCache, *nodes: str, namespace: str = "", **labels: str) -> None:
    for number, node in enumerate(nodes):
        metadata = {"namespace": namespace, "labels": {**LABELS, **labels}}
        cache.add_pod(f"{node}-{number}-{namespace}-{labels}", node, {}, metadata)


HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"


@pytest.mark.parametrize(
    ("held", "chosen"), [((), "a0"), (("a0",), "b0"), (("a0", "b0"), "a1"), (("a0", "a1", "b0"), "b1")]
)
def test_hard_constraints_bound_the_difference_from_the_fewest(held: tuple[str, ...], chosen: str) -> None:
    cache = a_cache({"a": 2, "b": 2})
    put(cache, *held)
    assert cache.select_node(a_spec((ZONE, 1, HARD), (HOST, 1, HARD)), {})[0] == chosen


def test_pods_of_other_namespaces_and_labels_do_not_count() -> None:
    cache = a_cache({"a": 1, "b": 1})
    put(cache, "a0", "a0", namespace="other")
    cache.add_pod("web", "a0", {}, {"labels": {"app": "web"}})
    put(cache, "b0")
    assert cache.select_node(a_spec((ZONE, 1, HARD)), {})[0] == "a0"


def test_only_nodes_of_the_affinity_count_for_the_fewest() -> None:
    cache = a_cache({"a": 1, "b": 1, "c": 1})
    put(cache, "a0", "b0", "b0")
    spec = a_spec((ZONE, 1, HARD))
    only = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [only]}]}
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert cache.select_node(spec, {})[0] == "a0"


def test_without_a_feasible_node_the_reason_is_kube_schedulers() -> None:
    cache = a_cache({"a": 1})
    cache.set_node({"metadata": {"name": "bare", "labels": {}}})
    put(cache, "a0", shard="0")
    node, reason = cache.select_node(a_spec((HOST, 1, HARD), apart=ZONE), {})
    assert node == ""
    causes = "1 node(s) didn't match pod topology spread constraints, 1 node(s) didn't satisfy anti-affinity rules"
    assert reason == f"0/2 nodes are available: {causes}."


def test_soft_constraints_prefer_the_emptiest_domain_and_never_block() -> None:
    cache = a_cache({"a": 2, "b": 1})
    put(cache, "a0")
    assert cache.select_node(a_spec((ZONE, 1, SOFT)), {})[0] == "b0"
    put(cache, "b0", "b0", "b0")
    assert cache.select_node(a_spec((ZONE, 1, SOFT), (HOST, 1, SOFT)), {})[0] == "a1"


def test_a_removed_pod_frees_its_domain() -> None:
    cache = a_cache({"a": 1, "b": 1})
    cache.add_pod("one", "a0", {}, {"labels": {**LABELS, "shard": "0"}})
    assert cache.select_node(a_spec(apart=ZONE), {})[0] == "b0"
    cache.remove_pod("one")
    assert cache.select_node(a_spec(apart=ZONE), {})[0] == "a0"
