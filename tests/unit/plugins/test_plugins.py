"""Built-in plugins, beyond the behaviour vectors."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from federation.api.selectors import compile_cluster_terms
from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.migrations import AutoMigration, CustomMigration
from federation.scheduling.framework.normalization import normalise_to_max
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import (
    DEPLOYMENT,
    NOW,
    a_cluster,
    a_divided_unit,
    a_state,
    a_unit,
    changed_unit,
    run_filter,
    run_replicas,
    run_score,
    run_select,
)
from federation.scheduling.framework.types import (
    ClusterScore,
    Code,
    Division,
    PreferredTerm,
    ReplicasStrategy,
    SchedulingMode,
    Status,
    Toleration,
)
from federation_plugins.cluster_capacity_weight import ClusterCapacityWeight, weight_limits

PLUGINS = load_plugins()


def make(name: str, **arguments: Any) -> Any:
    return PLUGINS.make(name, arguments)


def divide(name: str, unit: Any, *clusters: Any) -> Division:
    division = run_replicas(make(name), unit, clusters)
    assert isinstance(division, Division)
    return division


PLAIN = a_cluster("plain").offering(cpu="10", memory="10Gi").built()
OVERDRAWN = a_cluster("overdrawn").offering(cpu="1", memory="1Gi", **{"x.io/a": "9"}).free(cpu="-1").built()


@pytest.mark.parametrize(
    ("plugin", "unit", "cluster", "reason"),
    [
        ("APIResources", a_unit(), a_cluster().serving().built(), "cluster(s) didn't support this APIVersion"),
        ("APIResources", a_unit(), a_cluster().serving(DEPLOYMENT).built(), ""),
        ("PlacementFilter", a_unit(cluster_names=frozenset({"x"})), PLAIN, "cluster(s) were not in placement list"),
        ("PlacementFilter", a_unit(), PLAIN, ""),
        ("ClusterReady", a_unit(), a_cluster().unready().built(), "cluster(s) were unready"),
        ("ClusterReady", a_unit(current={"cluster": None}), a_cluster().unready().built(), ""),
        ("ClusterReady", a_unit(), PLAIN, ""),
        ("ClusterTerminating", a_unit(), a_cluster().terminating().built(), "cluster(s) were terminating"),
        ("ClusterTerminating", a_unit(), PLAIN, ""),
        (
            "TaintToleration",
            a_unit(),
            a_cluster().tainted("a", "b", "NoExecute").built(),
            "cluster(s) had taint {a: b}, that the schedulingUnit didn't tolerate",
        ),
        ("TaintToleration", a_unit(current={"cluster": 1}), a_cluster().tainted("a", "b").built(), ""),
        ("TaintToleration", a_unit(tolerations=(Toleration("a", "Exists"),)), a_cluster().tainted("a").built(), ""),
        ("TaintToleration", a_unit(), a_cluster().tainted("a", "b", "PreferNoSchedule").built(), ""),
        (
            "ClusterEvicted",
            a_unit(custom_migration=CustomMigration({}, {"plain": NOW + timedelta(hours=1)})),
            PLAIN,
            "cluster(s) were evicted due to custom migration configuration",
        ),
        ("ClusterEvicted", a_unit(custom_migration=CustomMigration()), PLAIN, ""),
        ("ClusterEvicted", a_unit(), PLAIN, ""),
        ("ClusterResourcesFit", a_unit(request={"cpu": 10_001}), PLAIN, "Insufficient cpu"),
        ("ClusterResourcesFit", a_unit(request={"cpu": 10_001}, current={"plain": 1}), PLAIN, ""),
        ("ClusterResourcesFit", a_unit(), OVERDRAWN, ""),
        ("ClusterResourcesFit", a_unit(request={"x.io/a": 0}), OVERDRAWN, ""),
        ("ClusterResourcesFit", a_unit(request={"x.io/a": 1}), OVERDRAWN, "Insufficient cpu"),
        ("ClusterResourcesFit", a_unit(request={"ephemeral-storage": 1}), PLAIN, "Insufficient ephemeral-storage"),
        (
            "ClusterAffinity",
            a_unit(required=compile_cluster_terms([{"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}])),
            PLAIN,
            "cluster(s) didn't match cluster selector",
        ),
        ("ClusterAffinity", a_unit(cluster_selector=(("a", "b"),)), a_cluster().labelled(a="b").built(), ""),
    ],
)
def test_filters(plugin: str, unit: Any, cluster: Any, reason: str) -> None:
    made = make(plugin)
    status = run_filter(made, unit, cluster)
    assert status.reasons == ((reason,) if reason else ())
    assert status.is_success is not bool(reason)
    made.cache_key(unit)


def test_an_eviction_is_never_cached() -> None:
    plugin = make("ClusterEvicted")
    assert plugin.cache_key(a_unit(custom_migration=CustomMigration({}, {"x": NOW}))) is None
    assert plugin.cache_key(a_unit()) is not None


def test_a_malformed_preferred_term_is_a_refusal() -> None:
    term = PreferredTerm(1, compile_cluster_terms([{"matchExpressions": [{"key": "a", "operator": "Nonsense"}]}]))
    status = make("ClusterAffinity").score(a_unit(preferred=(term,)), PLAIN, None)
    assert isinstance(status, Status)
    assert status.code is Code.UNSCHEDULABLE


def test_a_full_cluster_scores_nothing() -> None:
    full = a_cluster("full").offering(cpu="1", memory="1Gi").free(cpu="0").built()
    nothing = a_cluster("nothing").built()
    unit = a_unit(request={"cpu": 100})
    assert run_score(make("ClusterResourcesBalancedAllocation"), unit, [full, nothing]) == [0, 0]
    assert run_score(make("ClusterResourcesLeastAllocated"), unit, [nothing]) == [0]
    assert run_score(make("ClusterResourcesMostAllocated"), unit, [nothing, PLAIN]) == [0, 0]


def test_a_gpu_weighs_four_times() -> None:
    cluster = a_cluster().offering(cpu="10", memory="10", **{"nvidia.com/gpu": "10"}).built()
    unit = a_unit(request={"nvidia.com/gpu": 5})
    assert run_score(make("ClusterResourcesLeastAllocated"), unit, [cluster]) == [(100 + 100 + 4 * 50) // 6]
    assert run_score(make("ClusterResourcesMostAllocated"), unit, [cluster]) == [4 * 50 // 6]
    assert run_score(make("ClusterResourcesBalancedAllocation"), unit, [cluster]) == [76]


@pytest.mark.parametrize("name", ["ClusterResourcesLeastAllocated", "ClusterResourcesBalancedAllocation"])
@pytest.mark.parametrize("request_", [{}, {"cpu": 700}, {"cpu": 700, "nvidia.com/gpu": 5}, {"nvidia.com/gpu": 5}])
def test_the_scores_of_all_clusters_at_once_are_those_of_each(name: str, request_: dict[str, int]) -> None:
    plugin, unit = make(name), a_unit(request=request_)
    clusters = [
        a_cluster("gpus").offering(cpu="10", memory="10", **{"nvidia.com/gpu": "10"}).built(),
        a_cluster("used").offering(cpu="10", memory="10", **{"nvidia.com/gpu": "10"}).free(cpu="3").built(),
        a_cluster("cpus").offering(cpu="1", memory="10").built(),
        a_cluster("nothing").built(),
    ]
    assert list(plugin.score_each(unit, clusters, a_state())) == run_score(plugin, unit, clusters)


def test_scores_without_a_highest_one() -> None:
    assert normalise_to_max([0, 0]) == [0, 0]
    assert normalise_to_max([0, 0], is_reversed=True) == [100, 100]
    assert normalise_to_max([]) == []


def test_negative_preferences_are_normalised() -> None:
    assert normalise_to_max([-5, -5]) == [0, 0]
    assert normalise_to_max([-5, 0, 5]) == [0, 50, 100]
    terms = [
        PreferredTerm(weight, compile_cluster_terms([{"matchExpressions": [{"key": key, "operator": "Exists"}]}]))
        for key, weight in (("bad", -10), ("good", 30))
    ]
    clusters = [a_cluster(key).labelled(**{key: "x"}).built() for key in ("bad", "good", "plain")]
    assert run_score(make("ClusterAffinity"), a_unit(preferred=tuple(terms)), clusters) == [0, 100, 25]


def test_more_available_than_allocatable_prevents_no_decision() -> None:
    odd = a_cluster("odd").offering(cpu="1", memory="1Gi").free(cpu="1000", memory="1").built()
    for name in ("BalancedAllocation", "LeastAllocated", "MostAllocated"):
        (score,) = run_score(make(f"ClusterResources{name}"), a_unit(request={"cpu": 100}), [odd])
        assert 0 <= score <= 100, name


def test_a_negative_limit_of_clusters_is_a_refusal() -> None:
    answer = run_select(make("MaxCluster"), a_unit(max_clusters=-1), [ClusterScore(PLAIN, 1)])
    assert isinstance(answer, Status)
    assert answer.reasons == ("max cluster is less than 0",)


def test_binpack_orders_by_priority_only() -> None:
    unit = a_unit(mode=SchedulingMode.DIVIDE, strategy=ReplicasStrategy.BINPACK)
    other = replace(PLAIN, name="other")
    order = run_select(make("PrioritySort"), unit, [ClusterScore(PLAIN, 90), ClusterScore(other, 10)])
    assert not isinstance(order, Status)
    assert [(entry.cluster.name, entry.score) for entry in order] == [("other", 0), ("plain", 0)]


def test_the_rounding_difference_goes_to_the_first_name_among_equals() -> None:
    names = ("c", "b", "a")
    clusters = [a_cluster(name).offering(cpu="10", memory="1Gi").built() for name in names]
    division = divide("ClusterCapacityWeight", a_divided_unit(1000), *clusters)
    assert division.explanation["weights"]["values"] == {"a": 334, "b": 333, "c": 333}


def test_a_cluster_that_does_not_report_the_resource_has_none_of_it() -> None:
    gpu = a_cluster("gpu").offering(cpu="10", **{"nvidia.com/gpu": "4"}).built()
    division = divide("ClusterCapacityWeight", a_divided_unit(3, request={"nvidia.com/gpu": 1}), gpu, PLAIN)
    assert division.replicas == {"gpu": 3}
    assert division.explanation["weights"]["by"] == "available nvidia.com/gpu"


def test_a_cluster_that_reports_less_than_nothing_does_not_keep_the_division_from_ending() -> None:
    odd = a_cluster("odd").offering(cpu="-1").free(cpu="1").built()
    fine = [a_cluster(name).offering(cpu="10").built() for name in ("a", "b")]
    assert sum(divide("ClusterCapacityWeight", a_divided_unit(9), odd, *fine).replicas.values()) == 9
    weighted = a_divided_unit(9, weights={"odd": -5, "a": 2, "b": 1})
    assert divide("ClusterCapacityWeight", weighted, odd, *fine).replicas == {"a": 6, "b": 3}


@pytest.mark.parametrize(("args", "expected"), [({}, [1, 1, 2]), ({"division": "KubeAdmiral"}, [2, 2])])
def test_the_profile_chooses_the_formula_that_divides_by_weight(args: dict[str, str], expected: list[int]) -> None:
    clusters = [a_cluster(name).offering(cpu="10").built() for name in ("a", "b", "c")]
    unit = a_divided_unit(4, weights={"a": 1, "b": 1, "c": 1})
    division = run_replicas(ClusterCapacityWeight.from_args(args), unit, clusters)
    assert isinstance(division, Division)
    assert sorted(division.replicas.values()) == expected


def test_an_unknown_formula_is_refused() -> None:
    with pytest.raises(ValueError, match="division must be Nearest or KubeAdmiral, not 'Webster'"):
        ClusterCapacityWeight.from_args({"division": "Webster"})


def test_weights_are_equal_without_free_resources() -> None:
    busy = [a_cluster(name).offering(cpu="10").free(cpu="-1").built() for name in ("a", "b")]
    assert divide("ClusterCapacityWeight", a_divided_unit(4), *busy).replicas == {"a": 2, "b": 2}
    # All free resources are in a cluster whose weight limit rounds to 0.
    tiny = a_cluster("tiny").offering(cpu="1").built()
    huge = a_cluster("huge").offering(cpu="10000").free(cpu="0").built()
    assert divide("ClusterCapacityWeight", a_divided_unit(4), tiny, huge).replicas == {"tiny": 2, "huge": 2}


def test_feedback_and_the_users_caps_bound_the_division() -> None:
    clusters = [a_cluster(name).offering(cpu="10").built() for name in ("a", "b", "c")]
    unit = a_divided_unit(
        9,
        weights={"a": 1, "b": 1, "c": 1},
        current={"a": 3, "b": 3, "c": 3},
        auto_migration=AutoMigration(estimated_capacity={"c": 1, "a": -1}),
        custom_migration=CustomMigration({"a": 2}),
    )
    assert divide("ClusterCapacityWeight", unit, *clusters).replicas == {"a": 2, "b": 6, "c": 1}


def test_replicas_that_fit_nowhere_are_shown_as_overflow() -> None:
    unit = a_divided_unit(4, weights={"a": 1}, auto_migration=AutoMigration(True, {"a": 1}))
    division = divide("ClusterCapacityWeight", unit, a_cluster("a").built())
    assert division.replicas == {"a": 4}
    assert division.explanation["overflow"] == {"a": 3}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"limit": 1}, "unknown argument limit"),
        ({"limitPermille": 0}, "limitPermille must be a positive integer"),
        ({"limitPermille": "1"}, "limitPermille must be a positive integer"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, problem: str) -> None:
    with pytest.raises(PluginError, match=problem):
        make("ClusterCapacityWeight", **arguments)


def test_the_limit_can_be_set() -> None:
    small, large = a_cluster("small").offering(cpu="10").built(), a_cluster("large").offering(cpu="90").built()
    large = replace(large, available={"cpu": 10_000})
    strict = run_replicas(make("ClusterCapacityWeight", limitPermille=1000), a_divided_unit(100), (small, large))
    assert isinstance(strict, Division)
    assert (
        strict.replicas["small"] < divide("ClusterCapacityWeight", a_divided_unit(100), small, large).replicas["small"]
    )


def test_a_unit_without_numbers_of_its_own_holds_all_of_them() -> None:
    tainted = a_cluster("a").tainted("x").built()
    unit = a_divided_unit(6, weights={"a": 1, "plain": 1}, current={"a": None}, avoid_disruption=False)
    assert divide("ClusterCapacityWeight", unit, tainted, PLAIN).replicas == {"a": 3, "plain": 3}
    new = a_divided_unit(6, weights={"a": 1, "plain": 1})
    assert divide("ClusterCapacityWeight", new, tainted, PLAIN).replicas == {"plain": 6}


def test_bin_packing_fills_in_order() -> None:
    first, second = a_cluster("first").built(), a_cluster("second").built()
    unit = a_divided_unit(7, strategy=ReplicasStrategy.BINPACK, max_replicas={"first": 4}, min_replicas={"second": 1})
    assert divide("PreferenceBinPack", unit, first, second).replicas == {"first": 4, "second": 3}
    stuck = changed_unit(unit, max_replicas={}, auto_migration=AutoMigration(True, {"first": 2, "second": 1}))
    division = divide("PreferenceBinPack", stuck, first, second)
    assert division.explanation["overflow"] == {"first": 4, "second": 4}


def test_binpack_divides_a_new_total_without_waiting_for_reports() -> None:
    clusters = [a_cluster(name).with_nodes(1, cpu="64").built() for name in ("first", "second")]

    def packed(replicas: int, capacity: str = "Nodes", **feedback: int) -> Any:
        migration = AutoMigration(estimated_capacity=feedback, scheduled_replicas={"first": 1})  # one of three reported
        unit = a_divided_unit(
            replicas, strategy=ReplicasStrategy.BINPACK, current={"first": 3}, auto_migration=migration
        )
        division = run_replicas(make("PreferenceBinPack", capacity=capacity), unit, clusters)
        assert isinstance(division, Division)
        return division.replicas

    assert [packed(number) for number in (1, 2, 3, 10)] == [{"first": number} for number in (1, 2, 3, 10)]
    assert packed(2, first=2) == {"first": 3}, "what runs is what is wanted, and the third one waits for its time"
    assert packed(1, first=2) == {"first": 1}
    assert [packed(number, capacity="Sums") for number in (1, 10)] == [{"first": 3}] * 2, "KubeAdmiral waits"


def test_katalyst_resources_matter_only_when_requested() -> None:
    plugin, resource = make("KatalystResourcesExist"), "resource.katalyst.kubewharf.io/reclaimed_millicpu"
    wanting = a_unit(request={resource: 1})
    has_some = a_cluster().offering(**{resource: "5"}).built()
    assert [run_filter(plugin, wanting, cluster).is_success for cluster in (has_some, PLAIN)] == [True, False]
    assert run_filter(plugin, a_unit(), PLAIN).is_success
    assert plugin.cache_key(wanting) != plugin.cache_key(a_unit())
    staying = replace(wanting, current={"plain": 1})
    assert run_filter(plugin, staying, PLAIN).is_success


def test_katalysts_reclaimed_cpu_decides_when_the_unit_needs_it() -> None:
    resource = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
    little, much = (a_cluster(str(n)).offering(cpu="8", **{resource: f"{n}k", "nvidia.com/gpu": "1"}) for n in (1, 3))
    unit = a_divided_unit(4, request={resource: 10, "nvidia.com/gpu": 1})
    division = divide("ClusterCapacityWeight", unit, little.built(), much.built())
    assert division.explanation["weights"] == {"by": f"available {resource}", "values": {"1": 250, "3": 750}}
    assert division.replicas == {"1": 1, "3": 3}


def test_weights_are_limited_in_floating_point_as_in_the_original() -> None:
    # Exactly, 26 of 160 times 1.4 is 227.5 thousandths; KubeAdmiral's floating point result is slightly less.
    assert weight_limits({"a": 43, "b": 49, "c": 26, "d": 42}, 1400) == {"a": 376, "b": 429, "c": 227, "d": 368}


@pytest.mark.parametrize("name", PLUGINS.names)
def test_cache_keys_are_hashable(name: str) -> None:
    plugin = make(name)
    if hasattr(plugin, "cache_key"):
        assert plugin.cache_key(a_unit()) == plugin.cache_key(a_unit())
        hash(plugin.cache_key(a_divided_unit(2, request={"cpu": 1}, current={"a": 1})))


def test_missing_resources_are_named_in_a_fixed_order() -> None:
    request = {"x.io/b": 1, "a.io/a": 1, "ephemeral-storage": 1, "memory": 1, "cpu": 1}
    status = run_filter(make("ClusterResourcesFit"), a_unit(request=request), a_cluster("bare").built())
    assert status.reasons == tuple(
        f"Insufficient {name}" for name in ("cpu", "memory", "ephemeral-storage", "a.io/a", "x.io/b")
    )
