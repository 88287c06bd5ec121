"""Custom and external metrics of autoscalers, from metrics APIs over HTTP."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import Resource
from federation.client.client import Client
from federation.client.http import HTTPTransport
from federation.features.autoscaling.custommetrics import CustomMetrics
from federation.planning.autoscaling.measurements import PodValues, Totals, Unmeasured, Values
from federation.planning.autoscaling.podmetrics import Sample

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"
INGRESSES = Resource("networking.k8s.io", "v1", "Ingress", "ingresses", namespaced=True)
HITS = {"name": "hits", "selector": {"matchLabels": {"verb": "GET"}}}
Answers = dict[str, Any]
"""The items of the answer to each path, or a status code."""


@contextmanager
def metrics_api(answers: Answers) -> Iterator[tuple[Client, list[tuple[str, dict[str, str]]]]]:
    """Serve the answers until the block ends; yield a client and the received paths and queries."""
    received: list[tuple[str, dict[str, str]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            received.append((parts.path, dict(parse_qsl(parts.query))))
            answer = answers.get(parts.path, 404)
            status, body = (answer, {}) if isinstance(answer, int) else (200, {"kind": "List", "items": answer})
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  # the handler's signature
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Client(HTTPTransport(Connection(f"http://127.0.0.1:{server.server_port}"))), received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def a_sample(name: str) -> Sample:
    return Sample({"metadata": {"name": name}})


async def measured(
    clusters: dict[str, Client | None], metric: dict[str, Any], pods: dict[str, list[Sample]] | None = None
) -> tuple[Values | None, list[str]]:
    """Measure a metric in clusters; one without a client is not ready."""
    kinds = {("networking.k8s.io", "Ingress"): INGRESSES}
    custom = CustomMetrics(clusters.get, lambda *kind: kinds.get(kind), "shop", "app=web")
    try:
        values = await custom.measure(metric, pods or {cluster: [] for cluster in clusters})
    finally:
        for client in clusters.values():
            if client is not None:
                await client.close()
    return values, custom.problems


def a_value(value: str, name: str = "") -> dict[str, Any]:
    return {"describedObject": {"kind": "Pod", "name": name}, "metric": {"name": "hits"}, "value": value}


async def test_metrics_of_pods_come_from_every_cluster_with_pods() -> None:
    path = f"{CUSTOM}/pods/*/hits"
    with (
        metrics_api({path: [a_value("1500m", "web-0"), a_value("2", "other")]}) as (one, seen),
        metrics_api({}) as (two, _),
    ):
        pods = {"one": [a_sample("web-0"), a_sample("web-1")], "two": [a_sample("web-0")], "empty": []}
        values, problems = await measured(
            {"one": one, "two": two, "empty": None}, {"type": "Pods", "pods": {"metric": HITS}}, pods
        )
    assert values == PodValues([1500, None, None]), "pods of one name in two clusters are two pods"
    assert seen == [(path, {"labelSelector": "app=web", "metricLabelSelector": "verb=GET"})]
    assert len(problems) == 1
    assert problems[0].startswith("cluster two has no such metric")


@pytest.mark.parametrize(
    ("described", "path"),
    [
        (
            {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"},
            "ingresses.networking.k8s.io/main/hits",
        ),
        ({"kind": "Namespace", "name": "shop"}, "metrics/hits"),
    ],
)
async def test_a_metric_of_an_object_is_read_in_each_cluster_that_has_it(described: dict[str, str], path: str) -> None:
    with metrics_api({f"{CUSTOM}/{path}": [a_value("3")]}) as (one, _), metrics_api({}) as (two, _):
        values, problems = await measured(
            {"one": one, "two": two, "down": None},
            {"type": "Object", "object": {"metric": HITS, "describedObject": described}},
        )
    assert values == Totals([3000])
    assert len(problems) == 1


async def test_an_external_metric_is_read_where_it_is_answered_first() -> None:
    with metrics_api({}) as (one, _), metrics_api({f"{EXTERNAL}/hits": [a_value("1"), a_value("500m")]}) as (two, seen):
        values, problems = await measured({"one": one, "two": two}, {"type": "External", "external": {"metric": HITS}})
    assert values == Totals([1000, 500])
    assert seen == [(f"{EXTERNAL}/hits", {"labelSelector": "verb=GET"})]
    assert len(problems) == 1


@pytest.mark.parametrize(
    "metric",
    [
        {
            "type": "Object",
            "object": {"metric": HITS, "describedObject": {"apiVersion": "v1", "kind": "Unknown", "name": "x"}},
        },
        {"type": "Object", "object": {"metric": HITS, "describedObject": {"kind": "Namespace"}}},
        {"type": "External", "external": {"metric": HITS}},
    ],
)
async def test_what_no_cluster_answers_is_not_measured(metric: dict[str, Any]) -> None:
    with metrics_api({}) as (one, _):
        values, _ = await measured({"one": one, "down": None}, metric)
    assert isinstance(values, Unmeasured)


@pytest.mark.parametrize("answer", [[a_value("many")], [{}], ["text"], 500, 403])
async def test_a_malformed_answer_is_a_problem_of_its_cluster(answer: Any) -> None:
    with metrics_api({f"{CUSTOM}/metrics/hits": answer, f"{CUSTOM}/pods/*/hits": answer}) as (one, _):
        described = {"kind": "Namespace"}
        values, problems = await measured(
            {"one": one}, {"type": "Object", "object": {"metric": HITS, "describedObject": described}}
        )
    assert isinstance(values, Unmeasured)
    assert problems
    assert problems[0].startswith("cluster one has no such metric")


async def test_metrics_of_resources_are_not_requested_here() -> None:
    assert await measured({}, {"type": "Resource"}) == (None, [])
