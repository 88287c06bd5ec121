"""Groups of clusters: own hardware first, rented clusters for what has no room there, and back when there is room."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NODES, Object

OWN_ROOM = 3


def large(name: str, replicas: int, share: float) -> Object:
    """Return a Deployment of which so many replicas fill a node."""
    deployment = a_deployment(name, replicas)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": f"{int(share)}m"}}
    return deployment


def groups(**rented: str) -> Object:
    policy = a_policy({}, clusterGroups=[{"name": "own", "clusters": ["east"]}, {"name": "rented", **rented}])
    del policy["spec"]["placement"]
    return policy


async def each_m(world: World) -> float:
    """Return the cpu, in thousandths, of which `OWN_ROOM` fill the node of a member."""
    node = await world.members["east"].find(NODES, "node-1", namespace="")
    assert node is not None
    cores = str(node["status"]["allocatable"]["cpu"])
    return (float(cores[:-1]) if cores.endswith("m") else float(cores) * 1000) / (OWN_ROOM + 0.5)


async def test_the_peak_flows_into_rented_clusters_and_they_are_emptied_first() -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, groups(when="Overflow"))
        await world.create(DEPLOYMENTS, large("web", 2, await each_m(world)))
        await world.until_available("web", 2)
        assert await world.replicas("web") == {"east": 2}
        await world.scale("web", 5)
        await world.until_available("web", 5)
        assert await world.replicas("web") == {"east": 3, "west": 2}
        summary = (await world.federated("web"))["metadata"]["annotations"][names.SCHEDULING_SUMMARY]
        assert summary.endswith("in groups own and rented")
        await world.scale("web", 3)
        await world.until_replicas("web", {"east": 3})


async def test_replicas_return_to_their_own_cluster_when_it_has_room_and_none_is_missing_meanwhile() -> None:
    async with a_world(members=("east", "west")) as world:
        await overflow(world, groups(when="Overflow", returnPolicy="WhenRoom"))
        assert await world.replicas("web") == {"west": 2}
        await world.restart()
        await world.user.delete(DEPLOYMENTS, "batch", "default")
        least = 2
        while await world.replicas("web") != {"east": 2}:
            await world.pass_time(0.5)
            status = await world.status("web")
            least = min(least, status.get("availableReplicas", 0))
        assert least == 2
        await world.until_available("web", 2)


async def test_without_a_return_policy_what_runs_stays() -> None:
    async with a_world(members=("east", "west")) as world:
        await overflow(world, groups(when="Overflow"))
        await world.user.delete(DEPLOYMENTS, "batch", "default")
        await world.pass_time(120)
        assert await world.replicas("web") == {"west": 2}


async def test_the_own_cluster_dies_in_the_middle_of_the_return_and_no_replica_is_missing() -> None:
    async with a_world(members=("east", "west"), toleration_s=600) as world:
        await overflow(world, groups(when="Overflow", returnPolicy="WhenRoom"))
        world.members["east"].line.faults.begin(0.4, "5xx", "409", "429")
        await world.user.delete(DEPLOYMENTS, "batch", "default")
        await world.until_equal(lambda: is_there(world, "east"), True)
        await world.lose("east")
        world.kill()
        await world.restart()
        for _ in range(30):
            await world.pass_time(1)
            assert await available_in(world, "east") + await available_in(world, "west") >= 2
        world.members["east"].line.faults.end()
        world.members["west"].line.faults.begin(0.4, "5xx", "409", "429")
        await world.bring_back("east")
        least, deadline_s = 2, world.clock.monotonic() + 120
        while await world.replicas("web") != {"east": 2}:
            assert world.clock.monotonic() < deadline_s, await world.replicas("web")
            await world.pass_time(0.5)
            least = min(least, await available_in(world, "east") + await available_in(world, "west"))
        assert least == 2
        world.members["west"].line.faults.end()
        await world.until_available("web", 2)


async def test_what_was_evicted_in_the_middle_of_the_return_returns_after_all() -> None:
    async with a_world(members=("east", "west"), toleration_s=30) as world:
        await overflow(world, groups(when="Overflow", returnPolicy="WhenRoom"))
        await world.user.delete(DEPLOYMENTS, "batch", "default")
        await world.until_equal(lambda: is_there(world, "east"), True)
        await world.lose("east")
        await world.pass_time(60)
        await world.bring_back("east")
        await world.until_equal(lambda: world.replicas("web"), {"east": 1, "west": 1})
        await world.pass_time(300)  # until the cluster is stable
        await world.until_equal(lambda: world.replicas("web"), {"east": 2})
        await world.until_available("web", 2)


async def overflow(world: World, policy: Object) -> None:
    """Let batch fill the own cluster, so that web runs in the rented one."""
    await world.create(PROPAGATION_POLICIES, policy)
    share = await each_m(world)
    await world.create(DEPLOYMENTS, large("batch", 3, share))
    await world.until_available("batch", 3)
    await world.create(DEPLOYMENTS, large("web", 2, share))
    await world.until_available("web", 2)


async def is_there(world: World, cluster: str) -> bool:
    return await world.members[cluster].find(DEPLOYMENTS, "web") is not None


async def available_in(world: World, cluster: str) -> int:
    copy = await world.members[cluster].find(DEPLOYMENTS, "web")
    return 0 if copy is None else int((copy.get("status") or {}).get("availableReplicas", 0))
