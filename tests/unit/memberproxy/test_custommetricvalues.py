"""The one MetricValueList that the host makes of the members' values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import ClusterError, Conflict, NotFound
from federation.apimachinery.paths import parse
from federation.memberproxy.custommetricvalues import GROUP, from_answer, merge, to_query

ROOT = f"/apis/{GROUP}/v1beta2"


def a_query(path: str, version: str = "v1beta2") -> Any:
    parsed = parse(f"/apis/{GROUP}/{version}/{path}")
    assert parsed is not None
    return to_query(parsed)


def an_item(name: str = "web", value: Any = "5", **changes: Any) -> dict[str, Any]:
    described = {"kind": "Pod", "namespace": "shop", "name": name, "apiVersion": "/v1"}
    item = {"describedObject": described, "metric": {"name": "hits"}, "timestamp": "2026-01-01T00:00:00Z"}
    return {**item, "value": value, **changes}


def merged(path: str, members: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    query = a_query(path)
    names = query.names(members)
    found = {cluster: from_answer(cluster, query, name, {"items": members[cluster]}) for cluster, name in names.items()}
    items: list[dict[str, Any]] = merge(query, found)["items"]
    return items


@pytest.mark.parametrize(
    ("path", "name", "asked"),
    [
        ("namespaces/shop/pods/*/hits", "*", "namespaces/shop/pods/*/hits"),
        ("namespaces/shop/deployments.apps/web/hits", "web", "namespaces/shop/deployments.apps/web/hits"),
        ("namespaces/shop/metrics/hits", "", "namespaces/shop/metrics/hits"),
        ("nodes/*/hits", "*", "nodes/*/hits"),
        ("namespaces/shop/pods/east-web/hits", "web", "namespaces/shop/pods/web/hits"),
    ],
)
def test_members_get_the_path_with_their_own_name(path: str, name: str, asked: str) -> None:
    query = a_query(path)
    assert query.names(["east"]) == {"east": name}
    assert query.path(name) == f"{ROOT}/{asked}"


@pytest.mark.parametrize("path", ["namespaces/shop/pods", "namespaces/shop/pods/web", "metrics/hits", "pods"])
def test_a_path_without_a_metric_is_not_served(path: str) -> None:
    with pytest.raises(NotFound):
        a_query(path)


def test_a_list_has_the_values_of_all_clusters_with_the_names_on_the_host() -> None:
    items = merged("namespaces/shop/pods/*/hits", {"east": [an_item("a"), an_item("b")], "west": [an_item("a", "7")]})
    assert [(item["describedObject"]["name"], item["value"]) for item in items] == [
        ("east-a", "5"),
        ("east-b", "5"),
        ("west-a", "7"),
    ]
    assert items[0] == an_item("east-a")


def test_a_list_may_be_empty() -> None:
    assert merged("namespaces/shop/pods/*/hits", {"east": []}) == []


def test_one_pod_is_that_of_its_cluster() -> None:
    [item] = merged("namespaces/shop/pods/west-a/hits", {"east": [an_item("a")], "west": [an_item("a", "7")]})
    assert (item["describedObject"]["name"], item["value"]) == ("west-a", "7")


def test_a_name_that_means_two_pods_is_a_conflict() -> None:
    with pytest.raises(Conflict, match='clusters "a" and "a-b"'):
        merged("namespaces/shop/pods/a-b-c/hits", {"a": [an_item("b-c")], "a-b": [an_item("c")]})


def test_a_name_whose_end_is_a_hash_is_found_among_all_pods() -> None:
    long = "x" * 250
    [listed] = merged("namespaces/shop/pods/*/hits", {"east": [an_item(long)]})
    name = listed["describedObject"]["name"]
    assert a_query(f"namespaces/shop/pods/{name}/hits").names(["east"]) == {"east": "*"}
    assert merged(f"namespaces/shop/pods/{name}/hits", {"east": [an_item("other"), an_item(long)]}) == [listed]


@pytest.mark.parametrize(
    ("values", "average"),
    [
        (["5", "7"], "6"),
        (["1", "2"], "1500m"),
        (["1", "1", "2"], "1333m"),
        (["-1m", "-2m"], "-1m"),
        (["1Ki", "3Ki"], "2Ki"),
        ([3, 0.5], "1750m"),
        (["1"], "1"),
    ],
    ids=str,
)
def test_the_value_of_an_object_is_the_average_in_whole_thousandths(values: list[Any], average: str) -> None:
    members = {f"c{number}": [an_item(value=value)] for number, value in enumerate(values)}
    [item] = merged("namespaces/shop/deployments.apps/web/hits", members)
    assert (item["value"], item["describedObject"]["name"]) == (average, "web")


def test_an_average_is_as_old_as_its_oldest_value() -> None:
    old, new = "2026-01-01T00:00:00Z", "2026-01-01T02:00:00+01:00"
    members = {"east": [an_item(timestamp=new, windowSeconds=60)], "west": [an_item(timestamp=old, windowSeconds=30)]}
    [item] = merged("namespaces/shop/services/web/hits", members)
    assert (item["timestamp"], item["windowSeconds"]) == (old, 60)


def test_a_metric_of_the_namespace_is_averaged() -> None:
    described = {"kind": "Namespace", "name": "shop", "apiVersion": "/v1"}
    members = {"east": [an_item(describedObject=described)], "west": [an_item(describedObject=described, value="6")]}
    [item] = merged("namespaces/shop/metrics/hits", members)
    assert item["describedObject"] == described
    assert item["value"] == "5500m"


def test_the_older_version_has_its_own_fields() -> None:
    query = a_query("namespaces/shop/pods/*/hits", "v1beta1")
    item = an_item("a", metricName="hits", selector={"matchLabels": {"verb": "GET"}}, window=60)
    del item["metric"]
    answer = merge(query, {"east": from_answer("east", query, "*", {"items": [item]})})
    assert answer["apiVersion"] == "custom.metrics.k8s.io/v1beta1"
    [shown] = answer["items"]
    assert shown == {**item, "describedObject": {**item["describedObject"], "name": "east-a"}}


def test_nothing_found_is_not_found() -> None:
    for path in ("namespaces/shop/pods/*/hits", "namespaces/shop/pods/east-a/hits", "namespaces/shop/metrics/hits"):
        with pytest.raises(NotFound, match=r"has the metric hits of (pods|namespace) "):
            merge(a_query(path), {})


@pytest.mark.parametrize(
    "change",
    [
        {"describedObject": None},
        {"describedObject": {"kind": "Pod", "name": "web", "namespace": "bank"}},
        {"describedObject": {"kind": 1, "name": "web"}},
        {"describedObject": {"kind": "Pod"}},
        {"describedObject": {"kind": "Pod", "name": ""}},
        {"describedObject": {"kind": "Pod", "name": "x" * 254}},
        {"metric": {"name": "other"}},
        {"metric": {"name": "hits", "selector": {"matchLabels": {"a": 1}}}},
        {"metric": {"name": "hits", "selector": {"matchExpressions": [1]}}},
        {"metric": {"name": "hits", "selector": 1}},
        {"value": "many"},
        {"value": None},
        {"value": True},
        {"value": "9e60"},
        {"value": "1" * 500},
        {"timestamp": "today"},
        {"timestamp": "0001-01-01T00:00:00+23:00"},
        {"timestamp": None},
        {"windowSeconds": -1},
        {"windowSeconds": "60"},
        {"windowSeconds": 2**63},
    ],
    ids=str,
)
def test_a_malformed_value_refuses_the_answer_of_its_cluster(change: dict[str, Any]) -> None:
    query = a_query("namespaces/shop/pods/*/hits")
    with pytest.raises(ClusterError, match="cluster east answered with a malformed metric: ") as caught:
        from_answer("east", query, "*", {"items": [an_item(), an_item(**change)]})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("timestamp", ["", "today"])
def test_a_value_without_a_time_says_what_is_missing(timestamp: str) -> None:
    query = a_query("namespaces/shop/pods/*/hits")
    with pytest.raises(ClusterError, match="timestamp"):
        from_answer("east", query, "*", {"items": [an_item(timestamp=timestamp)]})


@pytest.mark.parametrize("answer", [{}, {"items": None}, {"items": {}}, {"items": [1]}, {"items": [None]}], ids=str)
def test_an_answer_that_is_no_list_of_values_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(ClusterError):
        from_answer("east", a_query("namespaces/shop/pods/*/hits"), "*", answer)


@pytest.mark.parametrize("items", [[], [an_item(), an_item()], [an_item("other")]], ids=["none", "two", "other"])
def test_one_object_needs_one_value_of_it(items: list[dict[str, Any]]) -> None:
    with pytest.raises(ClusterError, match="without the one value of web"):
        from_answer("east", a_query("namespaces/shop/services/web/hits"), "web", {"items": items})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["describedObject", "metric", "timestamp", "value", "windowSeconds"]), JSON))
def test_no_answer_raises_anything_but_a_cluster_error(changes: dict[str, Any]) -> None:
    query = a_query("namespaces/shop/pods/*/hits")
    try:
        [value] = from_answer("east", query, "*", {"items": [an_item(**changes)]})
    except ClusterError:
        return
    assert merge(query, {"east": [value]})["items"][0]["describedObject"]["name"].startswith("east-")


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=8))
def test_an_average_lies_between_the_values_and_does_not_depend_on_the_order(amounts: list[int]) -> None:
    def average(values: list[int]) -> str:
        members = {f"c{number}": [an_item(value=f"{value}m")] for number, value in enumerate(values)}
        [item] = merged("namespaces/shop/services/web/hits", members)
        return str(item["value"])

    query = a_query("namespaces/shop/services/web/hits")
    [value] = from_answer("a", query, "web", {"items": [an_item(value=average(amounts))]})
    assert min(amounts) <= value.amount.milli <= max(amounts)
    assert average(sorted(amounts)) == average(amounts)
