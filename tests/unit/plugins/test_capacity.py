"""Capacity by node: ClusterNodesFit and the two Replicas plugins with `capacity: Nodes`."""

from dataclasses import replace
from typing import Any

import pytest

from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.errors import PluginError
from federation.scheduling.engine import Engine
from federation.scheduling.framework.assumed import replicas_displaced_by
from federation.scheduling.framework.capacity import capacity_of, could_run, rooms_of, waiting_pods
from federation.scheduling.framework.migrations import AutoMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE, with_strategy
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit, run_filter, run_replicas
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    Division,
    NodeClass,
    NodeNeeds,
    Taint,
    Toleration,
    pod_shape,
)
from federation.scheduling.snapshot import Snapshot, to_cluster

CORE = {"cpu": 1000}
GPU_TAINT = Taint("nvidia.com/gpu", "", "NoSchedule")


def divide(plugin: str, unit: Any, *clusters: Cluster, **arguments: Any) -> Division:
    division = run_replicas(load_plugins().make(plugin, arguments), unit, clusters)
    assert isinstance(division, Division)
    return division


def decide(unit: Any, *clusters: Cluster, binpack: bool = False) -> Any:
    profile = with_strategy(DEFAULT_PROFILE, is_binpack=binpack)
    return Engine(load_plugins()).decide(unit, Snapshot(1, clusters), profile, now=NOW)


MANY_SMALL = a_cluster("many-small").with_nodes(20, cpu="1500m", memory="8Gi").built()
FEW_LARGE = a_cluster("few-large").with_nodes(2, cpu="8", memory="64Gi").built()
FULL = a_cluster("full").with_nodes(4, cpu="200m").built()


def test_a_pod_larger_than_every_nodes_free_resources_does_not_fit() -> None:
    assert capacity_of(MANY_SMALL, pod_shape((("cpu", 2000),))) == 0
    assert capacity_of(MANY_SMALL, pod_shape((("cpu", 1000),))) == 20
    assert capacity_of(FEW_LARGE, pod_shape((("cpu", 2000), ("memory", 30 << 30)))) == 4


def test_the_requests_of_waiting_pods_are_counted_in_pods_beside_the_room_on_nodes() -> None:
    crowded = replace(FEW_LARGE, available={"cpu": 0}, waiting={"cpu": 9000, "memory": 1 << 30}, memo={})
    pod = pod_shape((("cpu", 500), ("memory", 1 << 20)))
    assert waiting_pods(crowded, pod) == 1024
    assert waiting_pods(crowded, pod_shape((("cpu", 2000),))) == 5
    assert capacity_of(crowded, pod_shape((("cpu", 2000),))) == 8
    assert waiting_pods(FEW_LARGE, pod) == 0


def test_a_pod_without_requests_is_counted_by_pod_slots() -> None:
    assert capacity_of(FEW_LARGE, pod_shape(())) == 220
    assert capacity_of(a_cluster().offering(cpu="4").built(), pod_shape(())) == 0


def test_tainted_nodes_count_for_pods_that_tolerate_them() -> None:
    cluster = a_cluster().with_nodes(2, taints=[GPU_TAINT], cpu="8").built()
    tolerant = NodeNeeds(tolerations=(Toleration("nvidia.com/gpu", "Exists"),))
    assert capacity_of(cluster, pod_shape((("cpu", 4000),))) == 0
    assert not could_run(cluster, pod_shape((("cpu", 4000),)))
    assert capacity_of(cluster, pod_shape((("cpu", 4000),), tolerant)) == 4


def test_node_selectors_and_affinity_choose_nodes() -> None:
    cluster = (
        a_cluster().with_nodes(2, labels={"zone": "a"}, cpu="4").with_nodes(1, labels={"zone": "b"}, cpu="4").built()
    )

    def by(expression: dict[str, Any]) -> int:
        terms = compile_cluster_terms([{"matchExpressions": [expression]}])
        return capacity_of(cluster, pod_shape((("cpu", 1000),), NodeNeeds(terms=terms)))

    assert capacity_of(cluster, pod_shape((("cpu", 1000),), NodeNeeds((("zone", "b"),)))) == 4
    assert by({"key": "zone", "operator": "In", "values": ["a"]}) == 8
    assert by({"key": "zone", "operator": "NotIn", "values": ["a"]}) == 4
    assert by({"key": "disk", "operator": "DoesNotExist"}) == 12


@pytest.mark.parametrize("term", [{}, {"matchExpressions": []}, {"matchExpressions": [{"key": "a", "operator": "x"}]}])
def test_an_empty_or_wrong_term_of_an_affinity_chooses_no_node(term: dict[str, Any]) -> None:
    cluster = a_cluster().with_nodes(2, cpu="4").built()
    needs = NodeNeeds(terms=compile_cluster_terms([term]))
    assert capacity_of(cluster, pod_shape((("cpu", 1000),), needs)) == 0


def test_unknown_node_labels_add_no_capacity_and_reject_no_cluster() -> None:
    cluster = Cluster(
        "c",
        node_classes=(NodeClass(largest={"cpu": 4000}, nodes=(2,), free={"cpu": (4000,), "pods": (9,)}),),
        omitted_node_labels=frozenset({"kubernetes.io/hostname"}),
    )
    pinned = NodeNeeds((("kubernetes.io/hostname", "n1"),))
    absent = compile_cluster_terms([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}])
    named = compile_cluster_terms([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}])
    for needs in (pinned, NodeNeeds(terms=absent), NodeNeeds(terms=named)):
        assert capacity_of(cluster, pod_shape((("cpu", 1000),), needs)) == 0
        assert could_run(cluster, pod_shape((("cpu", 1000),), needs))


def test_replicas_go_only_where_they_can_run() -> None:
    decision = decide(a_divided_unit(6, request={"cpu": 4000}), MANY_SMALL, FEW_LARGE, FULL)
    assert decision.placements == {"few-large": 6}
    assert decision.reason == (
        "1/3 clusters are available: 2 cluster(s) had no node that could run a replica"
        "; 2 of 6 replicas fit on no node and wait in members"
    )
    assert decision.division.explanation["room"] == {"replicas": {"few-large": 4}}
    assert decision.waiting == {"few-large": 2}


def test_a_full_cluster_gets_nothing_while_another_has_capacity() -> None:
    used = Cluster(
        "used",
        allocatable={"cpu": 8000},
        node_classes=(NodeClass(largest={"cpu": 8000}, nodes=(1,), free={"pods": (9,)}),),
    )
    for weights in ({}, {"used": 9, "few-large": 1}):
        unit = a_divided_unit(5, request=CORE, weights=weights)
        assert divide("ClusterCapacityWeight", unit, used, FEW_LARGE).replicas == {"few-large": 5}
    assert divide("PreferenceBinPack", a_divided_unit(5, request=CORE), used, FEW_LARGE).replicas == {"few-large": 5}
    plain = divide("ClusterCapacityWeight", unit, used, FEW_LARGE, capacity="Sums").replicas
    assert plain["used"] > 0


def test_replicas_that_fit_nowhere_are_placed() -> None:
    for weights in ({}, {"full": 1, "few-large": 1}):
        unit = a_divided_unit(30, request=CORE, weights=weights)
        division = divide("ClusterCapacityWeight", unit, FULL, FEW_LARGE)
        assert sum(division.replicas.values()) == 30
        assert division.replicas["few-large"] >= 16
        room = division.explanation["room"]["replicas"]
        assert sum(division.explanation["waiting"].values()) == 30 - sum(room.values())


def test_running_replicas_stay_in_a_cluster_that_is_full_of_them() -> None:
    unit = a_divided_unit(9, request=CORE, current={"full": 5})
    decision = decide(unit, FULL, FEW_LARGE)
    assert decision.placements == {"few-large": 4, "full": 5}


def test_binpack_fills_clusters_up_to_their_nodes_capacity() -> None:
    unit = a_divided_unit(20, request=CORE, priorities={"few-large": 2, "many-small": 1})
    assert decide(unit, MANY_SMALL, FEW_LARGE, binpack=True).placements == {"few-large": 16, "many-small": 4}


def test_with_few_clusters_allowed_a_full_one_takes_no_place() -> None:
    busy = Cluster(
        "busy",
        api_types=FEW_LARGE.api_types,
        allocatable={"cpu": 64000, "memory": 1 << 40},
        available={"cpu": 64000, "memory": 1 << 40},
        node_classes=(NodeClass(largest={"cpu": 64000}),),
    )
    unit = a_divided_unit(2, request=CORE, max_clusters=1)
    assert decide(unit, busy, FEW_LARGE).placements == {"few-large": 2}
    assert decide(unit, busy).placements == {"busy": 2}


def test_openings_are_used_where_the_report_shows_less() -> None:
    def lacking(openings: dict[str, int]) -> Any:
        migration = AutoMigration(estimated_capacity={"few-large": 4}, openings=openings)
        return a_divided_unit(6, request=CORE, current={"few-large": 6}, auto_migration=migration)

    busy = replace(FULL, memo={}, node_classes=(NodeClass(largest={"cpu": 900}, nodes=(1,), free={"pods": (9,)}),))
    none = replace(FEW_LARGE, memo={}, node_classes=(NodeClass(largest={"cpu": 8000}),))
    assert decide(lacking({}), none, busy).placements == {"few-large": 6}
    assert decide(lacking({"full": 2}), none, busy).placements == {"few-large": 4, "full": 2}
    rooms = rooms_of(lacking({"many-small": 7, "gone": 3}), [MANY_SMALL])
    assert rooms is not None
    assert rooms.free == {"many-small": 20}


def test_duplicates_go_everywhere() -> None:
    assert set(decide(a_unit(request={"cpu": 4000}), MANY_SMALL, FEW_LARGE).placements) == {"many-small", "few-large"}


def test_replicas_that_cannot_run_are_kept_with_keep_unschedulable() -> None:
    stuck = AutoMigration(keep_unschedulable=True, estimated_capacity={"full": 1})
    unit = a_divided_unit(4, request=CORE, current={"full": 3, "few-large": 1}, auto_migration=stuck)
    division = divide("ClusterCapacityWeight", unit, FULL, FEW_LARGE)
    assert division.replicas == {"full": 3, "few-large": 3}
    assert division.explanation["overflow"] == {"full": 2}


def test_assumed_replicas_count_until_no_other_capacity_is_left() -> None:
    assumed = {"few-large": {(("cpu", 4000),): 3}}
    unit = a_divided_unit(24, request=CORE, assumed=assumed)
    division = divide("ClusterCapacityWeight", unit, MANY_SMALL, FEW_LARGE)
    assert division.replicas == {"few-large": 4, "many-small": 20}
    assert division.explanation["room"]["promised"] == {"few-large": 12}


def test_a_cluster_with_more_assumed_replicas_than_capacity_has_none() -> None:
    rooms = rooms_of(a_divided_unit(1, request=CORE, assumed={"few-large": {(): 100}}), [FEW_LARGE])
    assert rooms is not None
    assert (rooms.free, rooms.unreserved) == ({"few-large": 16}, {"few-large": 0})


@pytest.mark.parametrize(
    ("other", "request_", "count"),
    [
        ((("cpu", 1000),), (("cpu", 1000),), 1),
        ((("cpu", 2500),), (("cpu", 1000),), 3),
        ((("cpu", 100),), (("cpu", 1000),), 1),
        ((("memory", 4),), (("cpu", 1000), ("memory", 1)), 4),
        ((), (), 1),
    ],
)
def test_an_assumed_pod_displaces_as_many_replicas_as_it_can(other: Any, request_: Any, count: int) -> None:
    assert replicas_displaced_by(other, request_) == count


def test_the_memo_of_a_cluster_is_bounded() -> None:
    cluster = a_cluster().with_nodes(1, cpu="4").built()
    for amount in range(1, 1100):
        capacity_of(cluster, pod_shape((("cpu", amount),)))
    assert len(cluster.memo) < 1100


@pytest.mark.parametrize("plugin", ["ClusterCapacityWeight", "PreferenceBinPack"])
def test_arguments_are_checked(plugin: str) -> None:
    with pytest.raises(PluginError, match="capacity must be Nodes or Sums"):
        load_plugins().make(plugin, {"capacity": "Guess"})
    with pytest.raises(PluginError, match="unknown argument"):
        load_plugins().make(plugin, {"capcity": "Sums"})


def test_a_cluster_is_compiled_from_its_report() -> None:
    resources = {
        "nodeClasses": [
            {
                "nodes": 2,
                "labels": {"zone": "a"},
                "taints": [{"key": "k", "effect": "NoSchedule"}],
                "largest": {"cpu": "4"},
                "free": [{"nodes": 2, "resources": {"cpu": "3500m", "memory": "1Gi", "pods": "9"}}],
            }
        ],
        "omittedNodeLabels": ["kubernetes.io/hostname"],
    }
    cluster = to_cluster({"metadata": {"name": "c"}, "status": {"resources": resources}})
    assert cluster.node_classes == (
        NodeClass(
            {"zone": "a"},
            (Taint("k", "", "NoSchedule"),),
            {"cpu": 4000},
            (2,),
            {"cpu": (3500,), "memory": (1 << 30,), "pods": (9,)},
            2,
        ),
    )
    assert cluster.omitted_node_labels == {"kubernetes.io/hostname"}


@pytest.mark.parametrize(("max_clusters", "is_accepted"), [(None, True), (1, False)])
def test_a_full_cluster_is_refused_only_where_clusters_are_scarce(max_clusters: int | None, is_accepted: bool) -> None:
    busy = a_cluster("busy").with_nodes(2, cpu="4").built()
    assert busy.node_classes is not None
    used = replace(
        busy, node_classes=tuple([replace(each, nodes=(0,) * len(each.nodes)) for each in busy.node_classes])
    )
    unit = a_divided_unit(2, request=CORE, max_clusters=max_clusters)
    assert could_run(used, unit.shape)
    assert capacity_of(used, unit.shape) == 0
    fits = load_plugins().make("ClusterNodesFit", {})
    assert (run_filter(fits, unit, used) == SUCCESS) is is_accepted
    assert (fits.filter_each(unit, [used], None) == [SUCCESS]) is is_accepted
    assert run_filter(fits, a_divided_unit(2, request=CORE, max_clusters=1), a_cluster("unknown").built()) == SUCCESS
