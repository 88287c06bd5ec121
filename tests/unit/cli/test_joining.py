"""Joining and unjoining: objects written on the host, rejected requests, and waiting."""

import asyncio
import base64
from dataclasses import replace
from typing import Any

import pytest

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, FederationError
from federation.apimachinery.resources import SECRETS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.cli import joining
from federation.cli.joining import JoinRequest
from federation.client.client import PatchType
from federation.client.local import LocalClient

UNREACHABLE = "https://127.0.0.1:1"
"""Nothing listens there."""


class HostServer:
    """Serves the namespaces of a host under another URL than its own."""

    def __init__(self, host: LocalClient) -> None:
        self._host = host
        self.paths: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ")[1]
                self.paths.append(path)
                code, body = await self._host.raw("GET", path) if path != "/version" else (200, b"{}")
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (code, len(body), body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def test_the_host_itself_is_rejected_before_anything_is_written(host: LocalClient) -> None:
    server = await asyncio.start_server(HostServer(host).handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(ConfigurationError, match="cannot join itself"):
        await joining.join(host, a_request(server=url))
    assert (await host.list(FEDERATED_CLUSTERS)).items == []
    assert (await host.list(SECRETS, names.SYSTEM_NAMESPACE)).items == []
    server.close()


@pytest.fixture
async def host() -> LocalClient:
    registry = Registry(MemoryStore(), clock=ManualClock(), options=HOST_REGISTRY)
    await registry.install_crds(crd_manifests())
    return LocalClient(registry, user_agent="test")


def a_request(name: str = "east", server: str = UNREACHABLE, **connection: Any) -> JoinRequest:
    given: dict[str, Any] = {"token": "t0ken", "insecure": True, **connection}
    return JoinRequest(name, Connection(server, **given), use_service_account=False)


async def _a_cluster(host: LocalClient, name: str = "east", **more: Any) -> Object:
    spec = {"apiEndpoint": UNREACHABLE, "secretRef": {"name": f"{name}-credentials"}, "insecure": True}
    metadata = {"name": name, **more}
    cluster = {"apiVersion": FEDERATED_CLUSTERS.api_version, "kind": "FederatedCluster", "metadata": metadata}
    return await host.create(FEDERATED_CLUSTERS, {**cluster, "spec": spec})


async def _conditions(host: LocalClient, *conditions: tuple[str, str, str]) -> None:
    times = {"lastProbeTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    listed = [
        {"type": type_, "status": status, "reason": reason, "message": f"because of {reason}", **times}
        for type_, status, reason in conditions
    ]
    await host.patch(
        FEDERATED_CLUSTERS,
        "east",
        {"status": {"conditions": listed}},
        patch_type=PatchType.MERGE,
        subresource="status",
    )


def test_labels_and_taints_are_parsed_like_kubectl() -> None:
    assert joining.parse_labels("region=eu, az=,") == {"region": "eu", "az": ""}
    assert joining.parse_labels("") == {}
    assert joining.parse_taints("gpu=true:NoSchedule,spot:NoExecute") == (
        {"key": "gpu", "value": "true", "effect": "NoSchedule"},
        {"key": "spot", "value": "", "effect": "NoExecute"},
    )


@pytest.mark.parametrize("text", ["region", "=eu", "a=b,c"])
def test_an_invalid_label_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--labels .*write key=value"):
        joining.parse_labels(text)


@pytest.mark.parametrize("text", ["gpu", "gpu=true", "gpu=true:Never", ":NoSchedule"])
def test_an_invalid_taint_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--taints .*NoSchedule"):
        joining.parse_taints(text)


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"insecure": False}, "no certificate-authority"),
        ({"token": ""}, "no credentials"),
        ({"username": "bob", "password": "x"}, "users.*username is not supported"),
        ({"impersonate_user": "alice"}, "users.*as is not supported"),
        ({"proxy_url": "http://proxy:1"}, "proxy-url is not supported"),
    ],
)
async def test_credentials_that_cannot_be_stored_are_rejected_by_field(
    host: LocalClient, connection: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await joining.join(host, a_request(**connection))
    assert (await host.list(FEDERATED_CLUSTERS)).items == []


async def test_credentials_that_only_create_the_account_may_be_of_any_kind(host: LocalClient) -> None:
    request = replace(a_request(username="bob", password="x"), use_service_account=True)
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        await joining.join(host, request)


@pytest.mark.parametrize("use_service_account", [True, False], ids=["account", "given"])
async def test_joining_an_unreachable_member_writes_nothing(host: LocalClient, use_service_account: bool) -> None:
    with pytest.raises(ConfigurationError, match=r"https://127\.0\.0\.1:1 cannot be reached"):
        await joining.join(host, replace(a_request(), use_service_account=use_service_account))
    assert (await host.list(FEDERATED_CLUSTERS)).items == []
    assert (await host.list(SECRETS, names.SYSTEM_NAMESPACE)).items == []


async def test_a_name_or_address_that_already_joined_is_rejected(host: LocalClient) -> None:
    await _a_cluster(host)
    with pytest.raises(ConfigurationError, match='cluster "east" is already joined'):
        await joining.join(host, a_request(server="https://elsewhere"))
    with pytest.raises(ConfigurationError, match='already joined as "east"'):
        await joining.join(host, a_request("west", UNREACHABLE + "/"))


async def test_joining_again_updates_address_and_credentials_and_keeps_labels(host: LocalClient) -> None:
    await _a_cluster(host, labels={"mine": "yes"})
    await joining.ensure_joined(host, a_request(server="https://moved:6443", token="fresh"))

    cluster = await host.get(FEDERATED_CLUSTERS, "east")
    secret = await host.get(SECRETS, "east-credentials", names.SYSTEM_NAMESPACE)
    assert cluster["spec"]["apiEndpoint"] == "https://moved:6443"
    assert cluster["metadata"]["labels"] == {"mine": "yes"}
    assert base64.b64decode(secret["data"][names.SECRET_BOOTSTRAP_TOKEN]) == b"fresh"


async def test_waiting_ends_when_the_cluster_is_ready(host: LocalClient) -> None:
    await _a_cluster(host)
    clock = ManualClock()
    waiting = asyncio.create_task(joining.wait_ready(host, "east", clock, 60))
    await clock.advance(5)
    assert not waiting.done()
    await _conditions(host, ("Joined", "True", "ClusterJoined"), ("Ready", "True", "ClusterReady"))
    await clock.advance(1)
    await waiting


async def test_a_timeout_reports_the_last_condition(host: LocalClient) -> None:
    await _a_cluster(host)
    clock = ManualClock()
    await _conditions(host, ("Joined", "True", "ClusterJoined"), ("Ready", "False", "HealthzNotOK"))
    reports: set[str] = set()
    waiting = asyncio.create_task(joining.wait_ready(host, "east", clock, 10, reports.add))
    await asyncio.sleep(0)
    await clock.advance(11)
    with pytest.raises(FederationError, match="not ready after 10 s: because of HealthzNotOK"):
        await waiting
    assert reports == {'waiting until cluster "east" is ready: because of HealthzNotOK'}


async def test_waiting_fails_at_once_for_an_unjoinable_cluster(host: LocalClient) -> None:
    await _a_cluster(host)
    await _conditions(host, ("Joined", "False", "ClusterUnjoinable"))
    with pytest.raises(ConfigurationError, match='"east" cannot join: because of ClusterUnjoinable'):
        await joining.wait_ready(host, "east", ManualClock(), 60)


async def test_unjoining_deletes_the_secret(host: LocalClient) -> None:
    await _a_cluster(host)
    secret = {"apiVersion": "v1", "kind": "Secret"}
    where = {"name": "east-credentials", "namespace": names.SYSTEM_NAMESPACE}
    await host.create(SECRETS, {**secret, "metadata": where})

    await joining.unjoin(host, "east", ManualClock(), 60)

    assert (await host.list(FEDERATED_CLUSTERS)).items == []
    assert (await host.list(SECRETS, names.SYSTEM_NAMESPACE)).items == []


async def test_the_last_word_says_whether_a_leaving_cluster_keeps_its_objects(host: LocalClient) -> None:
    await _a_cluster(host, finalizers=["example.com/wait"])

    async def say(**word: bool) -> tuple[str, dict[str, str]]:
        with pytest.raises(FederationError) as raised:
            await joining.unjoin(host, "east", ManualClock(), 0, **word)
        metadata = (await host.get(FEDERATED_CLUSTERS, "east"))["metadata"]
        return str(raised.value), metadata.get("annotations") or {}

    keep, removal = "to keep what it has: fedctl unjoin east --keep", {names.CASCADING_DELETE: "true"}
    text, annotations = await say(is_removing=True)
    assert keep in text
    assert annotations == removal
    text, annotations = await say()
    assert keep in text
    assert annotations == removal
    text, annotations = await say(is_removing=False)
    assert keep not in text
    assert annotations == {}


async def test_unjoining_names_an_unknown_cluster_and_remaining_finalizers(host: LocalClient) -> None:
    with pytest.raises(ConfigurationError, match='"west" is not joined'):
        await joining.unjoin(host, "west", ManualClock(), 60)

    await _a_cluster(host, finalizers=[names.CLUSTER_FINALIZER])
    clock = ManualClock()
    leaving = asyncio.create_task(joining.unjoin(host, "east", clock, 10))
    await asyncio.sleep(0)
    await clock.advance(11)
    with pytest.raises(FederationError, match=f"still leaving after 10 s .*{names.CLUSTER_FINALIZER}"):
        await leaving
