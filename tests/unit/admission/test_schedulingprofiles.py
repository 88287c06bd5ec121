"""A SchedulingProfile that no decision can be made with is refused, and the refusal names the field."""

from typing import Any

import pytest

from federation.api.crds import crd_manifests
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.assembly import protect_federated_objects
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types


class Host:
    """An API server on which a user writes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def create(self, resource: Resource, **fields: Any) -> list[str]:
        """Create an object and return the warnings."""
        options = WriteOptions(user=lambda: {"username": "alice"})
        info = self._registry.kinds.lookup(resource.group, resource.version, resource.plural)
        namespace = "default" if resource.namespaced else ""
        obj: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "it"}, **fields}
        await self._registry.create(info, namespace, obj, options)
        return options.warnings


@pytest.fixture
async def host() -> Host:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.install_crds(crd_manifests())
    protect_federated_objects(registry, clock)
    await ensure_types(LocalClient(registry, user_agent="test"))
    return Host(registry)


def enabled(point: str, **plugin: Any) -> dict[str, Any]:
    return {"plugins": {point: {"enabled": [plugin]}}}


@pytest.mark.parametrize(
    ("spec", "field", "text"),
    [
        (enabled("score", name="ClusterCots"), "spec.plugins.score.enabled[0].name", "did you mean ClusterCost?"),
        (enabled("filter", name="zzz"), "spec.plugins.filter.enabled[0].name", "installed are APIResources, "),
        (enabled("filter"), "spec.plugins.filter.enabled[0].name", "there is no plugin ''"),
        (
            enabled("filter", name="PrioritySort", type="Webhook"),
            "spec.plugins.filter.enabled[0].name",
            "PrioritySort does not run here; enable it in select",
        ),
        (enabled("select", name="MaxCluster"), "spec.plugins.select.enabled", "MaxCluster runs there already"),
        (
            {"pluginConfig": [{"name": "PreferenceBinPack", "args": {"capasity": "Sums"}}]},
            "spec.pluginConfig[0].args",
            "unknown argument capasity",
        ),
        (
            {"pluginConfig": [{"name": "PreferenceBinPack", "args": [1]}]},
            "spec.pluginConfig[0].args",
            "write an object",
        ),
    ],
)
async def test_a_profile_that_no_decision_can_be_made_with_is_refused(
    host: Host, spec: dict[str, Any], field: str, text: str
) -> None:
    with pytest.raises(Invalid) as refused:
        await host.create(SCHEDULING_PROFILES, spec=spec)
    assert [each["field"] for each in refused.value.details["causes"]] == [field]
    assert text in str(refused.value)


async def test_a_webhook_that_has_no_configuration_yet_is_named_in_a_warning(host: Host) -> None:
    spec = enabled("filter", name="ours", type="Webhook")
    [warning] = await host.create(SCHEDULING_PROFILES, spec=spec)
    assert warning.startswith(
        "spec.plugins.filter.enabled[0].name: no SchedulerPluginWebhookConfiguration has this name"
    )


async def test_a_configured_webhook_needs_no_type(host: Host) -> None:
    spec = {"urlPrefix": "http://127.0.0.1:1", "payloadVersions": ["v1alpha1"], "filterPath": "/filter"}
    await host.create(SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, spec=spec)
    assert await host.create(SCHEDULING_PROFILES, spec=enabled("filter", name="it")) == []


async def test_a_policy_that_makes_no_sense_is_stored_with_a_warning(host: Host) -> None:
    spec = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}], "schedulingMode": "Divide"}
    warnings = await host.create(CLUSTER_PROPAGATION_POLICIES, spec={**spec, "maxClusters": 0})
    assert warnings == ["spec.maxClusters: 0 lets nothing be placed; leave it out for no limit"]
