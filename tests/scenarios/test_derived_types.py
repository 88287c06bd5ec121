"""Kinds without a FederatedTypeConfig: one is derived when a policy selects them, within limits for tenants."""

from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_OBJECTS,
    FEDERATED_TYPE_CONFIGS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery import conditions
from federation.apimachinery.resources import CRDS, Object, Resource
from federation.features.types.names import EVENT_KIND_NOT_FEDERATED, EVENT_TYPE_CONFIG_DERIVED
from federation.planning.federatedobject.naming import federated_object_name
from federation.scheduling.names import REASON_AWAITS_DEFINITION

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
NAME = "widgets.example.com"


def _definition() -> Object:
    properties = {"size": {"type": "integer"}}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "properties": properties},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
        "schema": {"openAPIV3Schema": schema},
    }
    kind = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": NAME},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": [version]},
    }


def _widget(size: int) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"size": size},
    }


def _selectors(*resources: Resource) -> list[Object]:
    return [{"apiVersion": resource.api_version, "kind": resource.kind} for resource in resources]


def _cluster_wide(name: str, *resources: Resource, **spec: Any) -> Object:
    policy = a_policy({}, name=name, resourceSelectors=_selectors(*resources), **spec)
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


async def _sizes(world: World) -> dict[str, int]:
    found = {}
    for name, member in world.members.items():
        if await member.find(CRDS, NAME, "") is not None and (widget := await member.find(WIDGETS, "one")) is not None:
            found[name] = widget["spec"]["size"]
    return found


async def test_a_custom_kind_and_its_definition_travel_without_a_configuration() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(CRDS, _definition())
        await world.create(WIDGETS, _widget(4))
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("widgets", WIDGETS, schedulingMode="Divide"))
        # Before the definition is in the members, the widget waits, and its policy's event says what was created.
        await world.until(lambda: world.find(FEDERATED_TYPE_CONFIGS, NAME))
        await world.settle()
        assert await _sizes(world) == {}
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("kinds", CRDS, schedulingMode="Duplicate"))
        await world.until_equal(lambda: _sizes(world), {"east": 2, "north": 2})
        assert (
            EVENT_TYPE_CONFIG_DERIVED,
            f"created FederatedTypeConfig {NAME} for Widget.example.com",
        ) in (await world.events())

        # It belongs to administrators from now on.
        await world.merge(FEDERATED_TYPE_CONFIGS, NAME, {"metadata": {"labels": {names.DERIVED_TYPE: None}}})
        await world.restart()
        await world.settle()
        config = await world.find(FEDERATED_TYPE_CONFIGS, NAME)
        assert config is not None
        assert names.DERIVED_TYPE not in (config["metadata"].get("labels") or {})


async def test_a_label_is_enough_for_an_object_of_a_kind_that_its_policy_selects() -> None:
    """The selector need not match the object: the policy's kind is watched, so its label is seen, old or new."""
    async with a_world(members=("east", "north")) as world:
        await world.create(CRDS, _definition())
        widget = _widget(4)
        widget["metadata"]["labels"] = {names.CLUSTER_PROPAGATION_POLICY_LABEL: "widgets"}
        await world.create(WIDGETS, widget)  # before any policy
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("kinds", CRDS, schedulingMode="Duplicate"))
        policy = _cluster_wide("widgets", WIDGETS, schedulingMode="Duplicate")
        policy["spec"]["resourceSelectors"][0]["labelSelector"] = {"matchLabels": {"tier": "gold"}}
        await world.create(CLUSTER_PROPAGATION_POLICIES, policy)
        await world.until_equal(lambda: _sizes(world), {"east": 4, "north": 4})

        label = {"metadata": {"labels": {names.CLUSTER_PROPAGATION_POLICY_LABEL: None}}}
        await world.merge(WIDGETS, "one", label)
        await world.settle()
        label["metadata"]["labels"][names.CLUSTER_PROPAGATION_POLICY_LABEL] = "widgets"
        await world.merge(WIDGETS, "one", {**label, "spec": {"size": 5}})
        await world.until_equal(lambda: _sizes(world), {"east": 5, "north": 5})


async def test_a_policy_of_a_namespace_federates_no_custom_kind_until_administrators_place_its_definition() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(CRDS, _definition())
        await world.create(WIDGETS, _widget(4))
        policy = a_policy({"east": 1}, resourceSelectors=_selectors(WIDGETS), schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)

        async def was_refused() -> bool:
            found = [text for reason, text in await world.events() if reason == EVENT_KIND_NOT_FEDERATED]
            return any("an administrator must place the CustomResourceDefinition" in text for text in found)

        await world.until(was_refused)
        await world.pass_time(40)
        assert await world.find(FEDERATED_TYPE_CONFIGS, NAME) is None
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("kinds", CRDS, schedulingMode="Duplicate"))
        await world.until_equal(lambda: _sizes(world), {"east": 4})


async def test_kinds_that_belong_to_one_cluster_are_refused() -> None:
    async with a_world(members=("east",)) as world:
        nodes = Resource("", "v1", "Node", "nodes", namespaced=False)
        leases = Resource("coordination.k8s.io", "v1", "Lease", "leases")
        before = {config["metadata"]["name"] for config in (await world.user.list(FEDERATED_TYPE_CONFIGS)).items}
        await world.create(
            CLUSTER_PROPAGATION_POLICIES, _cluster_wide("greedy", nodes, leases, schedulingMode="Duplicate")
        )

        async def refused() -> int:
            return len({text for reason, text in await world.events() if reason == EVENT_KIND_NOT_FEDERATED})

        await world.until_equal(refused, 2)
        await world.settle()
        after = {config["metadata"]["name"] for config in (await world.user.list(FEDERATED_TYPE_CONFIGS)).items}
        assert after == before


async def test_an_object_that_comes_with_its_definition_waits_until_every_member_serves_it() -> None:
    """The policy does not follow what clusters serve, so a decision without a member would stay without it."""
    async with a_world(members=("east", "north")) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("kinds", CRDS, schedulingMode="Duplicate"))
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("widgets", WIDGETS, schedulingMode="Duplicate"))
        world.members["north"].line.mode = "down"
        await world.create(CRDS, _definition())
        await world.create(WIDGETS, _widget(4))

        async def reason() -> Any:
            federated = await world.find(FEDERATED_OBJECTS, federated_object_name("one", NAME))
            found = ((federated or {}).get("status") or {}).get("conditions")
            return (conditions.find(found, names.SCHEDULED) or {}).get("reason")

        await world.until_equal(reason, REASON_AWAITS_DEFINITION)
        world.members["north"].line.mode = "up"
        await world.until_equal(lambda: _sizes(world), {"east": 4, "north": 4})


async def test_an_object_does_not_wait_for_ever_for_a_member_that_cannot_get_its_definition() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("kinds", CRDS, schedulingMode="Duplicate"))
        await world.create(CLUSTER_PROPAGATION_POLICIES, _cluster_wide("widgets", WIDGETS, schedulingMode="Duplicate"))
        world.members["north"].line.mode = "down"
        await world.create(CRDS, _definition())
        await world.create(WIDGETS, _widget(4))
        await world.until_equal(lambda: _sizes(world), {"east": 4})
        world.members["north"].line.mode = "up"
        await world.until_equal(lambda: _sizes(world), {"east": 4, "north": 4})
