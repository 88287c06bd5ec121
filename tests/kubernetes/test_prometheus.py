"""Objectives of rollouts, measured by a real Prometheus that scrapes counters of pods."""

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.kubernetes.build import CannotBuild, build_prometheus
from tests.support.ports import lasting_port

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.webhookclient import WebhookClient
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.rules.objectivegate import Judged, ObjectivesDue
from federation.features.waves.rules.objectives import Verdict
from federation.features.waves.rules.promql import Workload
from federation.planning.waves.metricsources import MetricSource, Template
from federation.planning.waves.waverules import Comparison, Objective
from federation.runtime.controller import Key

pytestmark = [pytest.mark.nightly, pytest.mark.real_time]

PODS = {
    "east": "web-7d9f8c6b5d-xk2lz",
    "north": "web-7d9f8c6b5d-bb2lz",
}
CONFIGURATION = """
global: {{scrape_interval: 1s}}
scrape_configs:
- job_name: pods
  honor_labels: true
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""
ONLY_WAITING = frozenset({Comparison.WAITING})
KEY, WEB = Key("shop", "web"), Workload("Deployment", "shop", "web")


class Pods(BaseHTTPRequestHandler):
    """The counters of one pod in each cluster, 10,000 requests a second, of which 3 % fail in east and 1 % in north.

    Another namespace and another workload fail always.
    """

    began = time.monotonic()

    def do_GET(self) -> None:
        seconds = time.monotonic() - self.began
        lines = []
        for cluster, share in (("east", 0.03), ("north", 0.01)):
            for namespace, pod, bad in (
                ("shop", PODS[cluster], share),
                ("bank", PODS[cluster], 1.0),
                ("shop", "web-api-7d9f8c6b5d-xk2lz", 1.0),
            ):
                labels = f'cluster="{cluster}",namespace="{namespace}",pod="{pod}"'
                lines += [
                    f'http_requests_total{{{labels},code="200"}} {10_000 * seconds * (1 - bad):.0f}',
                    f'http_requests_total{{{labels},code="503"}} {10_000 * seconds * bad:.0f}',
                    f'took_seconds_bucket{{{labels},le="0.5"}} {10_000 * seconds * (1 - bad):.0f}',
                    f'took_seconds_bucket{{{labels},le="1.0"}} {10_000 * seconds:.0f}',
                    f"took_seconds_count{{{labels}}} {10_000 * seconds:.0f}",
                ]
        body = ("\n".join(lines) + "\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def scraping(folder: Path) -> Iterator[str]:
    """Run a real Prometheus that scrapes the pods every second, and yield its address."""
    try:
        program = build_prometheus()
    except CannotBuild as problem:
        pytest.skip(str(problem))
    pods = ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    threading.Thread(target=pods.serve_forever, daemon=True).start()
    port, configuration = lasting_port(), folder / "prometheus.yaml"
    configuration.write_text(CONFIGURATION.format(port=pods.server_port))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                str(program),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
            env={**os.environ, "GOMAXPROCS": "1"},
        )
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)
            pods.shutdown()
            pods.server_close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with scraping(tmp_path_factory.mktemp("prometheus")) as address:
        yield address


@pytest.fixture
async def gate(address: str) -> AsyncIterator[MetricsGate]:
    source = MetricSource(
        address,
        scrape_seconds=1,
        templates={
            "errors": Template(
                "sum by (cluster) (increase(http_requests_total{$selector}[$window]))",
                'sum by (cluster) (increase(http_requests_total{$selector,code="503"}[$window]))',
            )
        },
    )
    client = WebhookClient()
    yield MetricsGate(client, {"main": source}, SystemClock())
    await client.close()


def due(since: datetime, objective: Objective, *, new: str, waiting: str) -> ObjectivesDue:
    return ObjectivesDue("canary", (objective,), since, since, 10, (new,), (waiting,))


async def until_measured(gate: MetricsGate, objective: Objective, *, new: str, waiting: str) -> Judged:
    """Return the first judgement with data; asked again each second, within a minute and a half."""
    since = SystemClock().now()
    async with asyncio.timeout(90):
        while True:
            judged = await gate.judge(KEY, [WEB], due(since, objective, new=new, waiting=waiting))
            if judged.judgement.verdict is not Verdict.NO_DATA:
                return judged
            gate.forget(KEY)
            await asyncio.sleep(1)


OBJECTIVES = {
    "errors": Objective(
        "errors", "main", "http_requests_total", bad={"code": "5.."}, compare_with=ONLY_WAITING, samples_min=20_000
    ),
    "latency": Objective(
        "slow", "main", "took_seconds", seconds_max="0.5", compare_with=ONLY_WAITING, samples_min=20_000
    ),
    "template": Objective("errors", "main", template="errors", compare_with=ONLY_WAITING, samples_min=20_000),
}


@pytest.mark.parametrize("kind", OBJECTIVES)
async def test_real_prometheus_counts_only_the_pods_of_the_workload(gate: MetricsGate, kind: str) -> None:
    worse = await until_measured(gate, OBJECTIVES[kind], new="east", waiting="north")
    assert worse.judgement.verdict is Verdict.FAILS, worse
    assert " 3.0" in worse.judgement.text or " 2.9" in worse.judgement.text, worse
    better = await until_measured(gate, OBJECTIVES[kind], new="north", waiting="east")
    assert better.judgement.verdict is Verdict.HOLDS, better


async def test_a_boundary_that_no_bucket_has_is_no_data(gate: MetricsGate) -> None:
    objective = Objective("slow", "main", "took_seconds", seconds_max="0.3", compare_with=ONLY_WAITING)
    known = OBJECTIVES["latency"]
    await until_measured(gate, known, new="east", waiting="north")
    since = SystemClock().now()
    await asyncio.sleep(4)
    judged = await gate.judge(KEY, [WEB], due(since, objective, new="east", waiting="north"))
    assert (judged.judgement.verdict, judged.judgement.text) == (Verdict.NO_DATA, "slow: 0 of at least 500 samples")


async def test_a_pattern_that_prometheus_refuses_says_so(gate: MetricsGate) -> None:
    objective = Objective("errors", "main", "m", bad={"code": "(?<=a)b"}, compare_with=ONLY_WAITING)
    since = SystemClock().now()
    await asyncio.sleep(3)
    judged = await gate.judge(KEY, [WEB], due(since, objective, new="east", waiting="north"))
    assert judged.judgement.verdict is Verdict.NO_DATA
    assert "the query is refused" in judged.judgement.text
