"""Joining and leaving: what is written on the host, what is refused before, what is waited for."""

import asyncio
import base64
from typing import Any

import pytest

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS, SECRETS, Object
from federation.base.clock import ManualClock
from federation.base.errors import ConfigurationError, FederationError
from federation.cli import joining
from federation.cli.joining import JoinRequest
from federation.client.connection import Connection
from federation.client.local import LocalClient
from federation.client.protocol import PatchType
from federation.registry.registry import Registry
from federation.store.memory import MemoryStore

NOBODY = "https://127.0.0.1:1"
"""Nothing listens there."""


@pytest.fixture
async def host() -> LocalClient:
    registry = Registry(MemoryStore(), clock=ManualClock())
    await registry.install_crds(crd_manifests())
    return LocalClient(registry, user_agent="test")


def a_request(name: str = "east", server: str = NOBODY, **connection: Any) -> JoinRequest:
    given: dict[str, Any] = {"token": "t0ken", "insecure": True, **connection}
    return JoinRequest(name, Connection(server, **given))


async def _a_cluster(host: LocalClient, name: str = "east", **more: Any) -> Object:
    spec = {"apiEndpoint": NOBODY, "secretRef": {"name": f"{name}-credentials"}, "insecure": True}
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


def test_labels_and_taints_are_read_as_kubectl_reads_them() -> None:
    assert joining.parse_labels("region=eu, az=,") == {"region": "eu", "az": ""}
    assert joining.parse_labels("") == {}
    assert joining.parse_taints("gpu=true:NoSchedule,spot:NoExecute") == (
        {"key": "gpu", "value": "true", "effect": "NoSchedule"},
        {"key": "spot", "value": "", "effect": "NoExecute"},
    )


@pytest.mark.parametrize("text", ["region", "=eu", "a=b,c"])
def test_a_label_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--labels .*write key=value"):
        joining.parse_labels(text)


@pytest.mark.parametrize("text", ["gpu", "gpu=true", "gpu=true:Never", ":NoSchedule"])
def test_a_taint_that_is_none_is_named(text: str) -> None:
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
async def test_credentials_that_cannot_be_kept_are_refused_by_field(
    host: LocalClient, connection: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        await joining.join(host, a_request(**connection))
    assert (await host.list(FEDERATED_CLUSTERS)).items == []


async def test_a_member_that_cannot_be_reached_leaves_nothing_behind(host: LocalClient) -> None:
    with pytest.raises(ConfigurationError, match=r"https://127\.0\.0\.1:1 cannot be reached"):
        await joining.join(host, a_request())
    assert (await host.list(FEDERATED_CLUSTERS)).items == []
    assert (await host.list(SECRETS, names.SYSTEM_NAMESPACE)).items == []


async def test_a_name_and_an_address_join_only_once(host: LocalClient) -> None:
    await _a_cluster(host)
    with pytest.raises(ConfigurationError, match='cluster "east" is already joined'):
        await joining.join(host, a_request(server="https://elsewhere"))
    with pytest.raises(ConfigurationError, match='already joined as "east"'):
        await joining.join(host, a_request("west", NOBODY + "/"))


async def test_joining_again_renews_address_and_credentials_and_keeps_the_users_labels(host: LocalClient) -> None:
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


async def test_waiting_in_vain_says_why(host: LocalClient) -> None:
    await _a_cluster(host)
    clock = ManualClock()
    await _conditions(host, ("Joined", "True", "ClusterJoined"), ("Ready", "False", "HealthzNotOK"))
    waiting = asyncio.create_task(joining.wait_ready(host, "east", clock, 10))
    await asyncio.sleep(0)
    await clock.advance(11)
    with pytest.raises(FederationError, match="not ready after 10 s: because of HealthzNotOK"):
        await waiting


async def test_a_cluster_that_will_never_join_is_not_waited_for(host: LocalClient) -> None:
    await _a_cluster(host)
    await _conditions(host, ("Joined", "False", "ClusterUnjoinable"))
    with pytest.raises(ConfigurationError, match='"east" cannot join: because of ClusterUnjoinable'):
        await joining.wait_ready(host, "east", ManualClock(), 60)


async def test_leaving_takes_the_secret_along(host: LocalClient) -> None:
    await _a_cluster(host)
    secret = {"apiVersion": "v1", "kind": "Secret"}
    where = {"name": "east-credentials", "namespace": names.SYSTEM_NAMESPACE}
    await host.create(SECRETS, {**secret, "metadata": where})

    await joining.unjoin(host, "east", ManualClock(), 60)

    assert (await host.list(FEDERATED_CLUSTERS)).items == []
    assert (await host.list(SECRETS, names.SYSTEM_NAMESPACE)).items == []


async def test_leaving_names_what_it_waits_for_and_who_is_not_there(host: LocalClient) -> None:
    with pytest.raises(ConfigurationError, match='"west" is not joined'):
        await joining.unjoin(host, "west", ManualClock(), 60)

    await _a_cluster(host, finalizers=[names.FEDERATED_CLUSTER_FINALIZER])
    clock = ManualClock()
    leaving = asyncio.create_task(joining.unjoin(host, "east", clock, 10))
    await asyncio.sleep(0)
    await clock.advance(11)
    with pytest.raises(FederationError, match=f"still leaving after 10 s .*{names.FEDERATED_CLUSTER_FINALIZER}"):
        await leaving
