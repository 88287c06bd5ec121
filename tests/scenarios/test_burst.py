"""Workloads that are applied at once count each other, before any member has reported them."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.simulator.options import NodeShape

CORES = {"east": 48, "north": 72, "west": 96}
NODES = {
    name: [NodeShape(f"{name}-{number}", cpu="24", memory="64Gi") for number in range(cores // 24)]
    for name, cores in CORES.items()
}


def a_web(number: int) -> Object:
    found = a_deployment(f"web-{number}", replicas=2)
    container = found["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "4", "memory": "1Gi"}}
    return found


async def _available(world: World) -> int:
    found = await world.user.list(DEPLOYMENTS, "default")
    return sum((each.get("status") or {}).get("availableReplicas") or 0 for each in found.items)


async def test_a_burst_of_deployments_leaves_no_pod_pending() -> None:
    async with a_world(members=tuple(CORES), spreading=NODES) as world:
        policy = a_policy({}, maxClusters=1)
        policy["spec"]["placement"] = [{"cluster": name} for name in CORES]
        await world.create(PROPAGATION_POLICIES, policy)
        for number in range(24):
            await world.create(DEPLOYMENTS, a_web(number))
        await world.until_equal(lambda: _available(world), 48)
        await world.settle()
        used = dict.fromkeys(CORES, 0)
        for number in range(24):
            (cluster,) = await world.replicas(f"web-{number}")
            used[cluster] += 8
        assert all(used[name] <= cores for name, cores in CORES.items())
