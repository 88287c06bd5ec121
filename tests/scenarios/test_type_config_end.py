"""A FederatedTypeConfig that is deleted waits until its objects are orphaned or removed, as asked."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.features.types.names import EVENT_TYPE_CONFIG_IN_USE

NAME = "deployments.apps"


async def _deleted_while_in_use(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
    await world.until_available("web", 2)
    await world.settle()
    await world.user.delete(FEDERATED_TYPE_CONFIGS, NAME)
    await world.pass_time(60)
    assert await world.find(FEDERATED_TYPE_CONFIGS, NAME) is not None
    assert await world.replicas("web") == {"east": 1, "north": 1}


async def _annotate(world: World, annotation: str, value: str) -> None:
    await world.merge(FEDERATED_TYPE_CONFIGS, NAME, {"metadata": {"annotations": {annotation: value}}})


async def _source(world: World) -> Any:
    return await world.user.get(DEPLOYMENTS, "web", "default")


async def test_a_type_in_use_waits_and_says_what_to_do() -> None:
    async with a_world() as world:
        await _deleted_while_in_use(world)
        (message,) = {text for reason, text in await world.events() if reason == EVENT_TYPE_CONFIG_IN_USE}
        assert message.startswith("objects that are federated by it: 1;")
        assert f"kubectl annotate ftc {NAME} {names.ORPHAN}=all" in message

        await world.scale("web", 4)  # existing objects stay federated, new ones are not
        await world.until_replicas("web", {"east": 2, "north": 2})
        await world.create(DEPLOYMENTS, a_deployment("late", replicas=2))
        await world.pass_time(10)
        assert await world.replicas("late") == {}
        await world.restart()
        await world.pass_time(30)
        assert await world.replicas("web") == {"east": 2, "north": 2}
        await world.user.delete(DEPLOYMENTS, "late", "default")
        await world.until_gone(DEPLOYMENTS, "late")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.until_gone(FEDERATED_TYPE_CONFIGS, NAME)


@pytest.mark.parametrize(
    ("annotation", "value", "left"),
    [(names.ORPHAN, "all", {"east": 1, "north": 1}), (names.CASCADING_DELETE, "true", {})],
    ids=["orphan", "remove"],
)
async def test_objects_are_orphaned_or_removed_as_asked(annotation: str, value: str, left: dict[str, int]) -> None:
    async with a_world() as world:
        await _deleted_while_in_use(world)
        await _annotate(world, annotation, value)
        await world.until_gone(FEDERATED_TYPE_CONFIGS, NAME)
        assert await world.replicas("web") == left
        assert (await world.user.list(FEDERATED_OBJECTS)).items == []
        source = await _source(world)
        assert names.FEDERATE_FINALIZER not in (source["metadata"].get("finalizers") or ())
        for member in left:
            copy = await world.members[member].admin.get(DEPLOYMENTS, "web", "default")
            assert names.MANAGED_LABEL not in copy["metadata"]["labels"]
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")


async def test_a_deletion_goes_on_when_a_configuration_that_was_removed_by_force_is_created_again() -> None:
    async with a_world() as world:
        await _deleted_while_in_use(world)
        config = await world.user.get(FEDERATED_TYPE_CONFIGS, NAME)
        await world.merge(FEDERATED_TYPE_CONFIGS, NAME, {"metadata": {"finalizers": None}}, "")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.pass_time(30)
        assert await world.replicas("web") == {"east": 1, "north": 1}
        messages = {text for reason, text in await world.events() if reason == EVENT_TYPE_CONFIG_IN_USE}
        assert any("removed while objects are federated by it: 1" in text for text in messages), messages
        again = {"name": NAME, "annotations": config["metadata"].get("annotations") or {}}
        await world.create(FEDERATED_TYPE_CONFIGS, {**config, "metadata": again})
        await world.until_gone(DEPLOYMENTS, "web")
        await world.until_replicas("web", {})


async def test_a_type_without_objects_goes_at_once() -> None:
    async with a_world() as world:
        await world.user.delete(FEDERATED_TYPE_CONFIGS, NAME)
        await world.until_gone(FEDERATED_TYPE_CONFIGS, NAME)
