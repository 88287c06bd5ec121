"""The queries of objectives, and hostile or malformed answers."""

import json
import re

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.features.waves.rules.objectives import Counts
from federation.features.waves.rules.promql import (
    Queries,
    Workload,
    build_queries,
    parse_vector,
    problem_of,
    to_counts,
)
from federation.planning.waves.metricsources import MetricSource, Template, parse_sources
from federation.planning.waves.waverules import Objective

SOURCE = MetricSource(
    "https://prometheus", templates={"jobs": Template("t($selector)[$window]", "b($selector)[$window]")}
)
WEB = Workload("Deployment", "shop", "web")
PODS = '"web-[bcdfghjklmnpqrstvwxz2456789]{1,10}-[bcdfghjklmnpqrstvwxz2456789]{5}"'


def test_a_counter_is_counted_per_cluster_with_and_without_its_bad_labels() -> None:
    objective = Objective("e", "main", "http_requests_total", {"path": "/a|/b"}, {"code": '5.."'})
    every = f'namespace="shop",pod=~{PODS},path=~"/a|/b"'
    assert build_queries(objective, SOURCE, [WEB], 60) == Queries(
        f"sum by (cluster) (increase(http_requests_total{{{every}}}[60s]))",
        f'sum by (cluster) (increase(http_requests_total{{{every},code=~"5..\\""}}[60s]))',
    )


def test_a_histogram_is_counted_up_to_a_boundary() -> None:
    queries = build_queries(Objective("e", "main", "took_seconds", seconds_max="0.50"), SOURCE, [WEB], 60)
    assert queries.is_part_good
    assert queries.total.startswith("sum by (cluster) (increase(took_seconds_count{")
    assert queries.part.startswith("sum by (cluster) (increase(took_seconds_bucket{")
    assert queries.part.endswith(r',le=~"0\\.50*"}[60s]))')
    whole = build_queries(Objective("e", "main", "took_seconds", seconds_max="2"), SOURCE, [WEB], 60)
    assert whole.part.endswith(r',le=~"2(\\.0+)?"}[60s]))')


def test_a_template_gets_the_matchers_and_the_window() -> None:
    own = f'namespace="shop",pod=~{PODS}'
    queries = build_queries(Objective("e", "main", template="jobs"), SOURCE, [WEB], 90)
    assert queries == Queries(f"t({own})[90s]", f"b({own})[90s]")
    with pytest.raises(ValueError, match="no template other"):
        build_queries(Objective("e", "main", template="other"), SOURCE, [WEB], 90)


@pytest.mark.parametrize(
    ("kind", "name", "own", "foreign"),
    [
        ("Deployment", "web", "web-7d9f8c6b5d-xk2lz", "web-cache-7d9f8c6b5d-xk2lz"),
        ("Deployment", "web", "web-5d9c-x2x4z", "web-0"),
        ("StatefulSet", "db", "db-12", "db-backup-0"),
        ("DaemonSet", "log", "log-x2x4z", "log-a-x2x4z"),
        ("Deployment", "a.b", "a.b-5d9c-x2x4z", "axb-5d9c-x2x4z"),
        ("Deployment", "l" * 60, "l" * 57 + "-x2x4z", "k" * 57 + "-x2x4z"),
    ],
)
def test_pods_of_other_workloads_are_not_counted(kind: str, name: str, own: str, foreign: str) -> None:
    query = build_queries(Objective("e", "main", "m"), SOURCE, [Workload(kind, "shop", name)], 60).total
    found = re.search(r'pod=~("(?:[^"\\]|\\.)*")', query)
    assert found is not None
    pattern = json.loads(found[1])
    assert re.fullmatch(pattern, own)
    assert not re.fullmatch(pattern, foreign)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"[" * 5000,
        b'{"status":"error"}',
        b'{"status":"success","data":{"resultType":"matrix","result":[]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{"cluster":"a"}}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":[],"value":[1,"2"]}]}}',
    ],
)
def test_another_answer_is_no_data(body: bytes) -> None:
    with pytest.raises(ValueError, match="the answer is no vector of values"):
        parse_vector(body, "cluster")


def answer(*pairs: tuple[str, str]) -> bytes:
    result = [{"metric": {"cluster": name}, "value": [1, value]} for name, value in pairs]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1"])
def test_a_value_that_is_no_count_is_no_answer(value: str) -> None:
    with pytest.raises(ValueError, match=r"the value of cluster b is \S+, which is no count"):
        parse_vector(answer(("a", "12.5"), ("b", value)), "cluster")


def test_several_values_for_one_cluster_are_no_answer() -> None:
    assert parse_vector(answer(("a", "12.5"), ("b", "0")), "cluster") == {"a": 12.5, "b": 0.0}
    with pytest.raises(ValueError, match="several values for one cluster"):
        parse_vector(answer(("a", "1"), ("a", "2")), "cluster")


def test_only_a_problem_of_the_query_is_repeated_to_users() -> None:
    assert problem_of(400, b'{"errorType":"bad_data","error":"parse error"}') == "the query is refused: parse error"
    text = "the metrics source answers with HTTP status 503"
    assert problem_of(503, b'{"errorType":"internal","error":"db-7 is down"}') == text
    assert problem_of(503, b"<html>") == text


def test_bad_counts_come_from_bad_or_from_good_samples() -> None:
    bad, good = Queries("t", "p"), Queries("t", "p", is_part_good=True)
    assert to_counts(bad, {"a": 100, "b": 50}, {"a": 101}) == {"a": Counts(100, 100), "b": Counts(0, 50)}
    # A boundary that no bucket has would count every request as slow.
    assert to_counts(good, {"a": 100, "b": 50}, {"a": 90}) == {"a": Counts(10, 100)}


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"url": "file:///etc"}, r"sources\.main\.url must be http"),
        ({"url": "https://p?x=1"}, r"sources\.main\.url must be http"),
        ({"url": "https://p", "clusterLabel": 'a"'}, r"sources\.main\.clusterLabel must be a label's name"),
        ({"url": "https://p", "scrapeSeconds": 0}, r"scrapeSeconds must be between 1 and 3600"),
        ({"url": "https://p", "token": "x"}, r"unknown field `token`"),
        (
            {"url": "https://p", "templates": {"t": {"total": "x", "bad": "y"}}},
            r"templates\.t\.total must contain \$sel",
        ),
    ],
)
def test_a_wrong_source_names_its_field(source: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        parse_sources({"sources": {"main": source}}, setting="metric-sources-file f")
