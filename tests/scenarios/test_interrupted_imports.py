"""An import and a migration that fail in the middle go on or are taken back: nothing is lost, restarted or deleted."""

import pytest
from tests.support.faults import STORMS
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, PODS, SECRETS, Object, Resource
from federation.planning.federatedobject.imported import import_problem, to_source
from federation.plans.migration import Wish

NEEDED = ((CONFIGMAPS, "settings"), (SECRETS, "password"))
POLICY = "import-east"


def an_application() -> list[tuple[Resource, Object]]:
    """Return what runs in a member that the federation does not know of; the workload is last."""
    web = a_deployment("web", 4)
    web["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0}}
    pod = web["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "c", "configMap": {"name": "settings"}}]
    pod["containers"][0]["env"] = [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "password", "key": "p"}}}]
    metadata = [{"name": name, "namespace": "default"} for _, name in NEEDED]
    config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata[0], "data": {"a": "1"}}
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata[1], "data": {"p": "c2VjcmV0"}}
    return [(CONFIGMAPS, config), (SECRETS, secret), (DEPLOYMENTS, web)]


async def runs_alone(world: World) -> dict[str, str]:
    """Start the application in the member, and return its pods."""
    admin = world.members["east"].admin
    for resource, obj in an_application():
        await admin.create(resource, obj)
    await world.until_equal(lambda: running(world, "east"), 4)
    return await pods(world, "east")


async def pods(world: World, cluster: str) -> dict[str, str]:
    """Return the uids of the pods by name, those that are being deleted left out."""
    found = [each["metadata"] for each in (await world.members[cluster].admin.list(PODS, "default")).items]
    return {each["name"]: each["uid"] for each in found if "deletionTimestamp" not in each}


async def running(world: World, *clusters: str) -> int:
    """Return the available replicas in the members themselves."""
    copies = [await world.members[name].find(DEPLOYMENTS, "web") for name in clusters or world.members]
    return sum((copy.get("status") or {}).get("availableReplicas", 0) for copy in copies if copy is not None)


async def import_some(world: World, *kinds: Resource) -> None:
    """Create the sources of these kinds on the host, as `fedctl import` does."""
    for resource, obj in an_application():
        live = await world.members["east"].find(resource, obj["metadata"]["name"])
        if live is not None and resource in kinds and not import_problem(live):
            await world.create(resource, to_source(live, "east", (names.PROPAGATION_POLICY_LABEL, POLICY)))


async def begin_import(world: World) -> None:
    policy = a_policy({}, name=POLICY, schedulingMode="Duplicate", placement=[{"cluster": "east"}])
    policy["spec"]["resourceSelectors"] = []
    await world.create(PROPAGATION_POLICIES, policy)


async def managed(world: World, cluster: str) -> set[str]:
    """Return the names of the application's objects in a member that carry the federation's label."""
    found = [
        (name, await world.members[cluster].find(resource, name)) for resource, name in (*NEEDED, (DEPLOYMENTS, "web"))
    ]
    return {
        name
        for name, obj in found
        if obj is not None and (obj["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "true"
    }


async def imported(world: World) -> dict[str, str]:
    before = await runs_alone(world)
    await begin_import(world)
    await import_some(world, CONFIGMAPS, SECRETS, DEPLOYMENTS)
    await world.until_equal(lambda: managed(world, "east"), {"settings", "password", "web"})
    await world.until_available("web", 4)
    return before


async def least_until(world: World, expected: dict[str, int], *, patience_s: float = 300) -> int:
    """Wait for the replicas by cluster, and return the fewest available ones meanwhile."""
    least = 99
    for _ in range(int(patience_s)):
        least = min(least, await running(world))
        if await world.replicas("web") == expected:
            return least
        await world.pass_time(1)
    raise AssertionError(f"the replicas are {await world.replicas('web')}")


async def test_an_import_that_stops_in_the_middle_goes_on_and_restarts_no_pod() -> None:
    async with a_world(members=("east", "west")) as world:
        before = await runs_alone(world)
        await begin_import(world)
        await import_some(world, CONFIGMAPS)
        line = world.members["east"].line
        line.mode = "down"  # in the middle: the member dies before anything is taken over
        await import_some(world, DEPLOYMENTS)
        await world.stop()
        await world.pass_time(30)
        await world.restart()
        await world.pass_time(60)
        assert await managed(world, "east") == set()
        line.faults.begin(0.5, *STORMS)
        line.mode = "up"
        await world.pass_time(60)
        line.faults.end()
        await world.until_equal(lambda: managed(world, "east"), {"settings", "web"})
        await import_some(world, SECRETS)
        await world.until_equal(lambda: managed(world, "east"), {"settings", "web", "password"})
        await world.settle()
        assert await pods(world, "east") == before
        assert await running(world, "west") == 0

        # It is taken back: the host's objects go and the members keep theirs.
        for resource in (DEPLOYMENTS, SECRETS, CONFIGMAPS):
            name = next(obj["metadata"]["name"] for kind, obj in an_application() if kind == resource)
            await world.user.delete(resource, name, "default", propagation_policy="Orphan")
        line.mode = "down"
        await world.pass_time(10)
        line.mode = "up"
        await world.until_gone(DEPLOYMENTS, "web")
        await world.until_equal(lambda: managed(world, "east"), set())
        assert await pods(world, "east") == before


async def test_a_migration_whose_target_dies_is_taken_back() -> None:
    async with a_world(members=("east", "west"), toleration_s=600) as world:
        before = await imported(world)
        west = world.members["west"]
        west.line.faults.begin(0.6, "5xx", "409", "429")
        await world.merge(DEPLOYMENTS, "web", Wish(to=frozenset({"west"})).to_patch())
        await world.until_equal(lambda: is_there(world, "west"), True)
        await world.lose("west")
        west.line.faults.end()
        await world.restart()
        await world.pass_time(120)
        assert await running(world, "east") == 4
        await world.merge(DEPLOYMENTS, "web", Wish().to_patch())
        await world.pass_time(60)
        assert await pods(world, "east") == before
        await world.bring_back("west")
        assert await least_until(world, {"east": 4}) >= 4
        await world.until_available("web", 4)
        assert await pods(world, "east") == before
        assert await managed(world, "west") == set()


async def is_there(world: World, cluster: str) -> bool:
    return await world.members[cluster].find(DEPLOYMENTS, "web") is not None


@pytest.mark.parametrize("is_killed", [False, True], ids=["restarted", "killed"])
async def test_a_migration_goes_on_when_its_source_and_the_control_plane_come_back(is_killed: bool) -> None:
    async with a_world(members=("east", "west"), toleration_s=600) as world:
        await imported(world)
        await world.merge(DEPLOYMENTS, "web", Wish(to=frozenset({"west"})).to_patch())
        await world.until_equal(lambda: is_there(world, "west"), True)
        await world.lose("east")
        if is_killed:
            world.kill()
        await world.restart()
        await world.pass_time(60)
        assert await running(world, "east") + await running(world, "west") >= 4
        await world.bring_back("east")
        assert await least_until(world, {"west": 4}) >= 4
        await world.until_available("web", 4)
        for resource, name in NEEDED:
            assert await world.members["west"].find(resource, name) is not None
