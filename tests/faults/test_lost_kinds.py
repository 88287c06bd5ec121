"""A member loses a kind, or serves it in another version, while objects of it are placed there: nothing is lost, all is told."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.faults.test_lying_worlds import told
from tests.support.invariants import violations_meanwhile
from tests.support.manifests import a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import CRDS, Object, Resource
from federation.planning.federatedobject.naming import federated_object_name

MEMBERS = ("east", "north")
WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
_NAME = "widgets.example.com"


def _definition(*served: str, storage: str = "v1") -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [
        {"name": name, "served": name in served, "storage": name == storage, "schema": schema} for name in ("v1", "v2")
    ]
    kinds = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": kinds, "versions": versions}
    return {
        "apiVersion": CRDS.api_version,
        "kind": "CustomResourceDefinition",
        "metadata": {"name": _NAME},
        "spec": spec,
    }


def _widget(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec or {"size": 1},
    }


async def _running(world: World) -> None:
    """Run widget `a` in both members; their definitions are their administrators'."""
    await world.user.create(CRDS, _definition("v1"))
    for member in world.members.values():
        await member.admin.create(CRDS, _definition("v1"))
    await _federate(world)
    await world.pass_time(60)  # until the clusters are known to serve it
    await _place(world)
    await world.create(WIDGETS, _widget("a"))
    await world.until_equal(lambda: _sizes(world, "a"), dict.fromkeys(MEMBERS, 1))
    await world.settle()


async def _federate(world: World) -> None:
    source = {
        "group": "example.com",
        "version": "v1",
        "kind": "Widget",
        "pluralName": "widgets",
        "scope": "Namespaced",
    }
    config: Object = {
        "apiVersion": FEDERATED_TYPE_CONFIGS.api_version,
        "kind": "FederatedTypeConfig",
        "metadata": {"name": _NAME},
        "spec": {"sourceType": source, "controllers": [["kubeadmiral.io/global-scheduler"]]},
    }
    await world.user.create(FEDERATED_TYPE_CONFIGS, config)


async def _place(world: World, **spec: Any) -> None:
    kinds = [{"apiVersion": "example.com/v1", "kind": "Widget"}]
    policy = a_policy(dict.fromkeys(MEMBERS, 1), schedulingMode="Duplicate", resourceSelectors=kinds, **spec)
    await world.create(PROPAGATION_POLICIES, policy)


async def _sizes(world: World, name: str) -> dict[str, int]:
    found = {}
    for member in world.members.values():
        try:
            widget = await member.find(WIDGETS, name)
        except NotFound:
            continue
        if widget is not None:
            found[member.name] = widget["spec"]["size"]
    return found


async def _loses(world: World) -> None:
    await world.members["east"].admin.delete(CRDS, _NAME)


async def _serves_another_version(world: World) -> None:
    spec = {"spec": _definition("v2", storage="v2")["spec"]}
    await world.members["east"].merge(CRDS, _NAME, spec, "")


async def _has_it_again(world: World) -> None:
    await world.members["east"].admin.create(CRDS, _definition("v1"))


async def _serves_both(world: World) -> None:
    spec = {"spec": _definition("v1", "v2", storage="v2")["spec"]}
    await world.members["east"].merge(CRDS, _NAME, spec, "")


Step = Callable[[World], Awaitable[None]]


@pytest.mark.parametrize(
    ("breaks", "mends"),
    [(_loses, _has_it_again), (_serves_another_version, _serves_both)],
    ids=["lost", "other version"],
)
@pytest.mark.parametrize("restarts", [pytest.param(False, id="watched"), pytest.param(True, id="restart")])
async def test_a_kind_that_is_gone_in_a_member_is_told_and_comes_back(
    breaks: Step, mends: Step, restarts: bool
) -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        await _running(world)
        await breaks(world)
        await world.create(WIDGETS, _widget("b"))
        await world.merge(WIDGETS, "a", {"spec": {"size": 2}})
        if restarts:
            await world.restart()
        for _ in range(30):
            await world.pass_time(4)
            found = await violations_meanwhile(world, {})
            assert not found, "\n".join(found)
            assert (await _sizes(world, "a")).get("north") == 1 + (await _sizes(world, "a") != {})
        assert await world.find(WIDGETS, "a") is not None
        said = await told(world)
        assert "the cluster does not serve example.com/v1 Widget" in said
        for name in ("a", "b"):
            assert not re.search(f"{name}-widgets.example.com Propagated=True", said), said
        await mends(world)
        await world.pass_time(60)
        await world.until_equal(lambda: _sizes(world, "a"), dict.fromkeys(MEMBERS, 2))
        await world.until_equal(lambda: _sizes(world, "b"), dict.fromkeys(MEMBERS, 1))


async def test_a_kind_is_federated_once_its_definition_arrives_and_again_after_its_deletion() -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        await _federate(world)
        await _place(world)
        await world.pass_time(60)
        await world.user.create(CRDS, _definition("v1"))
        await world.create(WIDGETS, _widget("a"))
        await world.pass_time(30)
        assert "didn't support this APIVersion" in await told(world)
        for member in world.members.values():
            await member.admin.create(CRDS, _definition("v1"))
        await world.until_equal(lambda: _sizes(world, "a"), dict.fromkeys(MEMBERS, 1))
        await world.settle()

        await world.user.delete(CRDS, _NAME)
        await world.until_equal(lambda: _sizes(world, "a"), {})
        await world.pass_time(30)
        await world.user.create(CRDS, _definition("v1"))
        await world.create(WIDGETS, _widget("b"))
        await world.until_equal(lambda: _sizes(world, "b"), dict.fromkeys(MEMBERS, 1))


_V2 = Resource("example.com", "v2", "Widget", "widgets")


@pytest.mark.parametrize("restarts", [pytest.param(False, id="watched"), pytest.param(True, id="restart")])
async def test_an_object_of_which_another_version_is_served_is_deleted_in_that_version(restarts: bool) -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        await _running(world)
        await _serves_another_version(world)
        await world.pass_time(60)
        if restarts:
            await world.restart()
        await world.user.delete(WIDGETS, "a", "default")
        await world.until_gone(WIDGETS, "a")
        assert await world.members["east"].find(_V2, "a") is None
        assert await world.members["north"].find(WIDGETS, "a") is None


async def test_a_cluster_that_serves_another_version_is_emptied_in_that_version() -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        await _running(world)
        await _serves_another_version(world)
        await world.pass_time(60)
        marked = {"metadata": {"annotations": {names.CASCADING_DELETE: "true"}}}
        await world.merge(FEDERATED_CLUSTERS, "east", marked)
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")
        assert await world.members["east"].find(_V2, "a") is None


async def test_what_a_silent_cluster_kept_is_removed_in_the_version_that_it_serves_when_it_answers() -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        await _running(world)
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.user.delete(WIDGETS, "a", "default")
        await world.until_gone(WIDGETS, "a")
        await _serves_another_version(world)
        east.line.mend()
        await world.until_equal(lambda: _kept(world), None)


async def _kept(world: World) -> Object | None:
    return await world.members["east"].find(_V2, "a")


@pytest.mark.parametrize("restarts", [pytest.param(False, id="watched"), pytest.param(True, id="restart")])
async def test_a_copy_comes_to_members_that_serve_its_kind_later(restarts: bool) -> None:
    async with a_world_without_pods(members=MEMBERS) as world:
        await world.user.create(CRDS, _definition("v1"))
        await _federate(world)
        await _place(world)
        await world.members["east"].admin.create(CRDS, _definition("v1"))
        await world.pass_time(60)
        await world.create(WIDGETS, _widget("a"))
        await world.until_equal(lambda: _sizes(world, "a"), {"east": 1})
        first = await world.members["east"].find(WIDGETS, "a")
        lacking = "placed without north, where example.com/v1 Widget is not served; completed when it is"
        federated = await world.user.get(FEDERATED_OBJECTS, federated_object_name("a", _NAME), "default")
        assert lacking in federated["metadata"]["annotations"][names.SCHEDULING_SUMMARY]
        await world.pass_time(600)
        assert await _sizes(world, "a") == {"east": 1}
        if restarts:
            await world.restart()
        await world.members["north"].admin.create(CRDS, _definition("v1"))
        await world.pass_time(60)
        await world.until_equal(lambda: _sizes(world, "a"), dict.fromkeys(MEMBERS, 1))
        kept = await world.members["east"].find(WIDGETS, "a")
        assert first is not None
        assert kept is not None
        assert kept["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        await world.settle()
