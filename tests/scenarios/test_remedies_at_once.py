"""What a message names as the remedy acts at once, however long the failure has been repeated before."""

import base64
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.deceits import Refuses
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import DEPLOYMENTS, SECRETS

LONG_S = 130
"""After this time the pause between two attempts is a minute."""
SOON_S = 5


async def entry(world: World, cluster: str = "east") -> tuple[str, str]:
    """Return status and message of the Deployment in a cluster."""
    found = (await world.federated("web"))["status"]["clusters"]
    [mine] = [each for each in found if each["cluster"] == cluster]
    return mine["status"], mine.get("message", "")


async def soon(world: World, look: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Check that something is so within a few seconds."""
    for _ in range(SOON_S):
        if await look() == expected:
            return
        await world.pass_time(1)
    raise AssertionError(f"expected {expected!r} within {SOON_S} s, last seen: {await look()!r}")


async def test_an_object_is_adopted_when_its_annotations_allow_it() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        theirs = a_deployment("web", 2)
        theirs["spec"]["minReadySeconds"] = 7
        await world.members["east"].admin.create(DEPLOYMENTS, theirs)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", 2))
        await world.pass_time(LONG_S)
        assert (await entry(world))[0] == "AlreadyExists"
        wishes = {names.CONFLICT_RESOLUTION: "adopt-if-equal", names.CLUSTERS_TO_ADOPT: '{"clusters":["west"]}'}
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": wishes}})
        await world.pass_time(SOON_S)
        assert (await entry(world))[0] == "AlreadyExists", "the cluster is not named"
        named = {names.CLUSTERS_TO_ADOPT: '{"clusters":["east"]}'}
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": named}})

        async def is_adopted() -> bool:
            copy = await world.members["east"].find(DEPLOYMENTS, "web")
            return copy is not None and names.ADOPTED in (copy["metadata"].get("annotations") or {})

        await soon(world, is_adopted, True)
        await world.settle()
        assert await entry(world) == ("OK", "")


async def test_other_credentials_let_what_was_forbidden_be_tried_at_once() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        line = world.members["east"].line
        line.begin_deceit(Refuses(lambda: Forbidden("deployments.apps is forbidden")))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", 2))
        await world.pass_time(LONG_S)
        assert await entry(world) == ("CreationFailed", "deployments.apps is forbidden")
        line.heal()
        token = {"data": {names.SECRET_BOOTSTRAP_TOKEN: base64.b64encode(b"another").decode()}}
        await world.merge(SECRETS, "east", token, names.SYSTEM_NAMESPACE)
        await soon(world, lambda: world.replicas("web"), {"east": 2})
