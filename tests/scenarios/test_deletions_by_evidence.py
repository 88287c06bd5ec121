"""All ways in which an object is deleted in a member: only evidence of the present membership deletes it."""

from enum import StrEnum
from itertools import product

import pytest
from tests.support.generated import nightly_unless
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.leftovers.record import Action, Reason, Record, to_manifest

EVERYWHERE = {"east": 1, "north": 1, "west": 1}
LONG_S = 100.0
"""Longer than the sweep after a join, and what follows from it."""


class Way(StrEnum):
    """The evidence for a deletion."""

    PLACEMENT = "the policy leaves the cluster out"
    SOURCE = "the source is deleted"
    RECORD = "the source is deleted while the cluster does not answer"
    ANSWER = "a Leftover with action Delete"
    CASCADE = "cascading-delete"
    STRAYS = "strays: remove"


class Age(StrEnum):
    """When the evidence was given."""

    NEWER = "newer"
    OLDER = "older: the cluster left and joined again"
    ABSENT = "absent"
    UNKNOWN = "about another cluster of the name"


def _name(way: Way) -> str:
    return "lost" if way is Way.STRAYS else "web"


async def _give(world: World, way: Way) -> None:
    """Give the evidence about the copy in east."""
    match way:
        case Way.PLACEMENT:
            spec = a_policy({"north": 1, "west": 1})["spec"]
            await world.merge(PROPAGATION_POLICIES, "divide", {"spec": spec})
        case Way.SOURCE | Way.RECORD:
            await world.user.delete(DEPLOYMENTS, "web", "default")
        case Way.ANSWER:
            cluster = await world.user.get(FEDERATED_CLUSTERS, "east")
            where = ("east", DEPLOYMENTS, "default", "web", Action.DELETE, Reason.HELD)
            record = Record(*where, str(cluster["status"]["clusterUid"]), await _uid(world, "web"))
            await world.create(LEFTOVERS, to_manifest(record))
        case Way.CASCADE | Way.STRAYS:
            annotations = {names.CASCADING_DELETE: "true"} if way is Way.CASCADE else {names.STRAYS: "remove"}
            await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"annotations": annotations}}, "")


async def _uid(world: World, name: str) -> str:
    found = await world.members["east"].find(DEPLOYMENTS, name)
    return str(found["metadata"]["uid"]) if found is not None else ""


async def _copy(world: World, name: str) -> None:
    """Create an object in east that looks as if the federation had delivered it."""
    ours = a_deployment(name)
    ours["metadata"]["labels"][names.MANAGED_LABEL] = "true"
    ours["metadata"]["annotations"] = {names.TEMPLATE_HASH: "1"}
    await world.members["east"].admin.create(DEPLOYMENTS, ours)


async def _joined(world: World) -> None:
    await world.until_ready("east")
    await world.pass_time(LONG_S)


async def _leaves_by_force(world: World) -> None:
    await world.pass_time(30)
    await world.unjoin_by_force("east")
    await world.until_gone(FEDERATED_CLUSTERS, "east", "")


async def _age(world: World, way: Way, age: Age) -> None:
    """Give the evidence at its time, and let the cluster answer, or another one of its name."""
    east = world.members["east"]
    if age is Age.NEWER and way is not Way.RECORD:
        await _give(world, way)
        if way is Way.CASCADE:
            await world.user.delete(FEDERATED_CLUSTERS, "east")
        return
    east.line.mode = "down"
    await world.until_ready("east", status="Unknown")
    if age is not Age.ABSENT:
        await _give(world, way)
    if age in (Age.NEWER, Age.ABSENT):
        await world.restart()
    else:
        await _leaves_by_force(world)
    if age is Age.UNKNOWN:
        world.members.pop("east")
        await world.add_member("east", {})
        await _copy(world, _name(way))
    east.line.mend()
    if age in (Age.OLDER, Age.UNKNOWN):
        await world.join("east")


@pytest.mark.parametrize(
    ("way", "age"),
    nightly_unless(
        [(Way.PLACEMENT, Age.OLDER), (Way.RECORD, Age.NEWER), (Way.RECORD, Age.OLDER), (Way.ANSWER, Age.OLDER)],
        product(Way, Age),
    ),
)
async def test_only_newer_evidence_about_the_copy_deletes_it(way: Way, age: Age) -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(EVERYWHERE))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", EVERYWHERE)
        await world.settle()
        if way is Way.STRAYS:
            await _copy(world, "lost")
            await world.pass_time(LONG_S)
        name, before = _name(way), await _uid(world, _name(way))
        assert before
        await _age(world, way, age)
        if age is Age.NEWER:

            async def is_deleted() -> bool:
                return await _uid(world, name) != before

            await world.until(is_deleted, "the deletion")
            return
        east = world.members["east"]
        if age is Age.UNKNOWN:
            before = await _uid(world, name)
        await _joined(world)
        await world.restart()
        await _joined(world)
        assert await _uid(world, name) == before
        assert not [call for call in east.line.calls if call[:2] == ("delete", "deployments")]
        if age is not Age.ABSENT or way is Way.STRAYS:
            await east.admin.delete(DEPLOYMENTS, name, "default")  # for the invariants of the world


async def test_an_object_that_is_created_again_takes_over_the_copy_of_an_earlier_membership() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(EVERYWHERE))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", EVERYWHERE)
        await world.settle()
        before = await _uid(world, "web")
        east = world.members["east"]
        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await _give(world, Way.RECORD)
        await world.until_gone(DEPLOYMENTS, "web")
        await _leaves_by_force(world)
        east.line.mend()
        await world.join("east")
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": a_policy({"east": 1})["spec"]})
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_replicas("web", {"east": 6})
        await _joined(world)
        assert await _uid(world, "web") == before
        assert not [
            leftover for leftover in (await world.user.list(LEFTOVERS)).items if leftover["spec"]["name"] == "web"
        ]


async def test_a_copy_that_its_user_keeps_survives_the_cluster_that_leaves_with_its_objects() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(EVERYWHERE))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", EVERYWHERE)
        await world.settle()
        before, east = await _uid(world, "web"), world.members["east"]
        await world.lose("east")
        await _give(world, Way.CASCADE)
        await world.user.delete(FEDERATED_CLUSTERS, "east")
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {names.ORPHAN: "all"}}})
        await world.pass_time(5)
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        east.line.mend()
        await world.until_gone(FEDERATED_CLUSTERS, "east", "")
        assert await _uid(world, "web") == before
