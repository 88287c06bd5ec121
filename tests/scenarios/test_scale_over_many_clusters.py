"""0 to 20,000 replicas over 50 clusters and back: every sum is right, and scaling up reduces no cluster's replicas."""

from collections.abc import Mapping

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

MEMBERS = tuple(f"member-{number:02d}" for number in range(50))


async def scaled(world: World, replicas: int) -> Mapping[str, int]:
    """Scale, wait until the members have that many replicas, and return them by member."""
    await world.scale("web", replicas)

    async def look() -> int:
        return sum((await world.replicas("web")).values())

    await world.until_equal(look, replicas)
    return await world.replicas("web")


@pytest.mark.slow("fifty clusters")
async def test_a_deployment_scales_to_twenty_thousand_replicas_over_fifty_clusters_and_back() -> None:
    async with a_world(members=MEMBERS, has_workloads=False) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=0))
        before = await scaled(world, 30)
        for replicas in (1_000, 20_000):
            after = await scaled(world, replicas)
            assert all(after[name] >= count for name, count in before.items())
            before = after
        assert len(before) == len(MEMBERS)
        assert max(before.values()) - min(before.values()) <= 1  # the members are equal

        smaller = await scaled(world, 5_000)
        assert all(count <= before[name] for name, count in smaller.items())
        assert await scaled(world, 0) == dict.fromkeys(smaller, 0)
        assert sum((await scaled(world, 20_000)).values()) == 20_000
