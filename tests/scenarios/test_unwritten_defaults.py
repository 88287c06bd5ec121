"""Defaults that only the host's API server has filled in stay as a member has them; what a user wrote is delivered."""

from typing import Any

import orjson
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, EVENTS, Object
from federation.client.client import PatchType

MEMBER = "east"


def _deployment(image: str = "web:1", **spec: Any) -> Object:
    obj = a_deployment("web", replicas=1)
    obj["spec"] |= spec
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return obj


async def _apply(world: World, obj: Object) -> None:
    await world.user.patch(
        DEPLOYMENTS, "web", orjson.dumps(obj), patch_type=PatchType.APPLY, namespace="default", field_manager="user"
    )
    await world.settle()


async def _facts(world: World) -> tuple[int, int, str]:
    live = await world.members[MEMBER].admin.get(DEPLOYMENTS, "web", "default")
    pod = live["spec"]["template"]["spec"]
    return (
        live["spec"]["revisionHistoryLimit"],
        pod["terminationGracePeriodSeconds"],
        pod["containers"][0]["image"],
    )


async def test_a_default_that_somebody_in_the_member_changed_stays_and_what_a_user_wrote_does_not() -> None:
    async with a_world(members=(MEMBER,)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({MEMBER: 1}, schedulingMode="Duplicate"))
        await _apply(world, _deployment())
        await world.until_available("web", 1)
        assert await _facts(world) == (10, 30, "web:1")
        theirs = {"spec": {"revisionHistoryLimit": 3, "template": {"spec": {"terminationGracePeriodSeconds": 60}}}}
        await world.members[MEMBER].merge(DEPLOYMENTS, "web", theirs)
        await world.settle()
        assert await _facts(world) == (3, 60, "web:1")
        federated = await world.find(FEDERATED_OBJECTS, "web-deployments.apps")
        assert federated is not None
        assert [each["status"] for each in federated["status"]["clusters"]] == ["OK"]
        reasons = {each["reason"] for each in (await world.user.list(EVENTS)).items}
        assert "DriftCorrected" not in reasons

        # What the user changes arrives, beside what he never wrote.
        await _apply(world, _deployment("web:2"))
        assert await _facts(world) == (3, 60, "web:2")
        # What he writes himself is his.
        await _apply(world, _deployment("web:3", revisionHistoryLimit=10))
        assert await _facts(world) == (10, 60, "web:3")
        await world.members[MEMBER].merge(DEPLOYMENTS, "web", {"spec": {"revisionHistoryLimit": 3}})
        await world.settle()
        assert await _facts(world) == (10, 60, "web:3")
        reasons = {each["reason"] for each in (await world.user.list(EVENTS)).items}
        assert "DriftCorrected" in reasons
