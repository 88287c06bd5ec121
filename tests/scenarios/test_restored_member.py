"""A member is restored from a backup while it is away: what the restore took back is delivered again."""

import pytest
from tests.support.faults import copy_of
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api.resources import LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES


async def _revision(world: World, member: str) -> int:
    return (await world.revisions())[member]


@pytest.mark.parametrize("kind", ["Namespace", "Deployment"])
async def test_what_a_restore_took_back_is_delivered_again_although_the_revisions_went_on(kind: str) -> None:
    """The member has passed the revision that we saw last before we reach it again, so its watch hides the loss."""
    async with a_world_without_pods() as world:
        north = world.members["north"]
        await world.create(PROPAGATION_POLICIES, a_policy({"north": 1}))
        await world.create(DEPLOYMENTS, a_deployment("first", replicas=1))
        await world.until_replicas("first", {"north": 1})
        await world.settle()
        backup = copy_of(north.store)
        if kind == "Namespace":
            shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
            await world.create(NAMESPACES, shop)
            await world.until(lambda: north.find(NAMESPACES, "shop"))
        else:
            await world.create(DEPLOYMENTS, a_deployment("second", replicas=1))
            await world.until_replicas("second", {"north": 1})
        await world.settle()
        before = await _revision(world, "north")
        north.line.mode = "down"
        await world.replace_member("north", backup)
        for number in range(before - backup.revision + 5):
            note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{number}", "namespace": "default"}}
            await north.admin.create(CONFIGMAPS, note)
        assert await _revision(world, "north") > before
        north.line.mode = "up"
        if kind == "Namespace":
            await world.until(lambda: north.find(NAMESPACES, "shop"))
        else:
            await world.until_replicas("second", {"north": 1})


async def test_a_copy_that_a_user_kept_stays_although_a_restore_gave_it_our_label_again() -> None:
    """A new object of its name is placed elsewhere: that decision is not about the copy of the earlier one."""

    async def create() -> None:
        metadata = {"name": "conf", "namespace": "default"}
        await world.create(
            CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
        )

    async with a_world_without_pods(is_judged=False) as world:
        north = world.members["north"]
        kinds = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        policy = a_policy({"east": 1, "north": 1}, resourceSelectors=kinds, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)
        await create()
        await world.until(lambda: north.find(CONFIGMAPS, "conf"))
        await world.settle()
        uid = (await north.admin.get(CONFIGMAPS, "conf", "default"))["metadata"]["uid"]
        backup = copy_of(north.store)
        await world.user.delete(CONFIGMAPS, "conf", "default", propagation_policy="Orphan")
        await world.until_gone(CONFIGMAPS, "conf")
        await world.pass_time(120)
        await world.replace_member("north", backup)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "east"}]}})
        await create()
        await world.pass_time(60)
        await world.restart()
        await world.pass_time(120)
        assert (await north.admin.get(CONFIGMAPS, "conf", "default"))["metadata"]["uid"] == uid
        reports = [each["spec"] for each in (await world.user.list(LEFTOVERS)).items]
        assert [(each["name"], each["cluster"], each["action"]) for each in reports] == [("conf", "north", "Keep")]
