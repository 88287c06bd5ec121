"""What is left in a member that does not answer is recorded durably, and removed when the member returns."""

from itertools import product
from typing import Any

import pytest
from tests.support.generated import nightly_unless
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.controllers.leftovers.names import EVENT_SWEPT

EVERYWHERE = {"east": 1, "north": 1, "west": 1}


async def _running(world: World, replicas: int = 3) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy(EVERYWHERE))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=replicas))
    await world.until_replicas("web", EVERYWHERE)
    await world.until_available("web", replicas)
    await world.settle()


async def _leftovers(world: World) -> list[dict[str, Any]]:
    return [leftover["spec"] for leftover in (await world.user.list(LEFTOVERS)).items]


async def _uid(world: World, member: str) -> str:
    found = await world.members[member].find(DEPLOYMENTS, "web")
    return str(found["metadata"]["uid"]) if found is not None else ""


@pytest.mark.parametrize(
    ("mode", "is_noticed"),
    nightly_unless([("down", True), ("hang", False)], product(("down", "hang"), (True, False))),
    ids=lambda value: value if isinstance(value, str) else "noticed" if value else "not noticed",
)
async def test_a_deletion_ends_without_a_member_and_is_finished_when_it_returns(mode: str, is_noticed: bool) -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        uid = await _uid(world, "east")
        east.line.mode = mode
        if is_noticed:
            await world.until_ready("east", status="Unknown")
        deleted_s = world.clock.monotonic()
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        assert world.clock.monotonic() - deleted_s < (2 if is_noticed else 40)
        assert await world.replicas("web") == {"east": 1}
        (leftover,) = await _leftovers(world)
        assert (leftover["cluster"], leftover["action"], leftover["reason"]) == ("east", "Delete", "SourceDeleted")
        assert leftover["uid"] == uid
        assert leftover["clusterUid"]

        await world.restart()
        await world.pass_time(30)
        assert len(await _leftovers(world)) == 1

        east.line.mend()
        await world.until_equal(lambda: _leftovers(world), [])
        assert await world.replicas("web") == {}


async def test_a_new_object_of_the_same_name_replaces_the_old_copy_and_is_not_deleted_for_it() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        old = await _uid(world, "east")
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")

        again = a_deployment("web", replicas=2)
        again["spec"]["selector"]["matchLabels"] = {"app": "other"}  # immutable: the old copy cannot become the new
        again["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
        await world.create(DEPLOYMENTS, again)
        await world.until_replicas("web", {"east": 1, "north": 1, "west": 1})
        await east.merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": ["example.com/held"]}})
        east.line.mend()
        await world.until_ready("east")
        await world.scale("web", 6)

        async def status_in_east() -> str:
            clusters = ((await world.federated("web")).get("status") or {}).get("clusters") or ()
            return next((entry["status"] for entry in clusters if entry["cluster"] == "east"), "")

        await world.until_equal(status_in_east, "WaitingForRemoval")
        await world.restart()
        await world.pass_time(30)
        assert await _uid(world, "east") == old
        assert len(await _leftovers(world)) == 1

        await east.merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}})
        await world.until_equal(lambda: _leftovers(world), [])
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        new = await _uid(world, "east")
        assert new != old
        await world.pass_time(60)
        assert await _uid(world, "east") == new


async def test_an_orphaning_deletion_releases_the_copy_when_the_member_returns() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.ORPHAN: "all"}}})
        await world.settle()
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        (leftover,) = await _leftovers(world)
        assert leftover["action"] == "Release"

        east.line.mend()
        await world.until_equal(lambda: _leftovers(world), [])
        kept = await east.admin.get(DEPLOYMENTS, "web", "default")
        assert names.MANAGED_LABEL not in kept["metadata"]["labels"]


async def test_a_copy_that_the_members_administrator_replaced_is_reported_and_kept() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await east.admin.delete(DEPLOYMENTS, "web", "default")
        replaced = a_deployment("web")
        replaced["metadata"]["labels"][names.MANAGED_LABEL] = "true"
        await east.admin.create(DEPLOYMENTS, replaced)
        uid = await _uid(world, "east")

        east.line.mend()

        async def reported() -> list[tuple[str, str]]:
            return [(leftover["action"], leftover["reason"]) for leftover in await _leftovers(world)]

        await world.until_equal(reported, [("Keep", "Stray")])
        await world.pass_time(60)
        assert await _uid(world, "east") == uid
        await east.admin.delete(DEPLOYMENTS, "web", "default")  # for the invariants of the world


async def test_a_member_that_answers_and_refuses_blocks_the_deletion_and_says_why() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await east.merge(DEPLOYMENTS, "web", held)
        await world.settle()
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.pass_time(60)
        assert await world.find(DEPLOYMENTS, "web") is not None
        assert await _leftovers(world) == []
        message = (await world.condition("web", names.PROPAGATED))["message"]
        assert message == "deletion waits for clusters [east]"
        await east.merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}})
        await world.until_gone(DEPLOYMENTS, "web")


async def _unjoin_by_force(world: World, name: str) -> None:
    forced = {"metadata": {"annotations": {names.FORCED_REMOVAL: "burnt down"}}}
    await world.merge(FEDERATED_CLUSTERS, name, forced)
    await world.user.delete(FEDERATED_CLUSTERS, name)


@pytest.mark.parametrize("mode", ["down", "hang", "up"])
async def test_a_cluster_leaves_by_force_and_joins_again(mode: str) -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        uid = await _uid(world, "east")
        east.line.mode = mode
        await _unjoin_by_force(world, "east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")
        found = {(leftover["name"], leftover["action"], leftover["reason"]) for leftover in await _leftovers(world)}
        assert ("web", "Keep", "ClusterRemoved") in found
        assert all("burnt down" in leftover["message"] for leftover in await _leftovers(world))
        await world.restart()
        await world.pass_time(10)
        assert await _uid(world, "east") == uid

        east.line.mend()
        await world.join("east")
        await world.until_ready("east")

        # The policy does not reschedule for a cluster that joins, so the object is placed in the other two. That was
        # decided while the cluster was no member: its copy is released, and stays.
        async def reasons() -> list[str]:
            return [leftover["reason"] for leftover in await _leftovers(world) if leftover["name"] == "web"]

        await world.until_equal(reasons, ["Kept"])
        assert await world.replicas("web") == {"east": 1, "north": 2, "west": 1}
        kept = await east.admin.get(DEPLOYMENTS, "web", "default")
        assert kept["metadata"]["uid"] == uid
        assert names.MANAGED_LABEL not in kept["metadata"]["labels"]
        (swept,) = [message for reason, message in await world.events() if reason == EVENT_SWEPT]
        assert "released: Deployment default/web" in swept


async def test_an_object_that_is_orphaned_while_its_cluster_is_away_stays_there() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        uid = await _uid(world, "east")
        east.line.mode = "down"
        await _unjoin_by_force(world, "east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.ORPHAN: "all"}}})
        await world.settle()
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")

        east.line.mend()
        await world.join("east")
        await world.until_equal(lambda: _leftovers(world), [])
        kept = await east.admin.get(DEPLOYMENTS, "web", "default")
        assert kept["metadata"]["uid"] == uid
        assert names.MANAGED_LABEL not in kept["metadata"]["labels"]


async def test_another_cluster_of_the_same_name_is_not_touched_and_waits_for_nothing() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await _unjoin_by_force(world, "east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")

        lost = world.members.pop("east")
        await world.add_member("east", {})
        await world.join("east")
        await world.until_ready("east")
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", EVERYWHERE)
        await world.pass_time(60)
        assert await world.replicas("web") == EVERYWHERE
        assert await lost.replicas("web") == 1
        found = {(leftover["name"], leftover["action"]) for leftover in await _leftovers(world)}
        assert ("web", "Delete") in found


async def test_force_after_an_ordinary_removal_that_waits_records_what_is_left() -> None:
    async with a_world_without_pods() as world:
        await _running(world)
        east = world.members["east"]
        east.line.mode = "hang"
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.pass_time(5)
        assert await world.find(FEDERATED_CLUSTERS, "east") is not None
        await _unjoin_by_force(world, "east")
        await world.until_gone(FEDERATED_CLUSTERS, "east")
        assert "web" in {leftover["name"] for leftover in await _leftovers(world)}
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.replicas("web") == {"east": 1}

        east.line.mend()
        await world.join("east")

        async def reasons() -> list[str]:
            return [leftover["reason"] for leftover in await _leftovers(world) if leftover["name"] == "web"]

        await world.until_equal(reasons, ["Kept"])
        assert await world.replicas("web") == {"east": 1}


async def test_an_unanswered_write_of_an_earlier_object_holds_no_place_in_the_budget_of_a_new_one() -> None:
    """Whether the write took effect is asked where the new object has no copy yet, and the answer plans its steps."""
    async with a_world_without_pods() as world:
        await _running(world)
        world.members["east"].line.mode = "down"
        await world.scale("web", 9)
        await world.until_ready("east", status="Unknown")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.bring_back("east")
        await world.until_equal(lambda: _leftovers(world), [])

        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"north": 1})["spec"]})
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=1))
        await world.until_available("web", 1)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"east": 1})["spec"]})
        await world.until_replicas("web", {"east": 1})
