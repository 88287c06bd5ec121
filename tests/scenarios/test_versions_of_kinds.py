"""The upgrade of an operator: its definition gets a version, stores it, and serves the earlier one no more."""

from typing import Any

import pytest
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
from federation.planning.federatedobject.imported import adoption_annotations
from federation.planning.typederivation import custom_config

NEW = Resource("example.com", "v1", "Widget", "widgets")
OLD = NEW._replace(version="v1beta1")
NAME = NEW.group_resource
FEDERATED = f"one-{NAME}"


def _version(name: str, *fields: str, served: bool = True, storage: bool = False) -> Object:
    properties = {field: {"type": "string"} for field in fields}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}}


BEFORE = [_version("v1beta1", "size", storage=True)]
BOTH = [_version("v1beta1", "size"), _version("v1", "size", "color", storage=True)]
AFTER = [_version("v1beta1", "size", served=False), BOTH[1]]


def _definition(versions: list[Object]) -> Object:
    kind = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": NAME},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": kind, "versions": versions},
    }


def _widget(resource: Resource, **spec: str) -> Object:
    metadata = {"name": "one", "namespace": "default"}
    return {"apiVersion": resource.api_version, "kind": "Widget", "metadata": metadata, "spec": spec}


def _selecting(*resources: Resource) -> Object:
    selectors = [{"apiVersion": each.api_version, "kind": each.kind} for each in resources]
    return a_policy({}, resourceSelectors=selectors, schedulingMode="Duplicate")


async def _place_definition(world: World, versions: list[Object]) -> None:
    await world.create(CRDS, _definition(versions))
    policy = _selecting(CRDS)
    del policy["metadata"]["namespace"]
    await world.create(CLUSTER_PROPAGATION_POLICIES, {**policy, "kind": "ClusterPropagationPolicy"})


async def _copies(world: World, resource: Resource) -> list[Any]:
    found = []
    for member in world.members.values():
        definition = await member.find(CRDS, NAME, "")
        served = {each["name"] for each in (definition or {"spec": {"versions": ()}})["spec"]["versions"]}
        copy = await member.find(resource, "one") if resource.version in served else None
        found.append(None if copy is None else copy["spec"])
    return found


async def _standing(world: World) -> tuple[str, str] | None:
    config = await world.find(FEDERATED_TYPE_CONFIGS, NAME)
    found = conditions.find(((config or {}).get("status") or {}).get("conditions"), names.VERSION_CURRENT)
    return None if found is None else (found["reason"], found["message"])


@pytest.mark.parametrize("selected", [OLD, NEW], ids=lambda each: str(each.version))
async def test_objects_follow_the_stored_version_whatever_version_their_policy_names(selected: Resource) -> None:
    async with a_world(members=("east", "north")) as world:
        await _place_definition(world, BEFORE)
        await world.create(OLD, _widget(OLD, size="s"))
        await world.create(PROPAGATION_POLICIES, _selecting(selected))
        await world.until_equal(lambda: _copies(world, OLD), [{"size": "s"}, {"size": "s"}])
        written = [await member.admin.get(OLD, "one", "default") for member in world.members.values()]

        await world.merge(CRDS, NAME, {"spec": {"versions": BOTH}})
        await world.until_equal(lambda: _standing(world), ("Stored", ""))
        await world.settle()
        federated = await world.user.get(FEDERATED_OBJECTS, FEDERATED, "default")
        assert federated["spec"]["template"]["apiVersion"] == NEW.api_version
        assert [owner["apiVersion"] for owner in federated["metadata"]["ownerReferences"]] == [NEW.api_version]
        # What they say is the same, so nothing is written in the members.
        copies = [await member.admin.get(NEW, "one", "default") for member in world.members.values()]
        assert [copy["metadata"]["generation"] for copy in copies] == [
            copy["metadata"]["generation"] for copy in written
        ]

        await world.merge(NEW, "one", {"spec": {"color": "blue"}})
        await world.until_equal(lambda: _copies(world, NEW), [{"size": "s", "color": "blue"}] * 2)
        await world.merge(CRDS, NAME, {"spec": {"versions": AFTER}})
        await world.merge(NEW, "one", {"spec": {"size": "m"}})
        await world.until_equal(lambda: _copies(world, NEW), [{"size": "m", "color": "blue"}] * 2)
        assert (await world.user.get(NEW, "one", "default"))["spec"] == {"size": "m", "color": "blue"}

        await world.user.delete(NEW, "one", "default")
        await world.until_equal(lambda: _copies(world, NEW), [None, None])
        await world.until_gone(NEW, "one")


async def test_a_configuration_of_a_user_stays_and_names_the_remedy() -> None:
    async with a_world(members=("east",)) as world:
        await _place_definition(world, BOTH)
        config = custom_config(_definition(BOTH), "v1beta1")
        await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": {"name": NAME}})
        await world.create(NEW, _widget(NEW, size="s", color="blue"))
        await world.create(PROPAGATION_POLICIES, _selecting(NEW))
        await world.until_equal(lambda: _copies(world, OLD), [{"size": "s"}])
        standing = await _standing(world)
        assert standing is not None
        assert standing[0] == "NotStored"

        await world.merge(CRDS, NAME, {"spec": {"versions": AFTER}})
        remedy = f"set spec.sourceType.version of FederatedTypeConfig {NAME} to v1, the version that it stores"

        async def names_the_remedy() -> bool:
            found = await _standing(world)
            return found is not None and found[0] == "NotServed" and found[1].endswith(remedy)

        await world.until(names_the_remedy)
        await world.merge(FEDERATED_TYPE_CONFIGS, NAME, {"spec": {"sourceType": {"version": "v1"}}})
        await world.until_equal(lambda: _standing(world), ("Stored", ""))
        await world.until_equal(lambda: _copies(world, NEW), [{"size": "s", "color": "blue"}])
        assert (await world.user.get(NEW, "one", "default"))["spec"] == {"size": "s", "color": "blue"}


def _described(name: str, *, storage: bool, **more: Any) -> Object:
    """Return a version with a status and a scale subresource; each later version has more fields."""
    number, text = {"type": "integer"}, {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": number} | more},
            "status": {"type": "object", "properties": {"size": number} | ({"phase": text} if storage else {})},
        },
    }
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    subresources = {"status": {}, "scale": scale}
    return {
        "name": name,
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": subresources,
    }


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1"])
async def test_no_write_of_ours_takes_a_field_of_the_stored_version(version: str) -> None:
    """Finalizers, feedback annotations, statuses and releases, with a configuration of every version."""
    text = {"type": "string"}
    parts = {"type": "object", "properties": {"weight": {"type": "integer"}}}
    versions = [
        _described("v1alpha1", storage=False),
        _described("v1beta1", storage=False, color=text),
        _described("v1", storage=True, color=text, parts=parts),
    ]
    spec: Object = {"size": 4, "color": "blue", "parts": {"weight": 7}}

    async with a_world(members=("east", "north")) as world:
        await _place_definition(world, versions)
        config = custom_config(_definition(versions), version)
        await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": {"name": NAME}})
        for name in ("one", "two"):
            widget = {**_widget(NEW), "spec": spec}
            widget["metadata"] = {**widget["metadata"], "name": name}
            await world.create(NEW, widget)
            await world.user.patch(NEW, name, {"status": {"phase": "Ours"}}, namespace="default", subresource="status")
        seen: list[str] = []

        async def check(step: str) -> None:
            for obj in (await world.user.list(NEW, "default")).items:
                assert obj["spec"] == spec, f"after {step}"
                assert obj["status"]["phase"] == "Ours", f"after {step}"
            seen.append(step)

        # Finalizers are added to what exists already, and placements are written into annotations.
        await world.create(PROPAGATION_POLICIES, _selecting(NEW))

        async def is_held() -> bool:
            held = (await world.user.list(NEW, "default")).items
            annotations = (each["metadata"].get("annotations") or {} for each in held)
            return all(each["metadata"].get("finalizers") for each in held) and all(map(bool, annotations))

        await world.until(is_held)
        await check("the finalizer and the annotations")

        # The status of members is merged into the status of the source.
        served = NEW._replace(version=version)

        async def is_merged() -> bool:
            for member in world.members.values():
                if await member.admin.get(CRDS, NAME) and await member.find(served, "one") is None:
                    return False
                status = {"size": 2, "phase": "Ours"}  # in v1, where the status of members says all of it
                await member.admin.patch(served, "one", {"status": status}, namespace="default", subresource="status")
            return "size" in (await world.user.get(NEW, "one", "default"))["status"]

        await world.until(is_merged)
        await check("the merged status")

        # The finalizer leaves with the configuration, and with the object.
        await world.user.delete(NEW, "two", "default")
        await world.until_gone(NEW, "two")
        await check("the deletion of another one")
        await world.user.delete(PROPAGATION_POLICIES, "divide", "default")  # else the configuration is derived again
        await world.merge(FEDERATED_TYPE_CONFIGS, NAME, {"metadata": {"annotations": {names.ORPHAN: "all"}}})
        await world.user.delete(FEDERATED_TYPE_CONFIGS, NAME)
        await world.until_gone(FEDERATED_TYPE_CONFIGS, NAME, "")
        await check("the end of its federation")
        assert len(seen) == 4


async def test_fields_that_only_a_member_has_survive_adoption_delivery_and_release() -> None:
    async with a_world(members=("east",)) as world:
        member = world.members["east"].admin
        await member.create(CRDS, _definition(BOTH))
        await member.create(NEW, _widget(NEW, size="s", color="blue"))
        await world.create(CRDS, _definition(BEFORE))
        config = custom_config(_definition(BEFORE), OLD.version)
        await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": {"name": NAME}})
        widget = _widget(OLD, size="s")
        widget["metadata"]["annotations"] = adoption_annotations({}, ["east"])
        await world.create(OLD, widget)
        await world.create(PROPAGATION_POLICIES, _selecting(OLD))

        async def managed() -> tuple[Any, Any]:
            copy = await member.get(NEW, "one", "default")
            return copy["spec"], (copy["metadata"].get("labels") or {}).get(names.MANAGED_LABEL)

        await world.until_equal(managed, ({"size": "s", "color": "blue"}, "true"))
        await world.merge(OLD, "one", {"spec": {"size": "m"}})
        await world.until_equal(managed, ({"size": "m", "color": "blue"}, "true"))
        await world.user.delete(OLD, "one", "default", propagation_policy="Orphan")
        await world.until_gone(OLD, "one")
        await world.until_equal(managed, ({"size": "m", "color": "blue"}, None))
