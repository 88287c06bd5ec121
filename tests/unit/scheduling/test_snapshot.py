"""Changes of clusters; an unchanged cluster stays the same object."""

import gc
from typing import Any

import pytest

from federation.api import names
from federation.scheduling.engine import Engine
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import DEPLOYMENT, NOW
from federation.scheduling.framework.types import Cluster, ClusterChange, SchedulingMode, SchedulingUnit, Taint
from federation.scheduling.snapshot import ClusterCache, changes, compare, to_cluster


def source(name: str = "east", **changes: Any) -> dict[str, Any]:
    joined, ready = changes.get("joined", True), changes.get("ready", True)
    metadata: dict[str, Any] = {"name": name, "labels": changes.get("labels", {}), "resourceVersion": "1"}
    if changes.get("terminating"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": metadata,
        "spec": {"taints": changes.get("taints", [])},
        "status": {
            "conditions": [
                {"type": "Joined", "status": "True" if joined else "False"},
                {"type": "Ready", "status": "True" if ready else "False", "lastProbeTime": changes.get("probed")},
            ],
            "apiResourceTypes": changes.get("kinds", []),
            "resources": {
                "available": {"cpu": changes.get("cpu", "1")},
                "waiting": {"cpu": changes.get("waiting", "0")},
                "omittedNodeLabels": changes.get("omitted", []),
            },
        },
    }


def test_a_heartbeat_changes_nothing() -> None:
    cache = ClusterCache()
    assert cache.update(source(probed="now")) == ClusterChange.MEMBERSHIP
    before = cache.snapshot()
    assert cache.update(source(probed="later")) == ClusterChange.NOTHING
    assert cache.snapshot() is before


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"labels": {"a": "b"}}, ClusterChange.LABELS),
        ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, ClusterChange.TAINTS),
        ({"kinds": [{"group": "apps", "version": "v1", "kind": "Deployment"}]}, ClusterChange.API_TYPES),
        ({"ready": False}, ClusterChange.READINESS),
        ({"terminating": True}, ClusterChange.TERMINATION),
        ({"cpu": "500m"}, ClusterChange.RESOURCES),
        ({"waiting": "2"}, ClusterChange.RESOURCES),
        ({"omitted": ["disk"]}, ClusterChange.RESOURCES),
        ({"joined": False}, ClusterChange.MEMBERSHIP),
    ],
)
def test_a_relevant_change_is_returned_and_makes_a_new_generation(changes: Any, expected: ClusterChange) -> None:
    cache = ClusterCache()
    cache.update(source())
    before = cache.snapshot()
    assert cache.update(source(**changes)) == expected
    assert cache.snapshot() is not before
    assert (cache.snapshot().generation != before.generation) == (expected is not ClusterChange.RESOURCES)


def test_an_unjoined_cluster_is_no_candidate() -> None:
    cache = ClusterCache()
    assert cache.update(source(joined=False)) == ClusterChange.NOTHING
    assert cache.snapshot().clusters == ()
    assert cache.remove("east") == ClusterChange.NOTHING
    assert cache.remove("east") == ClusterChange.NOTHING
    cache.update(source())
    assert cache.remove("east") == ClusterChange.MEMBERSHIP


def test_clusters_come_in_the_order_of_their_names() -> None:
    cache = ClusterCache()
    for name in ("west", "east", "north"):
        cache.update(source(name))
    assert [cluster.name for cluster in cache.snapshot().clusters] == ["east", "north", "west"]


def test_a_name_in_capitals_means_the_lower_case_cluster_unless_it_exists() -> None:
    cache = ClusterCache()
    cache.update(source("cluster-01"))
    snapshot = cache.snapshot()
    assert snapshot.resolve("Cluster-01") == "cluster-01"
    assert snapshot.resolve("cluster-01") == "cluster-01"
    assert snapshot.resolve("Cluster-02") == "Cluster-02"


def test_quantities_are_integers_and_nonsense_is_nothing() -> None:
    cluster = to_cluster(
        {
            "metadata": {"name": "x"},
            "status": {
                "resources": {
                    "allocatable": {"cpu": "1500m", "memory": "1Gi", "pods": "many"},
                    "available": {"cpu": "-250m", "memory": "0.5"},
                }
            },
            "spec": {"taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]},
        }
    )
    assert cluster.allocatable == {"cpu": 1500, "memory": 1 << 30}
    assert cluster.available == {"cpu": -250, "memory": 1}
    assert cluster.used("cpu") == 1750
    assert cluster.taints == (Taint("k", "", "NoExecute"),)
    assert not cluster.is_joined


def test_a_report_beyond_64_bits_prevents_no_decision() -> None:
    cache, much = ClusterCache(), source()
    much["status"]["resources"] = {
        "allocatable": {"example.com/units": "1e30", "cpu": "10E"},
        "available": {"example.com/units": "-1e30"},
    }
    assert cache.update(much) == ClusterChange.MEMBERSHIP
    cluster = cache.snapshot().by_name["east"]
    assert cluster.allocatable == {"example.com/units": 2**63 - 1, "cpu": 2**63 - 1}
    assert cluster.available == {"example.com/units": -(2**63)}


def test_between_two_snapshots_every_change_is_named() -> None:
    cache = ClusterCache()
    for name in ("east", "north", "west"):
        cache.update(source(name))
    before = cache.snapshot()
    assert not list(changes(before, cache.snapshot()))
    cache.update(source("east", ready=False, cpu="2"))
    cache.remove("west")
    cache.update(source("south"))
    expected = {
        "east": ClusterChange.READINESS | ClusterChange.RESOURCES,
        "south": ClusterChange.MEMBERSHIP,
        "west": ClusterChange.MEMBERSHIP,
    }
    assert dict(changes(before, cache.snapshot())) == expected


def test_ready_is_who_is_there_joined_and_ready() -> None:
    cache = ClusterCache()
    for name, more in {"east": {}, "north": {"ready": False}, "west": {"joined": False}}.items():
        cache.update(source(name, **more))
    assert [cache.is_ready(name) for name in ("east", "north", "west", "south")] == [True, False, False, False]


def test_allocatable_is_never_negative_and_available_may_be() -> None:
    cluster = source()
    free = [{"nodes": -1, "resources": {"cpu": "-1"}}]
    cluster["status"]["resources"] = {
        "allocatable": {"cpu": "-1", "memory": "1"},
        "available": {"cpu": "-1"},
        "waiting": {"cpu": "-2"},
        "nodeClasses": [{"nodes": 1, "largest": {"cpu": "-1"}, "free": free}],
    }
    seen = to_cluster(cluster)
    assert (seen.allocatable, seen.available, seen.waiting) == ({"cpu": 0, "memory": 1}, {"cpu": -1000}, {"cpu": 0})
    assert seen.node_classes is not None
    assert [(each.largest, each.nodes, each.free) for each in seen.node_classes] == [({"cpu": 0}, (0,), {"cpu": (0,)})]


def test_a_cluster_is_ready_when_the_taints_of_its_outage_are_gone() -> None:
    conditions = [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}]
    returned = {"metadata": {"name": "east"}, "status": {"conditions": conditions}}
    taint = {"key": names.TAINT_UNREACHABLE, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    tainted = to_cluster({**returned, "spec": {"taints": [taint]}})
    assert (tainted.is_ready, tainted.is_silent) == (False, True)
    assert to_cluster(returned).is_ready
    assert compare(tainted, to_cluster(returned)) == ClusterChange.READINESS


def test_taints_of_users_and_their_times_count_as_taints() -> None:
    def cluster(**taint: str) -> Cluster:
        conditions = [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}]
        spec = {"taints": [{"key": "a", "effect": "NoExecute", **taint}]}
        return to_cluster({"metadata": {"name": "east"}, "spec": spec, "status": {"conditions": conditions}})

    first, later = cluster(timeAdded="2026-01-01T00:00:00Z"), cluster(timeAdded="2026-01-01T00:00:09Z")
    assert compare(first, later) == ClusterChange.TAINTS
    assert compare(first, cluster()) == ClusterChange.TAINTS
    assert cluster(timeAdded="yesterday").taint_times == {}
    assert first.is_ready


@pytest.mark.parametrize(("change", "is_kept"), [({"cpu": "2"}, True), ({"labels": {"a": "b"}}, False)])
def test_what_was_computed_of_a_cluster_is_kept_while_only_its_resources_change(
    change: dict[str, Any], is_kept: bool
) -> None:
    cache = ClusterCache()
    cache.update(source())
    cache.snapshot().by_name["east"].memoize_lasting("key", "value")
    cache.update(source(**change))
    assert ("key" in cache.snapshot().by_name["east"].lasting) is is_kept


@pytest.mark.parametrize("most", [None, 1])
def test_a_snapshot_ends_with_the_report_after_its_decision(most: int | None) -> None:
    """Without a collection of garbage: each has hundreds of values, and there are hundreds between two collections."""
    cache, engine = ClusterCache(), Engine(load_plugins())
    kinds = [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    for name in ("east", "west"):
        cache.update(source(name, kinds=kinds))
    unit = SchedulingUnit(
        gvk=DEPLOYMENT,
        mode=SchedulingMode.DIVIDE,
        desired_replicas=1,
        max_clusters=most,
        assumed={"east": {(("cpu", 1),): 1}},
    )
    gc.disable()
    try:
        before = _groups()
        assert engine.decide(unit, cache.snapshot(), DEFAULT_PROFILE, now=NOW).scored is not None
        assert _groups() > before
        cache.update(source(cpu="7", kinds=kinds))
        assert _groups() == before
    finally:
        gc.enable()


def _groups() -> int:
    return sum(type(each) is ClusterGroup for each in gc.get_objects())


def test_pods_without_a_node_leave_their_room_on_the_nodes() -> None:
    cache = ClusterCache()
    assert cache.free_on_nodes("east") == {}
    cluster = source()
    cluster["status"]["resources"] = {"allocatable": {"cpu": "8"}, "available": {"cpu": "5"}, "waiting": {"cpu": "3"}}
    cache.update(cluster)
    assert cache.free_on_nodes("east") == {"cpu": 5_000}, "nothing is known of the nodes"
    free = [{"nodes": 3, "resources": {"cpu": "2", "pods": "10"}}, {"nodes": 1, "resources": {"cpu": "1", "pods": "9"}}]
    resources = {**cluster["status"]["resources"], "nodeClasses": [{"nodes": 4, "largest": {"cpu": "2"}, "free": free}]}
    cache.update({**cluster, "status": {**cluster["status"], "resources": resources}})
    assert cache.free_on_nodes("east") == {"cpu": 7_000, "pods": 39}
