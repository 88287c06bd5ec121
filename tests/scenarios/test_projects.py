"""Projects: the objects of a namespace are in its project's clusters only, and leave a cluster that the project loses."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.journal.decisions import DecisionFilter

API = PROJECTS.api_version


def a_project(*clusters: str, name: str = "shop", namespaces: tuple[str, ...] = ("default",), **spec: Any) -> Object:
    body = {"namespaces": list(namespaces), "clusters": {"names": list(clusters)}, **spec}
    return {"apiVersion": API, "kind": "Project", "metadata": {"name": name}, "spec": body}


async def told(world: World) -> str:
    """Return all that a tenant may read about his Deployment: the object, its events, and its decisions."""
    events = [message for _, message in await world.events() if "cluster" not in message]
    records = await world.journal.query(DecisionFilter(), limit=100)
    return f"{await world.user.get(DEPLOYMENTS, 'web', 'default')} {events} {records}"


async def running(world: World) -> int:
    """Return the available replicas in all members."""
    found = [await member.find(DEPLOYMENTS, "web") for member in world.members.values()]
    return sum((each.get("status") or {}).get("availableReplicas", 0) for each in found if each is not None)


@pytest.mark.slow("replicas move between three clusters, and the control plane restarts on the way")
async def test_objects_are_in_their_projects_clusters_and_leave_one_that_it_loses_when_others_are_ready() -> None:
    async with a_world() as world:
        await world.create(PROJECTS, a_project("east", "north"))
        await world.create(PROPAGATION_POLICIES, a_policy({"*": 1, "west": 5}))
        web = a_deployment("web", replicas=4)
        web["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0}}
        await world.create(DEPLOYMENTS, web)
        await world.until_replicas("web", {"east": 2, "north": 2})
        await world.until_available("web", 4)
        assert "west" not in await told(world)

        await world.merge(PROJECTS, "shop", {"spec": {"clusters": {"names": ["east", "west"]}}}, namespace="")
        least, restarts = 4, 1
        while await world.replicas("web") != {"east": 2, "west": 2}:
            await world.pass_time(0.5)
            least = min(least, await running(world))
            if restarts and (await world.replicas("web")).get("west"):
                restarts -= 1
                await world.restart()

        assert least == 4
        assert restarts == 0
        assert "project shop does not have cluster north any more" in await told(world)
