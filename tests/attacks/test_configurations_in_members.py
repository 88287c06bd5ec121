"""Tenants and objects that act on an API server: no right of a namespace reaches them, here or in a member."""

from typing import Any

import pytest
from tests.support.manifests import a_policy, an_override
from tests.support.world import a_world

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIGMAPS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.planning.federatedobject.hosteffect import ACTING

SERVICE = {"service": {"namespace": "default", "name": "of-a-tenant"}}


def _selecting(*resources: Resource, **metadata: Any) -> Object:
    selectors = [{"apiVersion": each.api_version, "kind": each.kind} for each in resources]
    policy = a_policy({}, name="tenant", resourceSelectors=selectors)
    return {**policy, "metadata": {**policy["metadata"], **metadata}}


def _webhooks(**labels: str) -> Object:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}
    webhook = {"name": "steal.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [rule]}
    webhook |= {"sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"}
    metadata = {"name": "checks", "labels": labels}
    return {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": metadata,
        "webhooks": [webhook],
    }


def _admission_policy() -> tuple[Object, Object]:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'refused'"}],
    }
    bound = {"policyName": "guard", "validationActions": ["Deny"]}
    return {"metadata": {"name": "guard"}, "spec": spec}, {"metadata": {"name": "guard"}, "spec": bound}


async def test_a_policy_of_a_namespace_neither_places_nor_silences_what_acts_on_the_host() -> None:
    async with a_world(members=("east",)) as world:
        policy, binding = _admission_policy()
        await world.create(ADMISSION_POLICIES, policy)
        await world.create(ADMISSION_POLICY_BINDINGS, binding)
        await world.create(VALIDATING_WEBHOOKS, _webhooks())
        await world.create(PROPAGATION_POLICIES, _selecting(*ACTING))
        await world.settle()
        refused = {"metadata": {"name": "refused", "namespace": "default"}}
        with pytest.raises(Exception, match="guard"):
            await world.user.create(CONFIGMAPS, refused)
        for resource, name in ((VALIDATING_WEBHOOKS, "checks"), (ADMISSION_POLICIES, "guard")):
            found = await world.find(resource, name, "")
            assert found is not None
            assert not found["metadata"].get("finalizers")
            assert await world.members["east"].find(resource, name, "") is None


async def test_a_label_of_a_namespaces_policy_on_a_configuration_has_no_effect() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, _selecting(CONFIGMAPS))
        await world.settle()
        await world.create(VALIDATING_WEBHOOKS, _webhooks(**{names.PROPAGATION_POLICY_LABEL: "tenant"}))
        await world.settle()
        found = await world.find(VALIDATING_WEBHOOKS, "checks", "")
        assert found is not None
        assert not found["metadata"].get("finalizers")
        assert await world.members["east"].find(VALIDATING_WEBHOOKS, "checks", "") is None


async def test_an_override_policy_of_a_namespace_does_not_redirect_a_webhook_in_a_member() -> None:
    async with a_world(members=("east",)) as world:
        everywhere = _selecting(VALIDATING_WEBHOOKS)
        del everywhere["metadata"]["namespace"]
        await world.create(CLUSTER_PROPAGATION_POLICIES, {**everywhere, "kind": "ClusterPropagationPolicy"})
        redirect = an_override("east", "/webhooks/0/clientConfig", SERVICE)
        selectors = [{"apiVersion": VALIDATING_WEBHOOKS.api_version, "kind": VALIDATING_WEBHOOKS.kind}]
        redirect["spec"]["resourceSelectors"] = selectors
        await world.create(OVERRIDE_POLICIES, redirect)
        await world.settle()
        await world.create(
            VALIDATING_WEBHOOKS, _webhooks(**{names.OVERRIDE_POLICY_LABEL: redirect["metadata"]["name"]})
        )
        await world.settle()
        delivered = await world.members["east"].find(VALIDATING_WEBHOOKS, "checks", "")
        assert delivered is not None
        assert delivered["webhooks"][0]["clientConfig"] == {"url": "https://127.0.0.1:1/"}
