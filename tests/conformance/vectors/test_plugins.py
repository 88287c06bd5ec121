"""The built-in plugins against the reference's own answers."""

from typing import Any

from tests.support.scheduling import make_cluster, make_unit
from tests.support.vectors import each_case, load

from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import run_filter, run_replicas, run_score, run_select
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterScore, Division, Status
from federation.scheduling.snapshot import to_resources
from federation_plugins.cluster_capacity_weight import weight_limits, weights_of

PLUGINS = load_plugins()


def make(name: str) -> Any:
    return PLUGINS.make(name, {})


def is_as_expected(status: Status, expected: dict[str, Any] | None) -> bool:
    """Compare the status with the expected result; no result is success, as in Go."""
    expected = expected or {"code": "Success"}
    return (str(status.code), list(status.reasons)) == (expected["code"], expected.get("reasons") or [])


def clusters_of(sources: list[dict[str, Any]]) -> list[Cluster]:
    return [cluster for source in sources if (cluster := make_cluster(source)) is not None]


@each_case(load("plugin_simple_filters"))
def test_simple_filter(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    unit, cluster = make_unit(given.get("su")), make_cluster(given.get("cluster"))
    status = run_filter(make(given["plugin"]), unit, cluster)
    if expected.get("result") is None:
        assert status.is_success == bool(expected.get("success"))
    else:
        assert is_as_expected(status, expected["result"]), status


SCORES = {
    "balanced_score": "ClusterResourcesBalancedAllocation",
    "least_allocated_score": "ClusterResourcesLeastAllocated",
    "most_allocated_score": "ClusterResourcesMostAllocated",
}


@each_case(load("plugin_cluster_resources"))
def test_cluster_resources(case: dict[str, Any]) -> None:
    given, unit = case["input"], make_unit(case["input"].get("su"))
    assert unit is not None
    if given["op"] == "fit_filter":
        status = run_filter(make("ClusterResourcesFit"), unit, make_cluster(given.get("cluster")))
        assert is_as_expected(status, case["expected"].get("result")), status
    else:
        scores = run_score(make(SCORES[given["op"]]), unit, clusters_of(given.get("clusters") or []))
        assert scores == (case["expected"].get("scores") or [])


@each_case(
    [
        *({**case, "plugin": "TaintToleration"} for case in load("plugin_taint_toleration")),
        *({**case, "plugin": "ClusterAffinity"} for case in load("plugin_cluster_affinity")),
    ]
)
def test_filter_and_normalised_scores(case: dict[str, Any]) -> None:
    plugin, given, unit = case["plugin"], case["input"], make_unit(case["input"].get("su"))
    assert unit is not None
    if given["op"] == "filter":
        status = run_filter(make(plugin), unit, make_cluster(given.get("cluster")))
        assert is_as_expected(status, case["expected"].get("result")), status
    else:
        assert run_score(make(plugin), unit, clusters_of(given.get("clusters") or [])) == (
            case["expected"].get("scores") or []
        )


@each_case(load("plugin_select"))
def test_select(case: dict[str, Any]) -> None:
    given, unit = case["input"], make_unit(case["input"].get("su"))
    if unit is None:
        assert case["expected"]["result"]["code"] == "Error"
        return
    scored = []
    for entry in given.get("clusterScores") or ():
        cluster = make_cluster(entry["cluster"])
        assert cluster is not None
        scored.append(ClusterScore(cluster, entry.get("score") or 0))
    answer = run_select(make(given["plugin"]), unit, scored)
    expected = case["expected"]
    if isinstance(answer, Status):
        assert is_as_expected(answer, expected.get("result"))
    else:
        assert is_as_expected(SUCCESS, expected.get("result"))
        assert [entry.cluster.name for entry in answer] == (expected.get("clusters") or [])


@each_case(load("plugin_rsp_capacity_weight"))
def test_capacity_weight(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    match given["op"]:
        case "calc_weight_limit":
            totals = {
                c.name: whole(c.allocatable, given["resourceName"]) for c in clusters_of(given.get("clusters") or [])
            }
            limits = weight_limits(totals, round((given.get("supplyLimitRatio") or 0) * 1000))
            if expected.get("error"):
                assert {limits[name] for name, amount in totals.items() if not amount} == {0}
            else:
                assert limits == (expected.get("weightLimit") or {})
        case "available_to_percentage":
            resource, reported = given["resourceName"], given.get("clusterAvailables") or {}
            free = {name: whole(to_resources(amounts or {}), resource) for name, amounts in reported.items()}
            limits = given.get("weightLimit") or {}
            if expected.get("error"):
                # On purpose different: a cluster that does not report the resource has none of it, and that is all.
                # The original's plugin never comes here either: it fills in zeros first.
                lacking = {name for name, amounts in reported.items() if resource not in (amounts or {})}
                weights = weights_of(free, dict.fromkeys(free, 1000))
                assert lacking
                assert {weights[name] for name in lacking} == {0}
                assert sum(weights.values()) == 1000
            else:
                assert weights_of(free, limits) == (expected.get("weights") or {})
        case _:
            unit = make_unit(given.get("su") or {})
            assert unit is not None
            division = run_replicas(make("ClusterCapacityWeight"), unit, clusters_of(given.get("clusters") or []))
            assert isinstance(division, Division)
            assert is_as_expected(SUCCESS, expected.get("result"))
            assert [{"cluster": c, "replicas": n} for c, n in division.replicas.items()] == (
                expected.get("replicas") or []
            )


def whole(amounts: Any, resource: str) -> int:
    amount = amounts.get(resource, 0)
    return -(-amount // 1000) if resource == "cpu" else int(amount)
