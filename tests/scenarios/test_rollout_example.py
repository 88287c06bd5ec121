"""The manifests and steps of examples/rollout, on the virtual clock."""

from pathlib import Path

import yaml
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_ROLLOUTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.client.client import PatchType

EXAMPLE = Path(__file__).parents[2] / "examples" / "rollout"
MEMBERS = ("member-1", "member-2", "member-3")
ROLLOUT = "shop-deployments.apps"


def manifest(name: str) -> Object:
    found: Object = yaml.safe_load((EXAMPLE / name).read_text())
    return found


async def images(world: World) -> list[str]:
    found = []
    for member in world.members.values():
        copy = await member.find(DEPLOYMENTS, "shop")
        found.append("" if copy is None else copy["spec"]["template"]["spec"]["containers"][0]["image"])
    return found


async def status_of(world: World, field: str) -> str:
    found = await world.find(FEDERATED_ROLLOUTS, ROLLOUT)
    return str(((found or {}).get("status") or {}).get(field))


async def test_a_canary_that_is_missing_is_replaced_by_the_first_cluster_or_holds_the_rollout() -> None:
    policy = manifest("04-absent-canary.yaml")
    wave = policy["spec"]["rollout"]["waves"][0]
    change = {"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "shop:2"}]}}}}
    async with a_world(members=MEMBERS) as world:
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, manifest("02-shop.yaml"))
        await world.until_available("shop", 6)
        await world.until_equal(lambda: status_of(world, "state"), "Complete")
        await world.merge(DEPLOYMENTS, "shop", change)
        await world.until_equal(lambda: images(world), ["shop:2", "shop:1", "shop:1"])
        await world.until_equal(lambda: status_of(world, "state"), "Complete")

        held = {**policy["spec"]["rollout"], "waves": [{**wave, "whenEmpty": "Hold"}]}
        await world.merge(PROPAGATION_POLICIES, "shop", {"spec": {"rollout": held}})
        await world.settle()
        change["spec"]["template"]["spec"]["containers"][0]["image"] = "shop:3"
        await world.merge(DEPLOYMENTS, "shop", change)
        reason = (
            "wave canary has no cluster: none that it matches is among those that the change reaches, member-1,"
            " member-2, member-3; approve wave remaining to go on without it, or write whenEmpty: TakeFirst in the policy"
        )
        await world.until_equal(lambda: status_of(world, "message"), reason)
        await world.settle()
        assert await images(world) == ["shop:2"] * 3
        await world.merge(FEDERATED_ROLLOUTS, ROLLOUT, {"spec": {"approvedWave": {"revision": 2, "wave": "remaining"}}})
        await world.until_equal(lambda: status_of(world, "state"), "Complete")


async def test_the_walk_through_works() -> None:
    async with a_world(members=MEMBERS) as world:
        await world.create(PROPAGATION_POLICIES, manifest("01-policy.yaml"))
        await world.create(DEPLOYMENTS, manifest("02-shop.yaml"))
        await world.until_available("shop", 6)
        await world.until_equal(lambda: status_of(world, "state"), "Complete")

        change = {"spec": {"template": {"spec": {"containers": [{"name": "shop", "image": "shop:2"}]}}}}
        await world.merge(DEPLOYMENTS, "shop", change)
        await world.until_equal(lambda: status_of(world, "message"), "wave second waits for approval")
        assert await images(world) == ["shop:2", "shop:1", "shop:1"]
        approval = {"spec": {"approvedWave": {"revision": 1, "wave": "second"}}}
        await world.merge(FEDERATED_ROLLOUTS, ROLLOUT, approval)
        await world.until_equal(lambda: status_of(world, "state"), "Complete")
        assert await images(world) == ["shop:2"] * 3

        broken = manifest("03-broken.yaml")
        await world.user.patch(DEPLOYMENTS, "shop", broken, patch_type=PatchType.STRATEGIC, namespace="default")
        await world.until_equal(lambda: status_of(world, "state"), "RolledBack")
        assert await images(world) == ["shop:2"] * 3
        await world.merge(DEPLOYMENTS, "shop", {"spec": {"template": {"metadata": {"annotations": None}}}})
        await world.merge(DEPLOYMENTS, "shop", change)
        await world.until_equal(lambda: status_of(world, "state"), "Complete")
