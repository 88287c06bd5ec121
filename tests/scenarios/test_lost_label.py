"""Somebody in a member removes our label: the object stays ours. Label "false" is the way to release it."""

import orjson
import pytest
from tests.scenarios.test_drift_reports import counted, in_cluster, messages_of, running
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.apimachinery.resources import DEPLOYMENTS
from federation.client.client import PatchType
from federation.delivery.rules.names import EVENT_DRIFT_CORRECTED

LABEL = names.MANAGED_LABEL


async def labelled(world: World, value: str | None) -> None:
    await world.members["east"].merge(DEPLOYMENTS, "web", {"metadata": {"labels": {LABEL: value}}})


async def label(world: World) -> str | None:
    copy = await world.members["east"].admin.get(DEPLOYMENTS, "web", "default")
    found = (copy["metadata"].get("labels") or {}).get(LABEL)
    return None if found is None else str(found)


async def uid(world: World) -> str:
    return str((await world.members["east"].admin.get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"])


@pytest.mark.parametrize("value", [None, "", "no"])
async def test_a_label_that_somebody_removes_or_changes_is_written_back(value: str | None) -> None:
    async with a_world_without_pods() as world:
        await running(world)
        before, corrected = await uid(world), counted("corrections", "east")
        await labelled(world, value)
        await world.until_equal(lambda: label(world), "true")
        await world.settle()
        assert (await in_cluster(world, "east"))["status"] == "OK"
        assert await uid(world) == before
        assert counted("corrections", "east") == corrected + 1
        (message,) = await messages_of(world, EVENT_DRIFT_CORRECTED)
        assert LABEL in message
        await world.scale("web", 8)
        await world.until_replicas("web", {"east": 4, "west": 4})


async def test_a_label_that_was_removed_while_the_control_plane_was_down_is_written_back() -> None:
    async with a_world_without_pods() as world:
        await running(world)
        await world.stop()
        await labelled(world, None)
        await world.members["east"].merge(DEPLOYMENTS, "web", {"spec": {"replicas": 9}})
        await world.restart()
        await world.until_equal(lambda: label(world), "true")
        await world.until_replicas("web", {"east": 2, "west": 2})


async def test_the_label_false_releases_the_object_until_it_is_true_again() -> None:
    async with a_world_without_pods() as world:
        await running(world)
        await labelled(world, "false")

        async def status() -> str:
            return str((await in_cluster(world, "east"))["status"])

        await world.until_equal(status, "ManagedLabelFalse")
        await world.scale("web", 8)
        await world.settle()
        assert await world.replicas("web") == {"east": 2, "west": 4}
        assert await label(world) == "false"
        await labelled(world, "true")
        await world.until_replicas("web", {"east": 4, "west": 4})


async def test_a_fight_over_the_label_pauses() -> None:
    async with a_world_without_pods() as world:
        await running(world)
        before = counted("corrections", "east")
        for _ in range(10):
            await labelled(world, None)
            await world.pass_time(1.0)
        assert counted("corrections", "east") == before + 6
        assert (await in_cluster(world, "east"))["status"] == "CorrectionPaused"
        assert await label(world) is None
        await world.scale("web", 8)
        await world.until_replicas("web", {"east": 4, "west": 4})
        assert await label(world) == "true", "a change of the template is delivered at once, with the label"


@pytest.mark.parametrize("is_forged", [False, True], ids=["copied", "forged"])
async def test_an_object_that_replaced_ours_is_foreign(is_forged: bool) -> None:
    """Somebody copies our annotations to an object of their own, or even applies it under our manager's name."""
    async with a_world_without_pods() as world:
        await running(world)
        east = world.members["east"].admin
        copy = await east.get(DEPLOYMENTS, "web", "default")
        theirs = {**copy, "metadata": {key: copy["metadata"][key] for key in ("name", "namespace", "annotations")}}
        del theirs["status"]
        await east.delete(DEPLOYMENTS, "web", "default")
        manager = names.FIELD_MANAGER if is_forged else "theirs"
        body = orjson.dumps(theirs)
        created = await east.patch(
            DEPLOYMENTS, "web", body, patch_type=PatchType.APPLY, namespace="default", field_manager=manager
        )

        async def status() -> str:
            return str((await in_cluster(world, "east"))["status"])

        await world.until_equal(status, "AlreadyExists")
        await world.settle()
        assert await uid(world) == created["metadata"]["uid"]
        assert await label(world) is None
        await east.delete(DEPLOYMENTS, "web", "default")
        await world.scale("web", 8)
        await world.until_replicas("web", {"east": 4, "west": 4})
        assert await label(world) == "true"
