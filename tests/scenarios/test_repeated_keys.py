"""A pod template that names a key twice runs in every member as it would in one cluster."""

from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS


async def test_a_deployment_with_repeated_keys_is_delivered() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        deployment = a_deployment("web", replicas=2)
        spec = deployment["spec"]["template"]["spec"]
        spec["containers"][0]["env"] = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
        spec["containers"][0]["ports"] = [{"containerPort": 80}, {"containerPort": 80, "name": "web"}]
        spec["imagePullSecrets"] = [{"name": "x"}, {"name": "x"}]
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 2)
        for member in world.members.values():
            live: Any = await member.find(DEPLOYMENTS, "web")
            found = live["spec"]["template"]["spec"]
            assert found["containers"][0]["env"] == [{"name": "A", "value": "2"}]
            assert [port["name"] for port in found["containers"][0]["ports"]] == ["web"]
            assert found["imagePullSecrets"] == [{"name": "x"}]
