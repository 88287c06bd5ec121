"""A cluster keeps an object of a workload's name that is not ours: only its user can resolve that, and others go on."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import STATEFUL_SETS, Object
from federation.planning.federatedobject.naming import federated_object_name

NEWER = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}


async def _running(world: World) -> None:
    policy = a_policy({"east": 1, "west": 1})
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]
    await world.create(PROPAGATION_POLICIES, policy)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {**a_deployment("web", replicas=2), "kind": "StatefulSet"}
    body["spec"] |= {"serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}]}
    await world.create(STATEFUL_SETS, body)
    await world.until_equal(lambda: _available(world), {"east": 1, "west": 1})
    await world.settle()


async def _available(world: World) -> dict[str, Any]:
    found = {name: await member.find(STATEFUL_SETS, "web") for name, member in world.members.items()}
    return {name: (obj.get("status") or {}).get("availableReplicas") for name, obj in found.items() if obj}


async def _image(world: World, cluster: str) -> str:
    found: Object = await world.members[cluster].admin.get(STATEFUL_SETS, "web", "default")
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])


async def _status(world: World, cluster: str) -> Any:
    federated = await world.find(FEDERATED_OBJECTS, federated_object_name("web", STATEFUL_SETS.group_resource)) or {}
    states = {each["cluster"]: each["status"] for each in (federated.get("status") or {}).get("clusters") or ()}
    return states.get(cluster)


async def _leave_and_join(world: World) -> str:
    """Let east leave, which keeps what it has, and join again; return the status of its copy."""
    await world.user.delete(FEDERATED_CLUSTERS, "east")
    await world.until_gone(FEDERATED_CLUSTERS, "east", "")
    await world.join("east")
    await world.until_ready("east")
    return "AlreadyExists"


async def _disable(world: World) -> str:
    """Let the administrator of east take the copy out of the federation's management."""
    label = {"metadata": {"labels": {names.MANAGED_LABEL: "false"}}}
    await world.members["east"].admin.patch(STATEFUL_SETS, "web", label, namespace="default")
    return "ManagedLabelFalse"


@pytest.mark.parametrize("way", ["left and joined", "label"])
async def test_an_update_elsewhere_does_not_wait_for_a_copy_that_is_not_ours(way: str) -> None:
    async with a_world(members=("east", "west"), is_judged=False) as world:
        await _running(world)
        kept = await _image(world, "east")
        expected = await _leave_and_join(world) if way == "left and joined" else await _disable(world)
        await world.merge(STATEFUL_SETS, "web", NEWER)
        await world.until_equal(lambda: _status(world, "east"), expected)
        await world.until_equal(lambda: _image(world, "west"), "web:2")
        await world.settle()
        assert await _status(world, "west") == "OK"
        assert await _image(world, "east") == kept, "it is the user's"
        assert await _available(world) == {"east": 1, "west": 1}
