"""The web UI beside an existing host: every request reaches the host with the user's token, and nothing else does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.support.apiserver import Parts
from tests.unit.hosting.test_endpoint import client, endpoint, host  # noqa: F401  # fixtures

from federation.api import names
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import BadRequest, ConfigurationError, ServiceUnavailable, Unauthorized
from federation.apimachinery.resources import CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS, Object
from federation.apiserver.auth.clientcertificates import Peer
from federation.client.http import HTTPClient
from federation.controllers.cluster.memberaccount import request_token
from federation.features.catalogue import decision_chain
from federation.hosting.access import HostAccess
from federation.hosting.endpoint import Endpoint
from federation.hosting.userinterface import UserInterface, without_identity
from federation.plans.planner import Planners
from federation.scheduling.framework.registry import load_plugins
from federation.web.ui import uiapp
from federation.web.ui.credentials import Credentials
from federation.web.ui.userapi import UserAPI

pytestmark = pytest.mark.xdist_group("hosting")
ROLE = "/ui/act/labels/rbac.authorization.k8s.io/v1/clusterroles/-/view"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def interface(client: HTTPClient, endpoint: Any, host: Connection) -> UserInterface:  # noqa: F811
    clock = SystemClock()
    planners = Planners(load_plugins(), decision_chain(), None, clock)
    mount = uiapp.mount(lambda: b"key", clock, planners)
    return UserInterface(mount, endpoint, host, HostAccess(client, clock), clock)


@pytest.fixture
async def ui(client: HTTPClient, endpoint: Endpoint) -> AsyncIterator[UserInterface]:  # noqa: F811
    found = interface(client, endpoint, without_identity(client.connection))
    yield found
    await found.close()


def browser(ui: UserInterface) -> httpx.AsyncClient:
    origin = {"Origin": "https://a", "Sec-Fetch-Site": "same-origin"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(ui), base_url="https://a", headers=origin)


async def token_of(client: HTTPClient, name: str, role: str) -> str:  # noqa: F811
    """Return the token of a new ServiceAccount with a ClusterRole, "" for none."""
    where = {"name": name, "namespace": names.SYSTEM_NAMESPACE}
    account: Object = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where}
    await client.raw("POST", "/api/v1/namespaces", body={"metadata": {"name": names.SYSTEM_NAMESPACE}})
    await client.create(SERVICE_ACCOUNTS, account)
    if role:
        await client.create(
            CLUSTER_ROLE_BINDINGS,
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", **where}],
            },
        )
    return await request_token(client, name)


async def test_a_user_logs_in_with_a_token_and_sees_what_he_may(client: HTTPClient, ui: UserInterface) -> None:  # noqa: F811
    for name, role, status in (("boss", "cluster-admin", 200), ("eve", "", 403)):
        token = await token_of(client, name, role)
        async with browser(ui) as http:
            assert (await http.get(ROLE)).headers["location"].startswith("/ui/login")
            entered = await http.post("/ui/login", data={"token": token, "next": ROLE})
            assert (entered.status_code, entered.headers["location"]) == (303, ROLE)
            assert (await http.get(ROLE)).status_code == status


async def test_a_token_that_the_host_does_not_accept_is_no_log_in(ui: UserInterface) -> None:
    async with browser(ui) as http:
        refused = await http.post("/ui/login", data={"token": "wrong", "next": "/ui/fleet"})
        assert refused.status_code == 401
        assert "set-cookie" not in refused.headers
        foreign = {"Origin": "https://b", "Sec-Fetch-Site": "cross-site"}
        assert (await http.post("/ui/login", data={"token": "wrong"}, headers=foreign)).status_code == 403


async def test_nothing_but_the_pages_is_served(ui: UserInterface) -> None:
    async with browser(ui) as http:
        assert (await http.get("/")).headers["location"] == "/ui"
        for path in ("/metrics", "/healthz", "/api", "/federation/v1/objects", "/validate", "/uix"):
            assert (await http.get(path)).status_code == 404, path


@asynccontextmanager
async def a_recorder(answer: bytes = ANSWER) -> AsyncIterator[tuple[Connection, list[bytes]]]:
    """Serve as a host that records what it is asked."""
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/k8s/", token="ours"), heads


def as_user(ui: UserInterface, credentials: Credentials) -> UserAPI:
    outer = {"type": "http", "scheme": "https", "headers": [(b"cookie", b"a=b"), (b"x-remote-user", b"root")]}
    return UserAPI(ui.serve_user, credentials, outer)


async def test_the_host_gets_the_users_token_and_no_other_credential(client: HTTPClient) -> None:  # noqa: F811
    async with a_recorder() as (connection, heads):
        ui = interface(client, None, without_identity(connection))
        assert await as_user(ui, Credentials("secret")).get("/api/v1/pods", limit="1") == {}
        await ui.close()
    (head,) = heads
    lines = head.decode().split("\r\n")
    assert lines[0] == "GET /k8s/api/v1/pods?limit=1 HTTP/1.1"
    assert {line.partition(":")[0].lower() for line in lines[1:] if line} <= {
        "host", "accept", "content-type", "authorization", "connection",
    }  # fmt: skip
    assert "authorization: Bearer secret" in lines
    assert b"ours" not in head


@pytest.mark.parametrize("credentials", [Credentials(), Credentials(peer=Peer("root", ("system:masters",)))])
async def test_without_a_token_nothing_reaches_the_host(client: HTTPClient, credentials: Credentials) -> None:  # noqa: F811
    async with a_recorder() as (connection, heads):
        ui = interface(client, None, without_identity(connection))
        with pytest.raises(Unauthorized):
            await as_user(ui, credentials).get("/api/v1/pods")
        await ui.close()
    assert heads == []


@pytest.mark.parametrize("path", ["/api/v1/../../x", "/api//v1", "/api/./v1"])
async def test_a_path_that_the_host_could_read_otherwise_is_refused(client: HTTPClient, path: str) -> None:  # noqa: F811
    async with a_recorder() as (connection, heads):
        ui = interface(client, None, without_identity(connection))
        with pytest.raises(BadRequest):
            await as_user(ui, Credentials("secret")).get(path)
        await ui.close()
    assert heads == []


async def test_a_host_that_does_not_answer_is_said_to_be_away(client: HTTPClient) -> None:  # noqa: F811
    ui = interface(client, None, Connection("http://127.0.0.1:1"))
    with pytest.raises(ServiceUnavailable, match=r"cannot connect to 127\.0\.0\.1:1: Connection refused"):
        await as_user(ui, Credentials("secret")).get("/api")
    await ui.close()


def test_a_host_behind_a_proxy_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="ui-port"):
        without_identity(Connection("https://a", proxy_url="http://proxy:3128"))


def test_no_credential_is_left(host: Parts) -> None:  # noqa: F811
    del host
    secret = Connection("https://a", b"ca", b"cert", b"key", "token", "file", "user", "password", impersonate_user="x")
    assert without_identity(secret) == Connection("https://a", b"ca")
