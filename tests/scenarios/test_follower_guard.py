"""A policy that would take the followers from many running workloads is held until somebody approves it."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS


async def _fleet(world: World, count: int) -> None:
    """Create Deployments with a ConfigMap each."""
    policy = a_policy({"east": 1, "west": 1}, name="copies", schedulingMode="Duplicate")
    await world.create(PROPAGATION_POLICIES, policy)
    for number in range(count):
        metadata = {"name": f"settings-{number:02}", "namespace": "default"}
        await world.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        deployment = a_deployment(f"app-{number:02}", replicas=1)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["envFrom"] = [{"configMapRef": {"name": metadata["name"]}}]
        await world.create(DEPLOYMENTS, deployment)
    await world.until_equal(lambda: _settings(world), {"east": count, "west": count})
    await world.settle()


async def _settings(world: World) -> dict[str, int]:
    """Return how many of the ConfigMaps each member has."""
    found = {}
    for name, member in world.members.items():
        items = (await member.admin.list(CONFIGMAPS, "default")).items
        found[name] = len([each for each in items if each["metadata"]["name"].startswith("settings-")])
    return found


async def _holds(world: World) -> list[tuple[str, int]]:
    items = (await world.user.list(PLACEMENT_HOLDS)).items
    return [(hold["spec"]["cause"], hold["spec"]["count"]) for hold in items if not hold["spec"].get("approval")]


async def _follow(world: World, *, is_on: bool) -> None:
    await world.merge(PROPAGATION_POLICIES, "copies", {"spec": {"disableFollowerScheduling": not is_on}})
    await world.settle()


async def test_a_policy_that_ends_following_for_many_workloads_is_held_until_somebody_approves() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, 15)
        await _follow(world, is_on=False)
        assert await _settings(world) == {"east": 15, "west": 15}
        assert await _holds(world) == [("Following default/ConfigMap", 15)]
        assert "FollowersHeld" in [reason for reason, _ in await world.events()]

        # Taken back: nothing is held any more.
        await _follow(world, is_on=True)
        assert not await _holds(world)
        federated = await world.user.get(FEDERATED_OBJECTS, "settings-03-configmaps", "default")
        assert names.HELD_FOLLOWING not in federated["metadata"]["annotations"]

        await _follow(world, is_on=False)
        await world.restart()
        await world.settle()
        assert await _settings(world) == {"east": 15, "west": 15}
        # What users do themselves goes on: a workload that is deleted takes its follower along.
        await world.user.delete(DEPLOYMENTS, "app-00", "default")
        await world.until_equal(lambda: _settings(world), {"east": 14, "west": 14})
        await world.settle()

        (hold,) = (await world.user.list(PLACEMENT_HOLDS)).items
        assert hold["spec"]["count"] == 14
        await world.pass_time(1)
        approval = {"reason": "planned", "by": "admin", "at": to_rfc3339(world.clock.now())}
        await world.merge(PLACEMENT_HOLDS, hold["metadata"]["name"], {"spec": {"approval": approval}}, "")
        await world.until_equal(lambda: _settings(world), {"east": 0, "west": 0})


async def test_the_end_of_following_for_few_workloads_acts_at_once() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, 5)
        await _follow(world, is_on=False)
        assert await _settings(world) == {"east": 0, "west": 0}
        assert not await _holds(world)


async def test_many_workloads_that_are_deleted_take_their_followers_along() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, 15)
        for number in range(15):
            await world.user.delete(DEPLOYMENTS, f"app-{number:02}", "default")
        await world.until_equal(lambda: _settings(world), {"east": 0, "west": 0})
        assert not await _holds(world)
