"""Shipped FederatedTypeConfigs on new hosts, on hosts of earlier versions, and after changes by administrators."""

from typing import Any

import orjson
import pytest
from tests.unit.controllers.hosting import Host, a_host

from federation.api import names
from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.errors import Conflict
from federation.apimachinery.resources import (
    ADMISSION_POLICY_BINDINGS,
    CONFIGMAPS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.client.local import LocalClient
from federation.features.types.rules import first_shipped
from federation.features.types.shippedtypes import ensure_types
from federation.planning.federatedobject.hosteffect import ACTING

SHIPPED = {config["metadata"]["name"]: config["spec"] for config in default_type_configs()}
LATER = {
    "apiservices.apiregistration.k8s.io",
    "clonesets.apps.kruise.io",
    "ingressclasses.networking.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "priorityclasses.scheduling.k8s.io",
    "statefulsets.apps.kruise.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "workloadspreads.apps.kruise.io",
}


async def _specs(host: Host) -> dict[str, Object]:
    configs = (await host.user.list(FEDERATED_TYPE_CONFIGS)).items
    return {config["metadata"]["name"]: config["spec"] for config in configs}


async def _record(host: Host) -> dict[str, Any]:
    record = await host.user.get(CONFIGMAPS, names.SHIPPED_TYPES, names.SYSTEM_NAMESPACE)
    return {name: orjson.loads(text) for name, text in record["data"].items()}


async def _as_an_earlier_version(host: Host) -> None:
    """Create what the first version created; it kept no record."""
    for name, part in first_shipped().items():
        metadata = {"name": name, **part["metadata"]}
        await host.user.create(FEDERATED_TYPE_CONFIGS, {"metadata": metadata, "spec": part["spec"]})


async def test_a_new_host_gets_all_of_them_and_the_next_start_writes_nothing() -> None:
    async with a_host() as host:
        await ensure_types(host.client)
        assert await _specs(host) == SHIPPED
        assert (await _record(host)).keys() == SHIPPED.keys()
        host.client.writes.clear()
        await ensure_types(host.client)
        assert not host.client.writes


async def test_a_host_of_an_earlier_version_is_brought_up_to_date() -> None:
    async with a_host() as host:
        await _as_an_earlier_version(host)
        await ensure_types(host.client)
        assert await _specs(host) == SHIPPED
        assert {key: count for key, count in host.client.writes.items() if "FederatedTypeConfig" in key} == {
            "create FederatedTypeConfig": len(LATER),
            "patch FederatedTypeConfig": 3,
        }


async def test_what_administrators_changed_or_deleted_stays() -> None:
    async with a_host() as host:
        await _as_an_earlier_version(host)
        own = {"replicasSpec": "spec.template.replicas"}
        await host.merge(FEDERATED_TYPE_CONFIGS, "jobs.batch", {"spec": {"pathDefinition": own}})
        fields = {"spec": {"statusCollection": {"fields": ["status"]}}}
        await host.merge(FEDERATED_TYPE_CONFIGS, "statefulsets.apps", fields)
        await host.merge(FEDERATED_TYPE_CONFIGS, "deployments.apps", {"spec": {"autoMigration": None}})
        await host.user.delete(FEDERATED_TYPE_CONFIGS, "ingresses.networking.k8s.io")
        derived = {**SHIPPED["networkpolicies.networking.k8s.io"], "statusCollection": {"enabled": False}}
        metadata = {"name": "networkpolicies.networking.k8s.io", "labels": {names.DERIVED_TYPE: "true"}}
        await host.user.create(FEDERATED_TYPE_CONFIGS, {"metadata": metadata, "spec": derived})

        await ensure_types(host.client)
        specs = await _specs(host)
        assert specs["jobs.batch"]["pathDefinition"] == own
        assert specs["statefulsets.apps"]["statusCollection"]["fields"] == ["status"]
        assert specs["statefulsets.apps"]["pathDefinition"] == SHIPPED["statefulsets.apps"]["pathDefinition"]
        assert "autoMigration" not in specs["deployments.apps"]
        assert "ingresses.networking.k8s.io" not in specs
        assert specs["networkpolicies.networking.k8s.io"] == derived

        # What was brought up to date can be taken back for good.
        await host.merge(FEDERATED_TYPE_CONFIGS, "statefulsets.apps", {"spec": {"pathDefinition": None}})
        await host.user.delete(FEDERATED_TYPE_CONFIGS, "priorityclasses.scheduling.k8s.io")
        released: Object = {"metadata": {"finalizers": None}}  # by the typeconfig controller
        await host.merge(FEDERATED_TYPE_CONFIGS, "priorityclasses.scheduling.k8s.io", released)
        await ensure_types(host.client)
        specs = await _specs(host)
        assert "pathDefinition" not in specs["statefulsets.apps"]
        assert "priorityclasses.scheduling.k8s.io" not in specs


RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}


def _webhooks(name: str, **client_config: Any) -> Object:
    webhook = {"name": f"{name}.example.com", "clientConfig": client_config, "rules": [RULE], "sideEffects": "None"}
    metadata = {"name": name}
    return {"metadata": metadata, "webhooks": [{**webhook, "admissionReviewVersions": ["v1"]}]}


def _binding(name: str, **labels: str) -> Object:
    spec = {"policyName": "absent", "validationActions": ["Deny"]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def _labelled(host: Host) -> dict[str, str]:
    found = {}
    for resource in ACTING:
        for obj in (await host.user.list(resource)).items:
            if names.ACTS_ON_HOST in (obj["metadata"].get("labels") or {}):
                found[obj["metadata"]["name"]] = obj["metadata"]["labels"][names.ACTS_ON_HOST]
    return found


async def test_what_acts_on_a_host_of_an_earlier_version_is_labelled_once() -> None:
    async with a_host() as host:
        await _as_an_earlier_version(host)
        await host.user.create(VALIDATING_WEBHOOKS, _webhooks("by-url", url="https://example.com/"))
        service = {"namespace": "operator", "name": "webhook"}
        await host.user.create(VALIDATING_WEBHOOKS, _webhooks("by-service", service=service))
        await host.user.create(ADMISSION_POLICY_BINDINGS, _binding("acts"))
        await host.user.create(ADMISSION_POLICY_BINDINGS, _binding("chosen", **{names.ACTS_ON_HOST: "false"}))
        await ensure_types(host.client, keeps_effects=True)
        # The host could never call a service, so the configuration that names one did nothing but refuse.
        assert await _labelled(host) == {"by-url": "true", "acts": "true", "chosen": "false"}
        await host.user.create(ADMISSION_POLICY_BINDINGS, _binding("later"))
        await ensure_types(host.client, keeps_effects=True)
        assert "later" not in await _labelled(host)


async def test_nothing_is_labelled_on_a_new_host_at_any_start() -> None:
    async with a_host() as host:
        await ensure_types(host.client, keeps_effects=True)
        await host.user.create(ADMISSION_POLICY_BINDINGS, _binding("later"))
        await ensure_types(host.client, keeps_effects=True)
        assert await _labelled(host) == {}


class _RefusingLabels(LocalClient):
    """Refuses to label admission policies."""

    async def patch(self, resource: Resource, name: str, body: Any, **options: Any) -> Object:
        if resource == ADMISSION_POLICY_BINDINGS:
            raise Conflict("refused by another webhook")
        return await super().patch(resource, name, body, **options)


async def test_kinds_that_act_on_the_host_are_not_federated_before_their_objects_are_labelled() -> None:
    async with a_host() as host:
        await _as_an_earlier_version(host)
        await host.user.create(ADMISSION_POLICY_BINDINGS, _binding("acts"))
        await ensure_types(_RefusingLabels(host.registry), keeps_effects=True)
        acting = {resource.group_resource for resource in ACTING}
        assert not acting & (await _specs(host)).keys()
        assert "ingressclasses.networking.k8s.io" in await _specs(host)
        await ensure_types(host.client, keeps_effects=True)
        assert await _specs(host) == SHIPPED
        assert await _labelled(host) == {"acts": "true"}


class _Dying(LocalClient):
    """Fails after a number of writes, as a process that is killed."""

    left = 0

    async def create(self, resource: Resource, obj: Object, **options: Any) -> Object:
        self._spend()
        return await super().create(resource, obj, **options)

    async def patch(self, resource: Resource, name: str, body: Any, **options: Any) -> Object:
        self._spend()
        return await super().patch(resource, name, body, **options)

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _KilledError


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "earlier"])
async def test_a_start_that_is_interrupted_at_any_write_is_completed_by_the_next_one(is_new: bool) -> None:
    for writes in range(30 if is_new else 8):
        async with a_host() as host:
            if not is_new:
                await _as_an_earlier_version(host)
            dying = _Dying(host.registry)
            dying.left = writes
            try:
                await ensure_types(dying)
            except _KilledError:
                await ensure_types(host.client)
            assert await _specs(host) == SHIPPED


async def test_a_damaged_record_stops_nothing_and_changes_nothing() -> None:
    async with a_host() as host:
        await _as_an_earlier_version(host)
        metadata = {"name": names.SHIPPED_TYPES, "namespace": names.SYSTEM_NAMESPACE}
        damaged = {"statefulsets.apps": "[]", "jobs.batch": "{", "cronjobs.batch": "{}"}
        await host.user.create(CONFIGMAPS, {"metadata": metadata, "data": damaged})
        await ensure_types(host.client)
        specs = await _specs(host)
        assert "pathDefinition" not in specs["statefulsets.apps"]
        assert "pathDefinition" not in specs["jobs.batch"]
        assert (await host.user.get(CONFIGMAPS, names.SHIPPED_TYPES, names.SYSTEM_NAMESPACE))["data"][
            "jobs.batch"
        ] == "{"


class _Refusing(LocalClient):
    """Refuses one patch, as for a configuration that somebody changes at the same time."""

    async def patch(self, resource: Resource, name: str, body: Any, **options: Any) -> Object:
        if name == "jobs.batch":
            raise Conflict("it was changed")
        return await super().patch(resource, name, body, **options)


async def test_a_configuration_that_cannot_be_written_is_updated_by_a_later_start() -> None:
    async with a_host() as host:
        await _as_an_earlier_version(host)
        await ensure_types(_Refusing(host.registry))
        specs = await _specs(host)
        assert "pathDefinition" not in specs["jobs.batch"]
        assert specs["statefulsets.apps"] == SHIPPED["statefulsets.apps"]
        await ensure_types(host.client)
        assert await _specs(host) == SHIPPED
