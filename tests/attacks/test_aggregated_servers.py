"""An aggregated API server that hangs or floods affects its own API group only."""

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.aggregated import AggregatedServer, aggregated_server
from tests.support.apiserver import Parts, api_server
from tests.support.rest import Api, Refused, eventually, refused

from federation.client.kubeconfig import load_kubeconfig

GROUP, NAMESPACE = "things.example.com", "tenant"
LIST = f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/things"
REQUESTS_MAX = 100
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("host")) as parts:
        yield parts


@pytest.fixture(scope="module")
def api(parts: Parts) -> Iterator[Api]:
    api = Api(load_kubeconfig(parts.kubeconfig), NAMESPACE)
    api.create("namespaces", {"metadata": {"name": NAMESPACE}})
    yield api
    api.close()


@pytest.fixture
def served(api: Api, parts: Parts, tmp_path: Path) -> Iterator[AggregatedServer]:
    """An available server."""
    ca = parts.pki.front_proxy.ca_certificate.read_text()
    with aggregated_server(tmp_path, group=GROUP, namespace=NAMESPACE, client_ca=ca) as served:
        name = served.register(api)
        eventually(lambda: (api.get("apiservices", name).get("status") or {}).get("conditions"))
        eventually(lambda: is_served(api))
        yield served
        api.delete("apiservices", name)
        api.delete("services", "aggregated")
        eventually(lambda: not is_served(api))


def is_served(api: Api) -> bool:
    try:
        return api.send("GET", LIST).status_code == 200
    except Refused:
        return False


def check_again(api: Api, label: str) -> None:
    """Make the control plane probe now."""
    api.patch("services", "aggregated", {"metadata": {"labels": {"checked": label}}})


def available(api: Api) -> tuple[str, str]:
    condition = api.get("apiservices", f"v1.{GROUP}")["status"]["conditions"][0]
    return condition["reason"], condition["message"]


async def test_requests_to_a_server_that_hangs_are_limited(api: Api, served: AggregatedServer) -> None:
    served.is_hanging.set()
    connection = api.connection
    limits = httpx.Limits(max_connections=None)
    context = connection.to_tls()
    assert context is not None
    before = len(served.received)
    async with httpx.AsyncClient(
        base_url=connection.server, verify=context, timeout=90, limits=limits, trust_env=False
    ) as client:
        sent = [client.get(LIST, params={"timeout": "60s"}) for _ in range(REQUESTS_MAX + 10)]
        tasks = [asyncio.ensure_future(request) for request in sent]
        answer = await client.get("/api/v1/namespaces")
        assert answer.status_code == 200
        refused = [(await each).status_code for each in itertools.islice(asyncio.as_completed(tasks), 10)]
        assert refused == [429] * 10
        async with asyncio.timeout(60):
            while len(served.received) < before + REQUESTS_MAX:  # noqa: ASYNC110  # it is in another thread
                await asyncio.sleep(0.01)
        assert sum(task.done() for task in tasks) == 10
        served.is_hanging.clear()
        served.released.set()
        codes = Counter(answer.status_code for answer in await asyncio.gather(*tasks))
        assert codes == {200: REQUESTS_MAX, 429: 10}
    # The seats are free again.
    assert eventually(lambda: is_served(api))


def test_a_request_to_a_server_that_hangs_has_its_time(api: Api, served: AggregatedServer) -> None:
    served.is_hanging.set()
    with refused(504):
        api.send("GET", LIST, timeout="1s")


def test_a_flood_of_discovery_is_cut_off(api: Api, served: AggregatedServer) -> None:
    served.is_flooding = True
    check_again(api, "flood")
    eventually(lambda: available(api)[0] == "FailedDiscoveryCheck")
    assert "the answer is larger than" in available(api)[1]
    assert served.sent_bytes < 64 * MIB
    assert api.send("GET", "/readyz", accept="*/*").text == "ok"
    served.is_flooding = False
    check_again(api, "calm")
    eventually(lambda: available(api)[0] == "Passed")


def test_a_flood_waits_for_a_client_that_does_not_read(api: Api, served: AggregatedServer) -> None:
    served.is_flooding = True
    with api.http.stream("GET", LIST) as stream:
        pieces = stream.iter_raw()  # closed with the last reference to it
        next(pieces)
        settled = 0

        def has_settled() -> bool:
            nonlocal settled
            before, settled = settled, served.sent_bytes
            threading.Event().wait(0.3)
            return before == served.sent_bytes > 0

        eventually(has_settled)
        # What the sockets of three programs hold, and little more.
        assert served.sent_bytes < 64 * MIB
    served.is_flooding = False


def test_a_flood_ends_with_its_client(api: Api, served: AggregatedServer) -> None:
    served.is_flooding = True
    with api.http.stream("GET", LIST) as stream:
        pieces = stream.iter_raw()
        next(pieces)
        served.is_flooding = False
    eventually(lambda: served.floods == 0)
    assert served.sent_bytes < 64 * MIB


def test_a_request_ends_with_its_client(api: Api, served: AggregatedServer, parts: Parts) -> None:
    with api.http.stream("GET", LIST, params={"watch": "1"}) as stream:
        lines = stream.iter_lines()
        next(lines)
        assert parts.run(watches(parts)) == 1
    eventually(lambda: parts.run(watches(parts)) == 0)


async def watches(parts: Parts) -> int:
    return parts.app._flow_control.watches  # the count of open watches has no other reader
