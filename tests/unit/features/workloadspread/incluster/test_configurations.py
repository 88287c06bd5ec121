"""What is installed in a cluster, and what stays when it is removed."""

from typing import Any

import pytest
from tests.support.simulatedmember import an_object

from federation.api import names
from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError, NotFound
from federation.apimachinery.resources import CRDS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.features.workloadspread.incluster import configurations
from federation.features.workloadspread.incluster.reviews import ReviewOptions

DEFINITION = "workloadspreads.apps.kruise.io"


@pytest.fixture
async def client() -> LocalClient:
    registry = Registry(MemoryStore(), clock=ManualClock())
    await registry.start()
    return LocalClient(registry, user_agent="test")


def at(url: str) -> configurations.ClientConfig:
    return lambda path: {"url": url + path, "caBundle": "bm9uZQ=="}


async def exists(client: LocalClient, resource: Any, name: str) -> bool:
    try:
        await client.get(resource, name)
    except NotFound:
        return False
    return True


def test_no_webhook_can_block_the_cluster() -> None:
    for configuration in configurations.to_configurations(at("https://a")):
        for webhook in configuration["webhooks"]:
            assert webhook["failurePolicy"] == "Ignore"
            assert ReviewOptions().deadline_s < webhook["timeoutSeconds"] <= 10
            excluded = webhook["namespaceSelector"]["matchExpressions"][0]
            assert {"kube-system", names.SYSTEM_NAMESPACE} <= set(excluded["values"])
            assert excluded["operator"] == "NotIn"
            assert webhook["rules"][0]["scope"] == "Namespaced"
            assert webhook["sideEffects"] == "NoneOnDryRun"


async def test_installing_twice_changes_nothing(client: LocalClient) -> None:
    for _ in range(2):
        await configurations.install_definitions(client)
        await configurations.install_webhooks(client, at("https://a"))
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        found = await client.get(resource, names.SPREAD_WEBHOOKS)
        assert found["metadata"]["generation"] == 1
        assert found["webhooks"][0]["clientConfig"]["url"].startswith("https://a/")


async def test_the_definition_of_another_project_is_not_replaced(client: LocalClient) -> None:
    foreign: Object = next(each for each in configurations.definitions() if each["metadata"]["name"] == DEFINITION)
    foreign["metadata"]["labels"] = {}
    await client.create(CRDS, foreign)
    with pytest.raises(ConfigurationError, match="another project"):
        await configurations.install_definitions(client)
    kept = await configurations.uninstall_definitions(client)
    assert any(DEFINITION in line and "another project" in line for line in kept)
    assert "deletionTimestamp" not in (await client.get(CRDS, DEFINITION))["metadata"]


def _without_revision(definition: Object) -> Object:
    for version in definition["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["podsResourceVersion"]
    return definition


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({"app.kubernetes.io/managed-by": names.FIELD_MANAGER}, ""),
        ({names.MANAGED_LABEL: "true"}, "update it on the host of the federation"),
        ({}, "update it here"),
    ],
    ids=["ours", "delivered", "foreign"],
)
async def test_a_definition_that_lacks_a_field_is_mended_or_named(
    client: LocalClient, labels: Object, problem: str
) -> None:
    assert await configurations.restore_definitions(client) == []  # they were absent
    assert await configurations.restore_definitions(client) == []
    changed = _without_revision(await client.get(CRDS, DEFINITION))
    changed["metadata"]["labels"] = labels
    await client.update(CRDS, changed)
    problems = await configurations.restore_definitions(client)
    properties = (await client.get(CRDS, DEFINITION))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert ("podsResourceVersion" in properties["status"]["properties"]) == (not problem)
    assert len(problems) == bool(problem)
    assert all(problem in each and "lacks status.podsResourceVersion," in each for each in problems)


async def test_a_process_removes_only_its_own_webhooks(client: LocalClient) -> None:
    await configurations.uninstall_webhooks(client, at("https://a"))  # there are none
    await configurations.install_webhooks(client, at("https://a"))
    await configurations.install_webhooks(client, at("https://b"))
    await configurations.uninstall_webhooks(client, at("https://a"))
    assert await exists(client, MUTATING_WEBHOOKS, names.SPREAD_WEBHOOKS)
    await configurations.uninstall_webhooks(client, at("https://b"))
    assert not await exists(client, MUTATING_WEBHOOKS, names.SPREAD_WEBHOOKS)
    assert not await exists(client, VALIDATING_WEBHOOKS, names.SPREAD_WEBHOOKS)


async def test_a_definition_with_objects_stays(client: LocalClient) -> None:
    await configurations.install_definitions(client)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"targetRef": target, "subsets": [{"name": "a"}]}
    await client.create(WORKLOAD_SPREADS, an_object(WORKLOAD_SPREADS, "web", spec=spec))
    assert any(DEFINITION in line for line in await configurations.uninstall_definitions(client))
    assert "deletionTimestamp" not in (await client.get(CRDS, DEFINITION))["metadata"]
    await client.delete(WORKLOAD_SPREADS, "web", "default")
    assert await configurations.uninstall_definitions(client) == []
    assert "deletionTimestamp" in (await client.get(CRDS, DEFINITION))["metadata"]


async def test_removed_webhooks_are_restored_and_a_changed_bundle_is_corrected(client: LocalClient) -> None:
    await configurations.restore_webhooks(client, at("https://a"))
    await client.delete(VALIDATING_WEBHOOKS, names.SPREAD_WEBHOOKS)
    await configurations.restore_webhooks(client, at("https://a"))
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        assert await exists(client, resource, names.SPREAD_WEBHOOKS)
    await configurations.install_webhooks(client, lambda path: {"url": f"https://a{path}", "caBundle": "b2xk"})
    await configurations.restore_webhooks(client, at("https://a"))
    found = await client.get(MUTATING_WEBHOOKS, names.SPREAD_WEBHOOKS)
    assert found["webhooks"][0]["clientConfig"]["caBundle"] == "bm9uZQ=="


async def test_webhooks_of_a_process_with_another_url_stay(client: LocalClient) -> None:
    await configurations.install_webhooks(client, at("https://b"))
    before = await client.get(MUTATING_WEBHOOKS, names.SPREAD_WEBHOOKS)
    await configurations.restore_webhooks(client, at("https://a"))
    assert await client.get(MUTATING_WEBHOOKS, names.SPREAD_WEBHOOKS) == before


async def test_fields_that_somebody_else_has_taken_over_are_taken_back(client: LocalClient) -> None:
    await configurations.install_definitions(client)
    await configurations.install_webhooks(client, at("https://a"))
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        found = await client.get(resource, names.SPREAD_WEBHOOKS)
        for webhook in found["webhooks"]:
            webhook["timeoutSeconds"] = 30
        await client.update(resource, found)
    definition = await client.get(CRDS, DEFINITION)
    definition["spec"]["names"]["shortNames"] = ["other"]
    await client.update(CRDS, definition)
    await configurations.install_definitions(client)
    await configurations.install_webhooks(client, at("https://a"))
    assert (await client.get(CRDS, DEFINITION))["spec"]["names"].get("shortNames") != ["other"]
    for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
        for webhook in (await client.get(resource, names.SPREAD_WEBHOOKS))["webhooks"]:
            assert webhook["timeoutSeconds"] <= 10
