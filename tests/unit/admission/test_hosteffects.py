"""Warnings about objects that do not act on the host, and the label that chooses."""

from typing import Any

import pytest

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.effect import Effect, EffectOf
from federation.apimachinery.errors import BadRequest, Invalid
from federation.apimachinery.resources import ADMISSION_POLICIES, CRDS, VALIDATING_WEBHOOKS, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.assembly import protect_federated_objects
from federation.client.local import LocalClient
from federation.features.types.shippedtypes import ensure_types
from federation.planning.federatedobject.hosteffect import effect_on_host

SERVICE = {"service": {"namespace": "operator", "name": "webhook"}}
URL = {"url": "https://127.0.0.1:1/"}


def unselected(resource: Resource, obj: Object) -> Effect:
    return effect_on_host(resource, obj, is_selected=False)


def selected(resource: Resource, obj: Object) -> Effect:
    return effect_on_host(resource, obj, is_selected=True)


class Host:
    """An API server on which a user writes."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    async def create(self, resource: Resource, obj: Object) -> list[str]:
        """Create an object and return the warnings."""
        options = WriteOptions(user=lambda: {"username": "alice"})
        info = self.registry.kinds.lookup(resource.group, resource.version, resource.plural)
        await self.registry.create(
            info, "", {"apiVersion": resource.api_version, "kind": resource.kind, **obj}, options
        )
        return options.warnings


async def a_host(effect_of: EffectOf) -> Host:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.install_crds(crd_manifests())
    protect_federated_objects(registry, clock, effect_of=effect_of)
    await ensure_types(LocalClient(registry, user_agent="test"))
    return Host(registry)


def webhooks(*configs: Object, **labels: str) -> Object:
    rule = {"operations": ["CREATE"], "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}
    shared = {"rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    found = [{"name": f"w{i}.example.com", "clientConfig": each, **shared} for i, each in enumerate(configs)]
    return {"metadata": {"name": "checks", "labels": labels}, "webhooks": found}


def a_policy(**labels: str) -> Object:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    spec: Object = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    return {"metadata": {"name": "pods", "labels": labels}, "spec": spec}


def a_definition(client_config: Object | None) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names_ = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec: Object = {"group": "example.com", "scope": "Namespaced", "names": names_, "versions": versions}
    if client_config is not None:
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client_config}
        spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


@pytest.mark.parametrize(
    ("effect_of", "resource", "obj", "expected"),
    [
        (unselected, VALIDATING_WEBHOOKS, webhooks(SERVICE), 'does not call the webhook "w0.example.com"'),
        (unselected, VALIDATING_WEBHOOKS, webhooks(URL, SERVICE), 'does not call the webhook "w1.example.com"'),
        (unselected, VALIDATING_WEBHOOKS, webhooks(*[SERVICE] * 5), '"w2.example.com" and 2 more'),
        (unselected, VALIDATING_WEBHOOKS, webhooks(URL), ""),
        (selected, VALIDATING_WEBHOOKS, webhooks(URL), "acts in members only"),
        (selected, VALIDATING_WEBHOOKS, webhooks(SERVICE, **{names.ACTS_ON_HOST: "true"}), ""),
        (unselected, VALIDATING_WEBHOOKS, webhooks(URL, **{names.ACTS_ON_HOST: "false"}), "acts in members only"),
        (unselected, ADMISSION_POLICIES, a_policy(), ""),
        (selected, ADMISSION_POLICIES, a_policy(), "acts in members only"),
        (selected, CRDS, a_definition(None), ""),
        (selected, CRDS, a_definition(URL), ""),
        (unselected, CRDS, a_definition(SERVICE), "the conversion webhook acts in members only"),
    ],
)
async def test_what_does_not_act_on_the_host_is_said_when_it_is_written(
    effect_of: EffectOf, resource: Resource, obj: Object, expected: str
) -> None:
    host = await a_host(effect_of)
    warnings = await host.create(resource, obj)
    assert (len(warnings), expected in "".join(warnings)) == (bool(expected), True)


async def test_a_label_with_another_value_is_refused() -> None:
    host = await a_host(unselected)
    with pytest.raises(Invalid, match=r'"yes": supported values: "true", "false"'):
        await host.create(VALIDATING_WEBHOOKS, webhooks(URL, **{names.ACTS_ON_HOST: "yes"}))


@pytest.mark.parametrize(
    ("labels", "kind", "expected"),
    [
        ({}, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy pods: delivered to members, and without effect"),
        ({names.ACTS_ON_HOST: "true"}, "ValidatingAdmissionPolicy", ""),
        ({}, "ValidatingWebhookConfiguration", ""),
    ],
    ids=["acts", "labelled", "of another kind"],
)
async def test_a_policy_that_ends_the_effect_of_an_object_says_so(
    labels: dict[str, str], kind: str, expected: str
) -> None:
    host = await a_host(unselected)
    await host.create(ADMISSION_POLICIES, a_policy(**labels))
    selector = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
    policy: dict[str, Any] = {"metadata": {"name": "all"}}
    policy["spec"] = {"schedulingMode": "Duplicate", "resourceSelectors": [selector]}
    warnings = [text for text in await host.create(CLUSTER_PROPAGATION_POLICIES, policy) if "effect" in text]
    assert (len(warnings), expected in "".join(warnings)) == (bool(expected), True)


def two_versions() -> Object:
    definition = a_definition(SERVICE)
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    older = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "scale": {"type": "integer"}}}}
    for name, fields in (("v1", properties), ("v1beta1", older)):
        schema = {"openAPIV3Schema": {"type": "object", "properties": fields}}
        definition["spec"]["versions"].append({"name": name, "served": True, "storage": name == "v1", "schema": schema})
    definition["spec"]["versions"].pop(0)
    return definition


async def test_objects_that_need_no_conversion_are_stored_in_any_version_and_others_are_refused() -> None:
    host = await a_host(unselected)
    await host.create(CRDS, two_versions())
    client = LocalClient(host.registry, user_agent="test")
    older = Resource("example.com", "v1beta1", "Widget", "widgets")
    metadata = {"name": "one", "namespace": "default"}
    await client.create(older, {"metadata": metadata, "spec": {"size": 3}})
    newer = await client.get(older._replace(version="v1"), "one", "default")
    assert (newer["apiVersion"], newer["spec"]) == ("example.com/v1", {"size": 3})
    with pytest.raises(BadRequest, match=r"write it in example\.com/v1"):
        await client.create(older, {"metadata": {**metadata, "name": "two"}, "spec": {"scale": 3}})
