"""The graph of an application: what acts on an object, and a picture that stays within its limits."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from federation.web.ui.objectgraph import DOTS_MAX, Source, draw, sources_of, waves_of
from federation.web.ui.objecttree import ClusterBranch, ObjectTree


def a_tree(branches: Sequence[ClusterBranch] = (), policy: dict[str, str] | None = None) -> ObjectTree:
    return ObjectTree("good", "Delivered", 3, 3, (), policy, (), tuple(branches), ())


def a_branch(cluster: str, tone: str = "good") -> ClusterBranch:
    return ClusterBranch(cluster, tone, "Ready", "", 3, 2, ())


def an_object(**pod: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web", "tier": "front"}}, "spec": {"containers": [{"name": "c"}], **pod}}
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}


def a_service(name: str, selector: dict[str, str] | None) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": selector}}


def a_scaler(name: str, kind: str, target: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": {"kind": kind, "name": target}}}


def a_pod(name: str, status: str = "Running") -> dict[str, Any]:
    return {"name": name, "status": status, "message": "", "ready": 1, "containers": 1}


def test_services_autoscalers_and_followers_of_others_are_left_out() -> None:
    volumes = [{"name": "v", "configMap": {"name": "settings"}}, {"name": "d", "secret": {"secretName": "keys"}}]
    services = [
        a_service("both", {"app": "web"}),
        a_service("other", {"app": "db"}),
        a_service("none", None),
        a_service("all of them", {}),
    ]
    scalers = [a_scaler("mine", "Deployment", "web"), a_scaler("its", "StatefulSet", "web")]
    policy = {"namespace": "", "name": "everywhere"}
    found = sources_of(an_object(volumes=volumes), a_tree(policy=policy), services, scalers)
    assert [(each.kind, each.name) for each in found] == [
        ("ClusterPropagationPolicy", "everywhere"),
        ("HorizontalPodAutoscaler", "mine"),
        ("Service", "both"),
        ("ConfigMap", "settings"),
        ("Secret", "keys"),
    ]
    assert found[0].href == "/ui/objects/core.kubeadmiral.io/v1alpha1/clusterpropagationpolicies/-/everywhere"
    assert found[3].href == "/ui/objects/core/v1/configmaps/shop/settings"


def test_objects_without_pods_and_odd_specs_have_a_graph() -> None:
    for spec in (None, "text", [], {"template": "x"}, {"template": None}):
        obj = {"kind": "Thing", "metadata": {"name": "x"}, "spec": spec}
        assert sources_of(obj, a_tree(), [a_service("s", {"a": "b"})], []) == []
    graph = draw({"kind": "Thing", "metadata": {"name": "x"}}, a_tree(), [], {})
    assert [node.name for node in graph.nodes] == ["x"]
    assert graph.edges == ()


def test_the_picture_of_a_large_application_has_a_bound_and_shows_what_is_wrong() -> None:
    branches = [a_branch(f"member-{number}") for number in range(1000)] + [a_branch("broken", "bad")]
    pods = {branch.cluster: [a_pod(f"p-{number}") for number in range(200)] for branch in branches}
    sources = [Source("Secret", f"s-{number}", "follows it") for number in range(500)]
    graph = draw(an_object(), a_tree(branches), sources, pods)
    assert len(graph.nodes) == 16 + 1 + 30
    assert graph.nodes[17].name == "broken"
    assert len(graph.dots) == 30 * DOTS_MAX
    assert {words for _, _, words in graph.texts} == {"and 484 more", "and 971 more clusters", "and 164 more pods"}
    assert all(dot.x < 1040 and 0 <= dot.y <= graph.height for dot in graph.dots)
    assert all(0 <= node.y < graph.height for node in graph.nodes)


def test_boxes_and_pods_of_neighbours_do_not_touch() -> None:
    branches = [a_branch("a"), a_branch("b"), a_branch("c")]
    pods = {"a": [a_pod(f"a-{number}") for number in range(36)], "b": [a_pod("b-1")]}
    graph = draw(an_object(), a_tree(branches), [], pods)
    tops = [node.y for node in graph.nodes[1:]]
    assert all(below - above >= 50 for above, below in pairwise(tops))
    of_a = [dot.y for dot in graph.dots if "/a-" in dot.href]
    of_b = [dot.y for dot in graph.dots if "/b-" in dot.href]
    assert max(of_a) + 15 <= min(of_b)


def test_a_long_name_is_cut_and_told_in_full() -> None:
    name = "a-name-that-is-much-longer-than-a-box"
    graph = draw({"kind": "Thing", "metadata": {"name": name}}, a_tree(), [], {})
    assert graph.nodes[0].name == "a-name-that-is-much-long…"
    assert graph.nodes[0].full == name


def test_clusters_stand_below_the_waves_of_their_rollout() -> None:
    status = {
        "waves": [
            {"name": "canary", "state": "Complete", "clusters": ["west"]},
            {"name": "rest", "state": "WaitingForApproval", "clusters": ["east", "south"]},
        ]
    }
    tree = a_tree([a_branch(name) for name in ("east", "north", "south", "west")])
    graph = draw(an_object(), tree, [], {"east": [a_pod("p")] * 40}, waves_of(status))
    assert [(tone, words) for _, tone, words in graph.waves] == [
        ("good", "Wave 1 canary: complete"),
        ("warn", "Wave 2 rest: waits for approval"),
        ("unknown", "Not in this rollout"),
    ]
    clusters = [node for node in graph.nodes if node.x == graph.nodes[-1].x]
    assert [node.name for node in clusters] == ["west", "east", "south", "north"]
    west, rest, none = (y for y, _, _ in graph.waves)
    assert west < clusters[0].y < rest < clusters[1].y < clusters[2].y < none < clusters[3].y
    assert max(node.y for node in clusters) < graph.height
    assert draw(an_object(), tree, [], {}).waves == ()
