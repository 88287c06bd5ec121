"""Addresses and node ports that the host allocates stay on the host; those that a user writes reach the members."""

from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import SERVICES, Object
from federation.client.client import PatchType


def _service(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}], **spec},
    }


async def _sent(world: World, cluster: str, name: str) -> Any:
    """Return the fields of the member's Service that the federation owns, {} without the Service."""
    found = await world.members[cluster].find(SERVICES, name)
    for entry in (found or {}).get("metadata", {}).get("managedFields") or ():
        if entry["manager"] == "federation":
            return entry["fieldsV1"]["f:spec"]
    return {}


async def test_only_written_addresses_and_ports_travel() -> None:
    async with a_world(members=("east", "north")) as world:
        selectors = [{"apiVersion": "v1", "kind": "Service"}]
        policy = a_policy({"east": 1, "north": 1}, resourceSelectors=selectors, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(SERVICES, _service("plain"))
        await world.create(SERVICES, _service("pinned", clusterIP="10.96.7.7", ports=[{"port": 80, "nodePort": 30777}]))

        async def pinned() -> list[Any]:
            found = [await member.find(SERVICES, "pinned") for member in world.members.values()]
            return [each and (each["spec"]["clusterIP"], each["spec"]["ports"][0]["nodePort"]) for each in found]

        await world.until_equal(pinned, [("10.96.7.7", 30777)] * 2)
        await world.settle()
        for cluster in world.members:
            sent = await _sent(world, cluster, "plain")
            assert sent
            assert "f:clusterIP" not in sent
            assert [key for port in sent["f:ports"].values() for key in port if key == "f:nodePort"] == []

        # A changed node port reaches the members, and taking over the allocated one counts as writing it.
        await world.merge(SERVICES, "pinned", {"spec": {"ports": [{"port": 80, "nodePort": 30778}]}})
        await world.until_equal(pinned, [("10.96.7.7", 30778)] * 2)
        allocated = (await world.user.get(SERVICES, "plain", "default"))["spec"]["ports"][0]["nodePort"]
        owned = _service("plain", ports=[{"port": 80, "protocol": "TCP", "nodePort": allocated}])
        await world.user.patch(
            SERVICES,
            "plain",
            owned,
            patch_type=PatchType.APPLY,
            namespace="default",
            field_manager="deployer",
            force=True,
        )

        async def taken_over() -> set[Any]:
            found = [await member.find(SERVICES, "plain") for member in world.members.values()]
            return {each["spec"]["ports"][0]["nodePort"] for each in found if each}

        await world.until_equal(taken_over, {allocated})
        await world.restart()
        await world.settle()
        assert await pinned() == [("10.96.7.7", 30778)] * 2
