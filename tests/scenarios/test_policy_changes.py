"""A change of a policy reaches its objects in waves; a bad one returns, and objects that appear meanwhile are spared."""

from collections import Counter
from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.simulator.controllers.names import SIMULATOR_READY

OBJECTS = 8
WAVES: list[Object] = [
    {"name": "few", "objects": 2, "gate": {"soakSeconds": 20}, "timeoutSeconds": 60},
    {"name": "more", "objects": 3, "pause": True, "timeoutSeconds": 60},
]
MOVABLE: Object = {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {"policyContentChanged": True}}
NEVER_READY = {SIMULATOR_READY: "false"}
EAST, WEST = [{"cluster": "east"}], [{"cluster": "west"}]


def rollout(*waves: Object, **more: Any) -> Object:
    return {"changeRollout": {"waves": list(waves) or WAVES, **more}}


async def begin(world: World, **spec: Any) -> None:
    policy = a_policy({}, placement=EAST, reschedulePolicy=MOVABLE, **(rollout() | spec))
    await world.create(PROPAGATION_POLICIES, policy)
    for number in range(OBJECTS):
        await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", 1))
    await world.until_equal(lambda: placed(world), {"east": OBJECTS})
    await world.settle()


async def placed(world: World) -> Counter[str]:
    """Return how many workloads have their replicas in each cluster."""
    items = (await world.user.list(DEPLOYMENTS, "default")).items
    names = sorted(each["metadata"]["name"] for each in items)
    return Counter([cluster for name in names for cluster in await world.replicas(name)])


async def record(world: World, name: str = "divide") -> Any:
    policy = await world.find(PROPAGATION_POLICIES, name)
    assert policy is not None
    return policy["status"]["changeRollout"]


async def state(world: World) -> tuple[str, str]:
    found = await record(world)
    started = [wave["name"] for wave in found.get("waves") or () if wave.get("bound")]
    return found["state"], started[-1] if started else ""


async def test_a_change_reaches_its_objects_in_waves_and_a_restart_goes_on() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world)
        assert await state(world) == ("Complete", "")
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": WEST}})
        await world.until_equal(lambda: placed(world), {"east": OBJECTS - 2, "west": 2})
        await world.restart()
        await world.pass_time(60)
        assert await placed(world) == {"east": OBJECTS - 2, "west": 2}, "the second wave waits for approval"
        found = await record(world)
        assert found["message"] == "wave more waits for approval"
        # An object that appears now gets the policy of the last wave that succeeded.
        await world.create(DEPLOYMENTS, a_deployment("late", 1))
        await world.until_replicas("late", {"west": 1})
        approved = {"approvedWave": {"revision": found["revision"], "wave": "more"}}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"changeRollout": approved}})
        await world.until_equal(lambda: state(world), ("Complete", ""))
        assert await placed(world) == {"west": OBJECTS + 1}
        assert (await record(world))["earlier"]["spec"]["placement"] == WEST


async def test_a_bad_change_returns_and_new_objects_never_see_it() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "nowhere"}]}})
        await world.until_equal(lambda: state(world), ("Progressing", "few"))
        await world.create(DEPLOYMENTS, a_deployment("early", 1))
        await world.until_replicas("early", {"east": 1})
        await world.until_equal(lambda: state(world), ("RolledBack", "few"))
        assert "did not hold for 60 s" in (await record(world))["reason"]
        await world.create(DEPLOYMENTS, a_deployment("late", 1))
        await world.until_replicas("late", {"east": 1})
        await world.restart()
        await world.settle()
        assert await placed(world) == {"east": OBJECTS + 2}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": EAST}})
        await world.until_equal(lambda: state(world), ("Complete", ""))


async def test_an_override_that_breaks_pods_stops_after_the_first_objects() -> None:
    async with a_world(members=("east", "west")) as world:
        await begin(world, changeRollout=None)
        override = an_override("east", "/spec/template/spec/containers/0/image", "nginx:1.28")
        override["spec"] |= rollout({"name": "few", "objects": 3, "timeoutSeconds": 60})
        await world.create(OVERRIDE_POLICIES, override)
        await world.until_equal(lambda: images(world), {"nginx:1.28": OBJECTS})
        await world.settle()
        broken = an_override("east", "/spec/template/spec/containers/0/image", "nginx:broken")["spec"]["overrideRules"]
        never_ready = {"path": "/spec/template/metadata/annotations", "operator": "add", "value": NEVER_READY}
        broken[0]["overriders"]["jsonpatch"].append(never_ready)
        await world.merge(OVERRIDE_POLICIES, "special", {"spec": {"overrideRules": broken}})

        async def overridden() -> str:
            policy = await world.find(OVERRIDE_POLICIES, "special")
            assert policy is not None
            return str(policy["status"]["changeRollout"]["state"])

        await world.until_equal(lambda: images(world), {"nginx:1.28": OBJECTS - 3, "nginx:broken": 3})
        await world.until_equal(overridden, "RolledBack")
        assert await images(world) == {"nginx:1.28": OBJECTS}


async def images(world: World) -> Counter[str]:
    items = (await world.members["east"].admin.list(DEPLOYMENTS, "default")).items
    return Counter(each["spec"]["template"]["spec"]["containers"][0]["image"] for each in items)
