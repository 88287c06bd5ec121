"""Three instances of the WorkloadSpread service behind one address, and 50 pods that are created at once over HTTPS."""

import asyncio
import base64
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from federation.api import names
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import JOBS, MUTATING_WEBHOOKS, PODS, Object
from federation.apiserver.auth.pki import Authority, TLSFiles
from federation.apiserver.http.serving import serve
from federation.client.client import PatchType
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.features.workloadspread.incluster import configurations, webhook
from federation.features.workloadspread.incluster.reviews import ReviewOptions
from federation.features.workloadspread.incluster.service import SpreadService
from federation.features.workloadspread.rules.ledger import parse_match
from tests.support.federation import free_clusters

pytestmark = [pytest.mark.e2e, pytest.mark.slow("three services and 50 pods")]

CREATIONS, INSTANCES = 50, 3
TIMEOUT_S = 30
"""On a busy machine the reviews of all pods take longer than the 2 s after which a pod is admitted without a subset."""
PATIENT = ReviewOptions(deadline_s=TIMEOUT_S - 1)
POD_SPEC = {
    "containers": [{"name": "main", "image": "app:1"}],
    "restartPolicy": "Never",
    "nodeSelector": {"example.com/exists": "no"},
}
"""Pods that no node takes: a pod of a Job that ends frees the place of its subset, and on a busy machine the first pods
would end before the last ones are created.
"""


@asynccontextmanager
async def instances(kubeconfig: Path, directory: Path) -> AsyncIterator[tuple[list[SpreadService], Counter[int]]]:
    """Run the services behind a listener that gives each request to the next one; yield them and their requests."""
    requests: Counter[int] = Counter()
    authority = Authority.ensure(directory, now=datetime.now(UTC), common_name="workloadspread")
    tls = TLSFiles(directory / "server.crt", directory / "server.key")
    authority.issue_server(tls.certificate, tls.key, names=["127.0.0.1"], now=datetime.now(UTC))
    async with AsyncExitStack() as stack:
        clients = [HTTPClient(load_kubeconfig(kubeconfig)) for _ in range(INSTANCES)]
        for client in clients:
            stack.push_async_callback(client.close)
        await configurations.install_definitions(clients[0])
        services = [
            SpreadService(client, clock=SystemClock(), cluster=f"instance-{number}", options=PATIENT)
            for number, client in enumerate(clients)
        ]
        apps = [webhook.to_app(service.reviews, configurations.PATHS) for service in services]
        turns = itertools.cycle(range(INSTANCES))

        async def balance(scope: Any, receive: Any, send: Any) -> None:
            turn = next(turns)
            requests[turn] += scope["type"] == "http"
            await apps[turn](scope, receive, send)

        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def started(host: str, port: int) -> None:
            listening.set_result(f"https://{host}:{port}")

        tasks = [asyncio.create_task(service.run()) for service in services]
        tasks.append(asyncio.create_task(serve(balance, host="127.0.0.1", port=0, tls=tls, on_started=started)))
        stack.push_async_callback(asyncio.gather, *tasks, return_exceptions=True)
        for task in tasks:
            stack.callback(task.cancel)
        bundle = base64.b64encode(authority.certificate_path.read_bytes()).decode()
        url = await listening
        async with asyncio.timeout(60):
            for service in services:
                await service.wait_synced()
        await configurations.install_webhooks(clients[0], lambda path: {"url": url + path, "caBundle": bundle})
        waits = [{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": TIMEOUT_S}]
        await clients[0].patch(MUTATING_WEBHOOKS, names.SPREAD_WEBHOOKS, waits, patch_type=PatchType.JSON)
        yield services, requests


def a_spread() -> Object:
    subsets = [{"name": "a", "maxReplicas": 7}, {"name": "b", "maxReplicas": 12}, {"name": "rest"}]
    spec = {"targetRef": {"apiVersion": "batch/v1", "kind": "Job", "name": "burst"}, "subsets": subsets}
    metadata = {"name": "burst", "namespace": "default"}
    return {
        "apiVersion": WORKLOAD_SPREADS.api_version,
        "kind": "WorkloadSpread",
        "metadata": metadata,
        "spec": spec,
    }


def a_job() -> Object:
    """Return a Job that the controllers of the cluster leave alone."""
    spec = {"parallelism": CREATIONS, "completions": CREATIONS, "managedBy": "example.com/none"}
    metadata = {"name": "burst", "namespace": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**spec, "template": {"spec": POD_SPEC}},
    }


@pytest.mark.real_time
async def test_three_instances_share_the_limits_and_refuse_no_pod(tmp_path: Path) -> None:
    with free_clusters(tmp_path / "clusters", 1) as (kubeconfig,):
        async with AsyncExitStack() as stack:
            client = HTTPClient(load_kubeconfig(kubeconfig))
            stack.push_async_callback(client.close)
            services, requests = await stack.enter_async_context(instances(kubeconfig, tmp_path))
            job = await client.create(JOBS, a_job())
            await client.create(WORKLOAD_SPREADS, a_spread())
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "burst", "uid": job["metadata"]["uid"]}
            metadata = {
                "generateName": "burst-",
                "namespace": "default",
                "ownerReferences": [{**owner, "controller": True}],
            }
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": POD_SPEC}
            await _wait_counted(client)
            await asyncio.gather(*map(_wait_known, services))
            before = requests.copy()
            created = await asyncio.gather(*(client.create(PODS, pod) for _ in range(CREATIONS)))
            matches = [parse_match(each) for each in created]
            assert Counter(match.subset for match in matches if match is not None) == {"a": 7, "b": 12, "rest": 31}
            assert min((requests - before)[turn] for turn in range(INSTANCES)) >= CREATIONS // INSTANCES


async def _wait_counted(client: HTTPClient) -> None:
    """Wait until a controller has written the status."""
    async with asyncio.timeout(90):
        while not (await client.get(WORKLOAD_SPREADS, "burst", "default")).get("status"):  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.05)


async def _wait_known(service: SpreadService) -> None:
    """Wait until the watch of an instance has the WorkloadSpread: then it refuses another one for the same target."""
    second = a_spread()
    second["metadata"] = {**second["metadata"], "name": "second"}
    request = {"uid": "u", "operation": "CREATE", "namespace": "default", "name": "second", "object": second}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    async with asyncio.timeout(90):
        while (await service.reviews.answer(configurations.WRITE_SPREAD, review))["response"]["allowed"]:  # noqa: ASYNC110  # no event
            await asyncio.sleep(0.05)
