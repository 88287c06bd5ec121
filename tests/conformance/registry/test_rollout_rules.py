"""Validation of `spec.rollout` by the API: field paths and remedies, for all four policies."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.apiserver import Parts, api_server

from federation.api.crds import crd_manifests
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.terminal.kubeconfigcontext import KubeconfigContext

POLICIES = (PROPAGATION_POLICIES, CLUSTER_PROPAGATION_POLICIES, OVERRIDE_POLICIES, CLUSTER_OVERRIDE_POLICIES)


async def create(resource: Resource, *waves: dict[str, Any], **rollout: Any) -> Any:
    registry = Registry(MemoryStore(), clock=SystemClock())
    await registry.start()
    await registry.install_crds(crd_manifests())
    return await LocalClient(registry, user_agent="test").create(resource, a_policy(resource, *waves, **rollout))


def a_policy(resource: Resource, *waves: dict[str, Any], **rollout: Any) -> Object:
    policy: Object = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "waves", **({"namespace": "default"} if resource.namespaced else {})},
        "spec": {"rollout": {"waves": list(waves), **rollout}},
    }
    if "Propagation" in resource.kind:
        policy["spec"]["schedulingMode"] = "Divide"
    return policy


@pytest.mark.parametrize("resource", POLICIES, ids=lambda each: each.kind)
async def test_waves_keep_their_order_and_get_defaults(resource: Resource) -> None:
    created = await create(resource, {"name": "b"}, {"name": "a", "gate": {"http": {"url": "https://slo.example"}}})
    pauses = {"pause": False, "pauseAfter": False}
    defaults = {"share": 100, **pauses, "timeoutSeconds": 600, "brokenSeconds": 180, "whenEmpty": "Hold"}
    http = {"url": "https://slo.example", "expectStatus": 200, "timeoutSeconds": 5}
    assert created["spec"]["rollout"] == {
        "onFailure": "Pause",
        "waves": [
            {"name": "b", **defaults, "gate": {"ready": True, "soakSeconds": 0}},
            {"name": "a", **defaults, "gate": {"ready": True, "soakSeconds": 0, "http": http}},
        ],
    }


@pytest.mark.parametrize(
    ("wave", "path", "remedy"),
    [
        ({"name": "first"}, "", "names a wave twice; give every wave its own name"),
        ({"name": "remaining"}, "", "must not name a wave remaining"),
        ({"name": "A wave"}, "[1].name", "should match"),
        ({"share": 0}, "[1].share", "should be greater than or equal to 1"),
        ({"share": 101}, "[1].share", "should be less than or equal to 100"),
        ({"timeoutSeconds": 0}, "[1].timeoutSeconds", "should be greater than or equal to 1"),
        ({"gate": {"soakSeconds": -1}}, "[1].gate.soakSeconds", "should be greater than or equal to 0"),
        ({"gate": {"http": {"url": "ftp://x"}}}, "[1].gate.http.url", "should match"),
        ({"gate": {"http": {"url": "http://user@x/"}}}, "[1].gate.http.url", "should match"),
        ({"gate": {"http": {"url": "http://x", "expectStatus": 99}}}, "[1].gate.http.expectStatus", "100"),
        ({"gate": {"http": {}}}, "[1].gate.http.url", "Required value"),
    ],
)
async def test_nonsense_is_refused_with_the_remedy(wave: dict[str, Any], path: str, remedy: str) -> None:
    with pytest.raises(Invalid) as refused:
        await create(OVERRIDE_POLICIES, {"name": "first"}, {"name": "second", **wave})
    assert f"spec.rollout.waves{path}: " in str(refused.value)
    assert remedy in str(refused.value)


async def test_a_rollout_needs_a_wave_and_a_known_failure_action() -> None:
    with pytest.raises(Invalid, match=r"spec\.rollout\.waves: "):
        await create(PROPAGATION_POLICIES)
    with pytest.raises(Invalid, match=r'spec\.rollout\.onFailure: .*"Pause", "RollBack"'):
        await create(PROPAGATION_POLICIES, {"name": "a"}, onFailure="Never")


@pytest.mark.parametrize(
    ("gate", "path", "remedy"),
    [
        ({"expression": "object."}, "expression", "Syntax error"),
        ({"expression": "size(object.spec)"}, "expression", "must evaluate to bool but got int"),
        ({"http": {"url": "http://127.0.0.1/"}}, "http.url", "not a global unicast address"),
    ],
)
@pytest.mark.parametrize("resource", POLICIES, ids=lambda each: each.kind)
def test_users_cannot_create_gates_that_cannot_work(
    server: Parts, resource: Resource, gate: dict[str, Any], path: str, remedy: str
) -> None:
    async def attempt() -> None:
        async with KubeconfigContext(server.kubeconfig, "").client() as client:
            await client.create(resource, a_policy(resource, {"name": "canary", "gate": gate}))

    with pytest.raises(Invalid) as refused:
        asyncio.run(attempt())
    assert f"spec.rollout.waves[0].gate.{path}: Invalid value: " in str(refused.value)
    assert remedy in str(refused.value)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("rollout")) as parts:
        parts.run(parts.registry.install_crds(crd_manifests()))
        yield parts
