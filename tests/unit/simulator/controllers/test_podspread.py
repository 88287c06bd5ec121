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


def test_with_fewer_domains_than_min_domains_the_fewest_counts_as_none() -> None:
    cache = a_cache({"a": 1, "b": 1})
    put(cache, "a0", "b0")
    spec = a_spec((ZONE, 1, HARD))
    assert cache.select_node(spec, {})[0]
    spec["topologySpreadConstraints"][0]["minDomains"] = 3
    assert cache.select_node(spec, {})[0] == ""
    cache.set_node({"metadata": {"name": "c0", "labels": {ZONE: "c", HOST: "c0"}}})
    assert cache.select_node(spec, {})[0] == "c0"


@pytest.mark.parametrize(("policy", "chosen"), [("Ignore", "b0"), ("Honor", "a0"), ("", "b0")])
def test_the_taints_policy_says_whether_nodes_with_taints_are_domains(policy: str, chosen: str) -> None:
    """Zone c is empty, so that it is the fewest if it counts; but nothing can run there."""
    cache = a_cache({"a": 1, "b": 1})
    taints = [{"key": "t", "effect": "NoSchedule"}]
    cache.set_node({"metadata": {"name": "c0", "labels": {ZONE: "c", HOST: "c0"}}, "spec": {"taints": taints}})
    put(cache, "a0", "b0" if policy == "Honor" else "a0")
    spec = a_spec((ZONE, 1, HARD))
    if policy:
        spec["topologySpreadConstraints"][0]["nodeTaintsPolicy"] = policy
    assert cache.select_node(spec, {})[0] == chosen
    if policy == "Ignore":
        put(cache, "b0")
        assert cache.select_node(spec, {})[0] == ""


def test_the_affinity_policy_says_whether_other_nodes_are_domains() -> None:
    cache = a_cache({"a": 1, "b": 1})
    put(cache, "a0")
    spec = a_spec((ZONE, 1, HARD))
    spec["nodeSelector"] = {ZONE: "a"}
    assert cache.select_node(spec, {})[0] == "a0"
    spec["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    assert cache.select_node(spec, {})[0] == ""


def test_a_pod_that_its_constraint_does_not_count_changes_no_skew() -> None:
    cache = a_cache({"a": 1, "b": 1})
    put(cache, "a0")
    spec = a_spec((ZONE, 1, HARD))
    spec["nodeSelector"] = {ZONE: "a"}
    spec["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    assert cache.select_node(spec, {}, labels={"app": "other"})[0] == "a0"


def affine(kind: str, **term: Any) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": ZONE, **term}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [selector]}}}


def test_required_affinity_follows_the_first_pod_of_the_group() -> None:
    cache = a_cache({"a": 1, "b": 1})
    spec = affine("podAffinity")
    assert cache.select_node(spec, {}, labels={"app": "other"})[1].endswith(
        "2 node(s) didn't match pod affinity rules."
    )
    assert cache.select_node(spec, {}, labels=LABELS)[0] == "a0"
    put(cache, "b0")
    assert cache.select_node(spec, {}, labels=LABELS)[0] == "b0"
    assert cache.select_node(spec, {}, labels={"app": "other"})[0] == "b0"


def test_terms_are_about_the_namespaces_that_they_name() -> None:
    cache = a_cache({"a": 1, "b": 1})
    put(cache, "a0", namespace="one")
    put(cache, "b0", "b0", app="fuller")
    assert cache.select_node(affine("podAntiAffinity"), {}, "two")[0] == "a0"
    assert cache.select_node(affine("podAntiAffinity", namespaces=["one"]), {}, "two")[0] == "b0"
    assert cache.select_node(affine("podAntiAffinity", namespaceSelector={}), {}, "two")[0] == "b0"


def test_pods_that_run_keep_others_away_until_they_go() -> None:
    cache = a_cache({"a": 1, "b": 1})
    cache.add_pod("one", "a0", {}, {"labels": {}}, affine("podAntiAffinity"))
    put(cache, "b0", "b0", app="fuller")
    assert cache.select_node({}, {}, labels=LABELS)[0] == "b0"
    assert cache.select_node({}, {}, labels={})[0] == "a0"
    cache.remove_pod("one")
    assert cache.select_node({}, {}, labels=LABELS)[0] == "a0"
