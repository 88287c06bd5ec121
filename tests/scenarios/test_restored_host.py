"""The host is restored from an old backup: what was created in members since then stays there and is reported."""

from dataclasses import replace
from datetime import timedelta

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import Base, World, a_world

from federation.api import names
from federation.api.resources import LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES
from federation.cli.databases import marking

_MEMBERS = ("east", "west")


def _placed(policy: str) -> dict[str, str]:
    return {names.PROPAGATION_POLICY_LABEL: policy}


async def _begun(world: World) -> None:
    """Run `web` in east and `old` in west."""
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, name="in-east", resourceSelectors=[]))
    await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, name="in-west", resourceSelectors=[]))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2, **_placed("in-east")))
    await world.create(DEPLOYMENTS, a_deployment("old", replicas=1, **_placed("in-west")))
    await world.until_replicas("web", {"east": 2})
    await world.until_replicas("old", {"west": 1})


def _restored(world: World, backup: Base) -> Base:
    """Return the stores after a restore: the host's of the backup, as `fedctl restore` writes them."""
    mark = marking(backup.now, world.clock.now())
    entries = [replace(entry, value=mark(entry.key, entry.value)) for entry in backup.stores[""].entries]
    host = backup.stores[""]._replace(entries=entries)
    return Base(world.clock.now() + timedelta(seconds=1), {**world.copy().stores, "": host})


async def _reported(world: World) -> list[tuple[str, str, str]]:
    found = [leftover["spec"] for leftover in (await world.user.list(LEFTOVERS)).items]
    return sorted((spec["cluster"], spec["name"], spec["action"]) for spec in found)


async def test_objects_created_after_the_backup_stay_and_are_reported() -> None:
    async with a_world(members=_MEMBERS) as world:
        await _begun(world)
        await world.settle()
        backup = world.copy()
        await world.pass_time(60)
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=3, **_placed("in-east")))
        await world.until_replicas("new", {"east": 3})
        moved = {"metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: "in-east"}}}
        await world.merge(DEPLOYMENTS, "old", moved)
        await world.until_replicas("old", {"east": 1})
        await world.settle()
        base = _restored(world, backup)

    async with a_world(members=_MEMBERS, base=base) as world:
        await world.until_equal(lambda: _reported(world), [("east", "new", "Keep"), ("east", "old", "Keep")])
        await world.until_available("web", 2)
        await world.pass_time(120)
        east = world.members["east"]
        assert (await east.replicas("new"), await east.replicas("old")) == (3, 1)
        assert await world.members["west"].replicas("old") == 1  # as at the time of the backup

        # Its administrator has looked: without the mark, what is placed elsewhere is removed as always.
        await world.merge(NAMESPACES, names.SYSTEM_NAMESPACE, {"metadata": {"annotations": {names.RESTORED: None}}}, "")
        await world.restart()
        await world.until_replicas("old", {"west": 1})
        await world.until_equal(lambda: _reported(world), [("east", "new", "Keep")])


async def test_a_deletion_that_began_before_the_backup_does_not_delete_a_later_object_of_the_name() -> None:
    async with a_world(members=_MEMBERS) as world:
        await _begun(world)
        east = world.members["east"]
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await east.merge(DEPLOYMENTS, "web", held)
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.pass_time(10)
        backup = world.copy()
        await world.pass_time(30)
        free = {"metadata": {"finalizers": None}}
        await east.merge(DEPLOYMENTS, "web", free)
        await world.until_gone(DEPLOYMENTS, "web")
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4, **_placed("in-east")))
        await world.until_replicas("web", {"east": 4})
        await world.settle()
        base = _restored(world, backup)

    async with a_world(members=_MEMBERS, base=base) as world:
        await world.until_gone(DEPLOYMENTS, "web")
        await world.pass_time(60)
        assert await world.members["east"].replicas("web") == 4
