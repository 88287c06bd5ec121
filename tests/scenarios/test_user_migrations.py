"""A user sends a workload to another cluster, and lets the policy decide again: no replica is missing meanwhile."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object
from federation.plans.migration import Wish

IN_A_DAY = from_rfc3339("2100-01-01T00:00:00Z")


async def least_on_the_way(world: World, expected: dict[str, int], *, has_restart: bool) -> int:
    """Wait for the replicas by cluster, and return the fewest available ones meanwhile."""
    least = 4
    for step in range(2_000):
        status = await world.status("web")
        least = min(least, status.get("availableReplicas", 0))
        if await world.replicas("web") == expected:
            return least
        if has_restart and step == 1:
            await world.restart()
        await world.pass_time(0.25)
    raise AssertionError(f"the replicas are {await world.replicas('web')}")


def with_configuration() -> Object:
    deployment = a_deployment("web", 4)
    volume = {"name": "c", "configMap": {"name": "settings"}}
    deployment["spec"]["template"]["spec"]["volumes"] = [volume]
    return deployment


@pytest.mark.parametrize(
    ("wish", "moved"),
    [
        pytest.param(Wish(to=frozenset({"west"})), {"west": 4}, id="to"),
        pytest.param(Wish(leaves=frozenset({"east"}), until=IN_A_DAY), {"west": 4}, id="from"),
    ],
)
async def test_a_workload_moves_with_what_it_needs_and_none_is_missing(wish: Wish, moved: dict[str, int]) -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": None}})
        settings: dict[str, Any] = {"metadata": {"name": "settings", "namespace": "default"}, "data": {"a": "1"}}
        await world.create(CONFIGMAPS, settings)
        await world.create(DEPLOYMENTS, with_configuration())
        await world.until_available("web", 4)
        before = await world.replicas("web")
        assert before.get("east")
        await world.merge(DEPLOYMENTS, "web", wish.to_patch())
        assert await least_on_the_way(world, moved, has_restart=True) == 4
        await world.until_available("web", 4)
        assert await world.members["west"].find(CONFIGMAPS, "settings") is not None

        # Without the wish the policy decides again, and what runs in a feasible cluster stays.
        await world.merge(DEPLOYMENTS, "web", Wish().to_patch())
        await world.pass_time(60)
        assert await world.replicas("web") == moved
