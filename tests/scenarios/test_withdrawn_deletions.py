"""A deletion waits in front of a slow member: what it follows from may end until it leaves, and then it is not sent."""

from typing import Any

from tests.support.lines import MemberLine
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import (
    CLUSTER_DELIVERY_SUSPENSIONS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    LEFTOVERS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import DEPLOYMENTS

SLOW_S = 9.0


async def _running(world: World, *apps: str) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
    for app in apps:
        await world.create(DEPLOYMENTS, a_deployment(app, replicas=2))
        await world.until_available(app, 2)
    await world.settle()


async def _place(world: World, *clusters: str) -> None:
    policy = a_policy(dict.fromkeys(clusters, 1))
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})


async def _uids(world: World, *apps: str) -> dict[str, Any]:
    found = {app: await world.members["east"].find(DEPLOYMENTS, app) for app in apps}
    return {app: obj["metadata"]["uid"] for app, obj in found.items() if obj is not None}


async def _is_refused(line: MemberLine) -> bool:
    return ("delete", "deployments", "web") in line.calls


async def test_a_copy_that_is_placed_again_before_its_deletion_leaves_is_kept() -> None:
    """The connection broke: who answers at the address of the member is checked first, and that takes a while."""
    async with a_world_without_pods() as world:
        await _running(world, "web")
        before, line = await _uids(world, "web"), world.members["east"].line
        line.mode = "down"
        await _place(world, "north")
        await world.until(lambda: _is_refused(line), "the first attempt")
        line.calls.clear()
        line.mend()
        line.delays_s["get"] = SLOW_S
        await world.pass_time(SLOW_S / 2)
        line.delays_s.clear()  # of further requests: the check is under way
        await _place(world, "east")
        await world.pass_time(2 * SLOW_S)
        await world.until_replicas("web", {"east": 2})
        assert ("delete", "deployments", "web") not in line.calls
        assert await _uids(world, "web") == before


async def _delete_and_wait(world: World) -> MemberLine:
    """Delete the source while its connection to east is broken; the deletion there waits when this returns."""
    line = world.members["east"].line
    line.mode = "down"
    await world.user.delete(DEPLOYMENTS, "web", "default")
    await world.until(lambda: _is_refused(line), "the first attempt")
    line.calls.clear()
    line.mend()
    line.delays_s["get"] = SLOW_S
    await world.pass_time(SLOW_S / 2)
    line.delays_s.clear()
    return line


async def _delete_while_away(world: World) -> None:
    """Lose east and delete the source: its copy there becomes a Leftover."""
    await world.lose("east")
    await world.user.delete(DEPLOYMENTS, "web", "default")
    await world.until_gone(DEPLOYMENTS, "web")


async def _return_slowly(world: World) -> MemberLine:
    """Let east come back; the deletion of a Leftover there waits when this returns."""
    line = world.members["east"].line
    line.delays_s["get"] = SLOW_S
    line.mend()
    await world.until_ready("east")
    await world.pass_time(1.0)
    return line


async def _suspend(world: World) -> None:
    spec = {"clusters": ["east"], "owner": "storage team", "reason": "volumes are copied"}
    metadata = {"name": "copy"}
    kind = {"apiVersion": CLUSTER_DELIVERY_SUSPENSIONS.api_version, "kind": CLUSTER_DELIVERY_SUSPENSIONS.kind}
    await world.create(CLUSTER_DELIVERY_SUSPENSIONS, {**kind, "metadata": metadata, "spec": spec})


async def test_a_deletion_that_is_suspended_before_it_leaves_waits_for_the_end() -> None:
    """A suspension is also a way to stop what somebody has deleted by mistake."""
    async with a_world_without_pods() as world:
        await _running(world, "web")
        before = await _uids(world, "web")
        line = await _delete_and_wait(world)
        await _suspend(world)
        await world.pass_time(4 * SLOW_S)
        assert ("delete", "deployments", "web") not in line.calls
        assert await _uids(world, "web") == before
        await world.user.delete(CLUSTER_DELIVERY_SUSPENSIONS, "copy")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await _uids(world, "web") == {}


async def test_an_object_that_is_annotated_and_deleted_at_once_keeps_its_copies() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "web")
        uids = await _uids(world, "web")
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.ORPHAN: "all"}}})
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await _uids(world, "web") == uids


async def test_a_copy_that_is_to_stay_before_its_deletion_leaves_is_released() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "web")
        before = await _uids(world, "web")
        line = await _delete_and_wait(world)
        federated = (await world.federated("web"))["metadata"]["name"]
        await world.merge(FEDERATED_OBJECTS, federated, {"metadata": {"annotations": {names.ORPHAN: "all"}}})
        await world.until_gone(DEPLOYMENTS, "web")
        assert ("delete", "deployments", "web") not in line.calls
        assert await _uids(world, "web") == before
        await world.members["east"].admin.delete(DEPLOYMENTS, "web", "default")


async def test_a_leftover_that_is_suspended_in_time_is_kept_for_that_time() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "web")
        before = await _uids(world, "web")
        await _delete_while_away(world)
        line = await _return_slowly(world)
        await _suspend(world)
        await world.pass_time(4 * SLOW_S)
        assert await _uids(world, "web") == before
        line.delays_s.clear()
        await world.user.delete(CLUSTER_DELIVERY_SUSPENSIONS, "copy")
        await world.pass_time(4 * SLOW_S)
        assert await _uids(world, "web") == {}


async def test_a_cluster_that_leaves_keeps_the_rest_once_its_objects_are_to_stay() -> None:
    async with a_world_without_pods() as world:
        apps = ("app", "blog", "cart", "desk")
        await _running(world, *apps)
        world.members["east"].line.delays_s["delete"] = SLOW_S
        annotated = {"metadata": {"annotations": {names.CASCADING_DELETE: "true"}}}
        await world.merge(FEDERATED_CLUSTERS, "east", annotated)
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.pass_time(1.5 * SLOW_S)
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"annotations": {names.CASCADING_DELETE: None}}})
        await world.until_gone(FEDERATED_CLUSTERS, "east")
        assert len(await _uids(world, *apps)) == 2, "one was deleted, and the request for another one had left"
        del world.members["east"]


async def test_a_leftover_that_is_forgotten_in_time_is_kept() -> None:
    async with a_world_without_pods() as world:
        await _running(world, "web")
        before = await _uids(world, "web")
        await _delete_while_away(world)
        (leftover,) = (await world.user.list(LEFTOVERS)).items
        await _return_slowly(world)
        await world.user.delete(LEFTOVERS, leftover["metadata"]["name"])
        await world.pass_time(4 * SLOW_S)
        assert await _uids(world, "web") == before
        await world.members["east"].admin.delete(DEPLOYMENTS, "web", "default")
