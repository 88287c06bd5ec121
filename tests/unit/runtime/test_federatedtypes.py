"""The types in force follow their configurations."""

import pytest

from federation.api.federatedtype import default_type_configs, from_config
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.client.client import PatchType
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers


class FakeInformers:
    """Gives out an informer that the test feeds by hand."""

    def __init__(self) -> None:
        self.handlers = []

    def for_resource(self, resource):
        assert resource is FEDERATED_TYPE_CONFIGS
        return self

    def add_handler(self, handler) -> None:
        self.handlers.append(handler)

    def change(self, old, new) -> None:
        for handler in self.handlers:
            handler(old, new)


def a_config(name: str = "deployments.apps", **spec):
    (config,) = [c for c in default_type_configs() if c["metadata"]["name"] == "deployments.apps"]
    return {**config, "metadata": {"name": name}, "spec": {**config["spec"], **spec}}


@pytest.fixture
def source() -> FakeInformers:
    return FakeInformers()


@pytest.fixture
def types(source) -> FederatedTypes:
    return FederatedTypes(source, from_config)


def test_a_type_is_found_by_kind_resource_object_and_name(types, source) -> None:
    source.change(None, a_config())
    found = types.for_group_kind("apps", "Deployment")
    assert found is not None
    assert types.for_resource(found.resource) is found
    assert types.for_object({"apiVersion": "apps/v1", "kind": "Deployment"}) is found
    assert types.for_group_kind("apps", "Deployment") is found
    assert types.by_name("deployments.apps") is found
    assert types.all() == [found]
    assert types.for_object({"apiVersion": "apps/v1beta1", "kind": "Deployment"}) is found
    assert types.for_resource(found.resource._replace(version="v2")) is found
    assert types.for_object({"kind": "Pod"}) is None
    assert types.for_group_kind("", "Deployment") is None
    assert types.by_name("x") is None


def test_listeners_get_added_changed_and_removed_types(types, source) -> None:
    heard: list[str] = []
    source.change(None, a_config())
    end = types.add_listener(
        lambda type_: heard.append(f"+{type_.name} {type_.aggregate}"), lambda type_: heard.append(f"-{type_.name}")
    )
    source.change(a_config(), {**a_config(), "status": {"any": 1}})
    assert heard == ["+deployments.apps True"]
    changed = a_config(statusAggregation={"enabled": False})
    source.change(a_config(), changed)
    source.change(changed, None)
    assert heard[1:] == ["-deployments.apps", "+deployments.apps False", "-deployments.apps"]
    end()
    source.change(None, a_config())
    assert len(heard) == 4


def test_of_two_configurations_of_one_kind_the_first_name_holds(types, source) -> None:
    source.change(None, a_config("b"))
    source.change(None, a_config("c"))
    assert [type_.name for type_ in types.all()] == ["b"]
    assert types.ignored == {"c": "deployments.apps is federated by b already"}
    source.change(None, a_config("a"))
    assert [type_.name for type_ in types.all()] == ["a"]
    source.change(a_config("a"), None)
    source.change(a_config("b"), None)
    assert [type_.name for type_ in types.all()] == ["c"]
    assert types.ignored == {}


def test_an_unusable_configuration_is_ignored_with_a_reason(types, source) -> None:
    good, bad = a_config(), a_config(sourceType={"kind": "Deployment"})
    source.change(None, good)
    source.change(good, bad)
    assert types.all() == []
    assert types.ignored == {"deployments.apps": "spec.sourceType.version: Required value"}
    source.change(bad, good)
    assert len(types.all()) == 1
    source.change(good, bad)
    source.change(bad, None)
    assert types.ignored == {}


def test_a_configuration_that_changes_its_kind_frees_the_old_one(types, source) -> None:
    source.change(None, a_config())
    pods = a_config(
        sourceType={"version": "v1", "kind": "Pod", "pluralName": "pods", "group": "", "scope": "Namespaced"}
    )
    source.change(a_config(), pods)
    assert [type_.resource.kind for type_ in types.all()] == ["Pod"]


async def test_types_follow_the_configurations_on_the_host(client, server, clock, start, settle) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "federatedtypeconfigs.core.kubeadmiral.io"},
        "spec": {
            "group": "core.kubeadmiral.io",
            "scope": "Cluster",
            "names": {
                "kind": "FederatedTypeConfig",
                "plural": "federatedtypeconfigs",
                "singular": "federatedtypeconfig",
                "listKind": "FederatedTypeConfigList",
            },
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    await server.transport._registry.install_crds([crd])
    informers = Informers(client, clock=clock)
    types = FederatedTypes(informers, from_config)
    start(informers.run())
    await types.wait_synced()
    assert types.has_synced
    for config in default_type_configs()[:3]:
        await server.create(FEDERATED_TYPE_CONFIGS, config)
    await settle()
    assert len(types.all()) == 3
    patch = {"spec": {"statusAggregation": {"enabled": False}}}
    await server.patch(FEDERATED_TYPE_CONFIGS, "deployments.apps", patch, patch_type=PatchType.MERGE)
    await settle()
    assert not types.for_group_kind("apps", "Deployment").aggregate
