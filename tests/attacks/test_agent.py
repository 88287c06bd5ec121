"""Stolen, replayed and forged credentials of agents, and what an agent may do with its own."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.tunnels import carrier_pair
from tests.unit.apiserver.conftest import connect, running

from federation.api import agents, names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import ManualClock, SystemClock, to_rfc3339
from federation.apimachinery.errors import (
    BadRequest,
    ClusterUnreachable,
    ConfigurationError,
    Conflict,
    Forbidden,
    Obstacle,
    Unauthorized,
)
from federation.apimachinery.resources import SECRETS, Object
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.auth.identity import User
from federation.apiserver.http.app import AppOptions
from federation.apiserver.http.nonresource import USER
from federation.apiserver.http.websockets import WEBSOCKET
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.client.registrationtoken import to_secret
from federation.tunnel.frames import Frame, FrameType, TunnelError, encode
from federation.tunnel.tunnel import CarrierClosed, Tunnel
from federation.tunnel.tunnels import Tunnels
from federation.web.agents import AgentEndpoint
from federation.web.registration import Registration

SECRET = "made-up-for-this-test"


class Host:
    """A registration over a registry in memory. Certificates are the names in them."""

    def __init__(self, registry: Registry) -> None:
        self.client = LocalClient(registry, user_agent="test")
        self.events: list[str] = []
        self.issued: list[tuple[str, tuple[str, ...]]] = []
        self.registration = Registration(self.client, self.certify, self, SystemClock())

    async def certify(self, request: bytes, user: str, groups: Sequence[str], validity: timedelta) -> bytes:
        if request != b"request" or validity <= timedelta(0):
            raise BadRequest("not a certificate signing request")
        self.issued.append((user, tuple(groups)))
        return b"certificate"

    def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        self.events.append(f"{obj['metadata']['name']} {type_} {reason} {message}")

    async def add_token(self, token_id: str = "abc", cluster: str = "paris", ttl_s: int = 60) -> None:
        expires = to_rfc3339(SystemClock().now() + timedelta(seconds=ttl_s))
        values = {"cluster": cluster, "hash": agents.hash_secret(SECRET), "expires": expires}
        await self.client.create(SECRETS, to_secret(token_id, {**values, "labels": '{"a": "b"}', "taints": "[]"}))

    async def register(self, token_id: str = "abc", secret: str = SECRET, **more: object) -> User:
        """Register, and return the user that the certificate names."""
        body = {"tokenID": token_id, "secret": secret, "certificateRequest": "request", "server": "https://10.0.0.1"}
        await self.registration.register({**body, **more})
        user, groups = self.issued[-1]
        return User(user, groups)


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    registry = Registry(MemoryStore(), clock=SystemClock(), options=HOST_REGISTRY)
    await registry.install_crds(crd_manifests())
    running = asyncio.ensure_future(registry.run())
    yield Host(registry)
    running.cancel()
    await asyncio.wait([running])


async def test_a_replayed_token_is_refused_and_reported(host: Host) -> None:
    await host.add_token()
    await host.register()
    with pytest.raises(Unauthorized, match="unknown, expired or used"):
        await host.register()
    assert host.events[-1].startswith("paris Warning AgentRefused registration token abc was refused: it was used at")


async def test_of_two_uses_at_once_one_succeeds(host: Host) -> None:
    await host.add_token()
    results = await asyncio.gather(*(host.register() for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(each, User) for each in results) == 1, results
    assert sum(isinstance(each, Unauthorized) for each in results) == 4, results


@pytest.mark.parametrize(("token_id", "secret"), [("abc", "wrong"), ("other", SECRET), ("../x", SECRET), ("", SECRET)])
async def test_a_forged_token_is_refused(host: Host, token_id: str, secret: str) -> None:
    await host.add_token()
    with pytest.raises((Unauthorized, BadRequest)):
        await host.register(token_id, secret)
    assert not host.issued


async def test_an_expired_token_is_refused(host: Host) -> None:
    await host.add_token(ttl_s=-1)
    with pytest.raises(Unauthorized):
        await host.register()


async def test_only_the_hash_of_a_token_is_stored(host: Host) -> None:
    await host.add_token()
    await host.register()
    stored = [str(each) for each in (await host.client.list(SECRETS)).items]
    assert stored
    assert not any(SECRET in each for each in stored)


async def test_another_secret_is_no_token(host: Host) -> None:
    secret = to_secret(
        "abc", {"cluster": "paris", "hash": agents.hash_secret(SECRET), "expires": "9999-01-01T00:00:00Z"}
    )
    await host.client.create(SECRETS, {**secret, "type": "Opaque"})
    with pytest.raises(Unauthorized):
        await host.register()


async def test_a_request_that_cannot_be_signed_does_not_use_up_the_token(host: Host) -> None:
    await host.add_token()
    with pytest.raises(BadRequest):
        await host.register(certificateRequest="nonsense")
    await host.register()


async def test_a_token_does_not_take_over_a_cluster_in_push_mode(host: Host) -> None:
    spec = {"apiEndpoint": "https://10.0.0.2", "secretRef": {"name": "paris-credentials"}}
    cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": {"name": "paris"}}
    await host.client.create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})
    await host.add_token()
    with pytest.raises(Conflict, match="push mode"):
        await host.register()


async def test_a_certificate_works_for_its_own_cluster_and_until_the_next_registration(host: Host) -> None:
    await host.add_token("first")
    await host.add_token("other", cluster="oslo")
    agent, other = await host.register("first"), await host.register("other")
    authenticate = host.registration.authenticate
    assert (await authenticate(agent, "paris", has_certificate=True))["metadata"]["name"] == "paris"
    for user, cluster, has_certificate in (
        (agent, "oslo", True),
        (other, "paris", True),
        (agent, "paris", False),
        (agent, "nowhere", True),
        (User("admin", ("system:masters",)), "paris", True),
    ):
        with pytest.raises(Forbidden):
            await authenticate(user, cluster, has_certificate=has_certificate)
    await host.add_token("second")
    await host.register("second")
    with pytest.raises(Forbidden):
        await authenticate(agent, "paris", has_certificate=True)
    assert "AgentRefused" in host.events[-1]


async def test_a_certificate_ends_with_its_cluster_even_if_another_one_gets_the_name(host: Host) -> None:
    await host.add_token("first")
    agent = await host.register("first")
    await host.client.delete(FEDERATED_CLUSTERS, "paris")
    await host.add_token("second")
    await host.register("second")
    with pytest.raises(Forbidden):
        await host.registration.authenticate(agent, "paris", has_certificate=True)


async def test_an_agent_that_opens_streams_loses_its_tunnel() -> None:
    ours, theirs = carrier_pair()
    tunnel = Tunnel(ours)
    await theirs.send(encode(Frame(FrameType.OPEN, 1)))
    with pytest.raises(TunnelError, match="only the host may"):
        await tunnel.run()


class _BreaksAtOpen:
    """A carrier whose other side has gone when the host opens a stream."""

    async def send(self, message: bytes) -> None:
        raise CarrierClosed(f"{len(message)} bytes are lost")

    async def receive(self) -> bytes:
        await asyncio.Event().wait()
        return b""


@pytest.fixture
def _no_garbage_collection() -> Iterator[None]:
    """What is only closed because it is garbage stays open."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_garbage_collection")
async def test_a_stream_that_cannot_be_opened_leaves_no_transport() -> None:
    tunnel, ready = Tunnel(_BreaksAtOpen()), asyncio.Event()
    carrying = asyncio.ensure_future(tunnel.run(ready.set))
    await ready.wait()
    before = _open_sockets()
    with pytest.raises(CarrierClosed):
        await tunnel.open()
    for _ in range(5):  # the loop closes it in a later turn
        await asyncio.sleep(0)
    assert _open_sockets() == before
    tunnel.close()
    await carrying


class _MisbehavesAtOpen:
    """A carrier whose other side sends nonsense while the host opens a stream, some turns of the loop earlier."""

    def __init__(self, turns: int) -> None:
        self._turns = turns
        self._is_asked = asyncio.Event()

    async def send(self, message: bytes) -> None:
        assert message
        self._is_asked.set()
        for _ in range(self._turns):
            await asyncio.sleep(0)

    async def receive(self) -> bytes:
        await self._is_asked.wait()
        return b"nonsense"


@pytest.mark.usefixtures("_no_garbage_collection")
@pytest.mark.parametrize("turns", range(6))
async def test_a_stream_whose_tunnel_ends_before_it_begins_is_closed(turns: int) -> None:
    tunnel, ready = Tunnel(_MisbehavesAtOpen(turns)), asyncio.Event()
    carrying = asyncio.ensure_future(tunnel.run(ready.set))
    await ready.wait()
    stream = await tunnel.open()
    with pytest.raises(TunnelError):
        await carrying
    reader, writer = await asyncio.open_unix_connection(sock=stream)
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


def _open_sockets() -> int:
    """Return how many sockets this process has."""
    return sum("socket:" in os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir())


async def test_the_end_of_a_cluster_closes_its_tunnel_at_once() -> None:
    ours, _ = carrier_pair()
    tunnels, ready = Tunnels(), asyncio.Event()
    tunnels.add_listener(lambda _: ready.set())
    carrying = asyncio.ensure_future(tunnels.carry("paris", Tunnel(ours), "abc"))
    await ready.wait()
    tunnels.close("paris")
    await carrying
    with pytest.raises(ClusterUnreachable, match="the agent of cluster paris is not connected"):
        await tunnels.dial("paris")


async def test_a_new_registration_disconnects_the_previous_agent() -> None:
    ours, _ = carrier_pair()
    tunnels, ready = Tunnels(), asyncio.Event()
    tunnels.add_listener(lambda _: ready.set())
    pool = ClusterPool(tunnels=tunnels)
    carrying = asyncio.ensure_future(tunnels.carry("paris", Tunnel(ours), "first"))
    await ready.wait()
    for registration in ("first", "second"):
        assert not carrying.done()
        metadata = {"name": "paris", "annotations": {names.AGENT_REGISTRATION: registration}}
        with pytest.raises(ConfigurationError):  # there is no Secret
            pool.update({"metadata": metadata, "spec": {}}, None)
    await carrying
    await pool.close()


class Socket:
    """The WebSocket of an agent that sends nothing."""

    subprotocols: Sequence[str] = ()

    def __init__(self) -> None:
        self.accepted = asyncio.Event()

    async def accept(self, subprotocol: str) -> None:
        assert not subprotocol
        self.accepted.set()

    def carry_body(self) -> None:
        raise AssertionError("a tunnel is no response")

    async def receive(self) -> bytes:
        return await asyncio.Future[bytes]()

    async def send(self, message: str | bytes) -> None:
        del message

    async def close(self, code: int) -> None:
        del code


async def test_a_tunnel_ends_with_the_certificate_that_opened_it(host: Host) -> None:
    await host.add_token()
    user = await host.register()
    socket, tunnels = Socket(), Tunnels()
    endpoint = AgentEndpoint(host.registration, tunnels, lambda: True, SystemClock())
    expires_s = SystemClock().now().timestamp() + 0.2
    scope = {
        "method": "GET",
        "path": agents.TUNNEL_PATH,
        "query_string": b"cluster=paris",
        "headers": [],
        "state": {"peer": Peer(user.name, tuple(user.groups), expires_s=expires_s)},
        "extensions": {WEBSOCKET: socket},
        USER: user,
    }
    async with asyncio.timeout(60):
        await endpoint(scope, asyncio.Future, asyncio.Future)
    assert socket.accepted.is_set()
    assert SystemClock().now().timestamp() >= expires_s
    with pytest.raises(ClusterUnreachable):
        await tunnels.dial("paris")


async def test_an_agent_that_the_control_plane_cannot_serve_is_not_silent(host: Host) -> None:
    await host.add_token()
    user = await host.register()
    for may_carry, expected in ((False, Obstacle.AGENTS_AWAY), (True, Obstacle.NO_ANSWER)):
        tunnels = Tunnels(clock := ManualClock())
        for _ in range(40):  # it has served for longer than agents take
            with pytest.raises(ClusterUnreachable):
                await tunnels.dial("paris")
            await clock.advance(2)
        endpoint = AgentEndpoint(host.registration, tunnels, lambda may=may_carry: may, clock)
        scope = {
            "method": "GET",
            "path": agents.TUNNEL_PATH if not may_carry else "/agents/v1/unknown",
            "query_string": b"cluster=paris",
            "headers": [],
            "state": {"peer": Peer(user.name, tuple(user.groups))},
            "extensions": {WEBSOCKET: Socket()},
            USER: user,
        }
        sent: list[Any] = []

        async def send(message: Any, sent: list[Any] = sent) -> None:
            sent.append(message)

        await endpoint(scope, asyncio.Future, send)
        assert sent[0]["status"] == (404 if may_carry else 503)
        with pytest.raises(ClusterUnreachable) as refusal:
            await tunnels.dial("paris")
        assert refusal.value.obstacle is expected


@pytest.mark.parametrize("text", ["", "x", "fedagent1.", "fedagent1.e30", "fedagent1.WzFd", "fedagent1.!!!", "é"])
def test_a_damaged_bundle_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--register: not a registration token.*fedctl token create"):
        agents.Bundle.decode(text)


@pytest.mark.parametrize("text", ["", "fed.example.com", "http://fed.example.com", "https://a,", "https://"])
def test_an_address_of_the_host_without_https_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r'^--server: ".*" is not an address; write https://HOST\[:PORT\]'):
        agents.to_servers(text)


def test_a_bundle_survives_its_encoding_and_hides_its_secret() -> None:
    bundle = agents.Bundle("https://host", "CA", "paris", "abc", SECRET)
    assert agents.Bundle.decode(bundle.encode()) == bundle
    assert SECRET not in repr(bundle)
    assert names.AGENT_TOKEN_PREFIX not in bundle.encode()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api"),
        ("GET", "/openapi/v3"),
        ("GET", "/version"),
        ("GET", "/readyz"),
        ("GET", "/federation/v1/objects"),
        ("GET", "/ui/login"),
        ("POST", "/ui/links"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
)
async def test_a_certificate_of_an_agent_is_good_for_routes_of_agents_only(
    tmp_path: Path, method: str, path: str
) -> None:
    peer = Peer(agents.agent_user("1234"), (agents.agent_group("abc"),))
    async with (
        running(tmp_path, AppOptions(confined_users=agents.CONFINED)) as parts,
        connect(parts.app, peer) as agent,
    ):
        answer = await agent.request(method, path, json={} if method == "POST" else None)
        assert answer.status_code == 403
        assert "may only request paths below /agents/" in answer.json()["message"]
        own = await agent.get(agents.MEMBER_PATH)  # this server has no such route: another refusal
        assert "may only request" not in own.text
