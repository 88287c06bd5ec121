"""Clusters that get a workload while its template is rolled out, or after it failed, get the last one that succeeded."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_ROLLOUTS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.simulator.controllers.names import SIMULATOR_READY

WAVES: Object = {
    "onFailure": "RollBack",
    "waves": [
        {"name": "first", "share": 50, "gate": {"soakSeconds": 30}, "timeoutSeconds": 60},
        {"name": "rest", "timeoutSeconds": 3600},
    ],
}
OLD, NEW = "nginx:1.27", "nginx:1.28"


async def start(world: World, rollout: Object = WAVES, **spec: Any) -> tuple[list[str], str]:
    """Create a Deployment in two of three clusters; return these, and the third."""
    await world.create(PROPAGATION_POLICIES, a_policy({}, maxClusters=2, rollout=rollout, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
    await world.until_available("web", 6)
    await world.until_equal(lambda: state(world), "Complete")
    placed = sorted(name for name, count in (await world.replicas("web")).items() if count)
    return placed, next(name for name in world.members if name not in placed)


async def rollout(world: World) -> Object:
    found = await world.find(FEDERATED_ROLLOUTS, "web-deployments.apps")
    return (found or {}).get("status") or {}


async def state(world: World) -> str:
    return str((await rollout(world)).get("state"))


async def images(world: World) -> dict[str, str]:
    found = {name: await member.find(DEPLOYMENTS, "web") for name, member in world.members.items()}
    return {name: copy["spec"]["template"]["spec"]["containers"][0]["image"] for name, copy in found.items() if copy}


async def set_template(world: World, image: str, *, is_ready: bool = True) -> None:
    annotations = {SIMULATOR_READY: None if is_ready else "false"}
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "web", "image": image}]}}
    await world.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})


async def drain(world: World, name: str) -> None:
    taint = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": to_rfc3339(world.clock.now())}
    await world.merge(FEDERATED_CLUSTERS, name, {"spec": {"taints": [taint]}})


async def test_a_drain_after_a_rollback_ends_with_the_earlier_template() -> None:
    async with a_world() as world:
        placed, third = await start(world)
        await set_template(world, "broken:1", is_ready=False)
        await world.until_equal(lambda: state(world), "RolledBack")
        await world.until_equal(lambda: images(world), dict.fromkeys(placed, OLD))
        await world.restart()
        await drain(world, placed[0])
        await world.until_equal(lambda: images(world), {placed[1]: OLD, third: OLD})
        await world.until_available("web", 6)
        # Nor is the failed template written if somebody deletes the object there.
        await world.members[third].admin.delete(DEPLOYMENTS, "web", "default")
        await world.settle()
        assert await images(world) == {placed[1]: OLD, third: OLD}
        # All clusters of the failed rollout leave.
        await world.merge(FEDERATED_CLUSTERS, placed[0], {"spec": {"taints": None}})
        await world.settle()
        await drain(world, third)
        await drain(world, placed[1])
        await world.settle()
        assert set((await images(world)).values()) == {OLD}
        # The next template reaches every cluster.
        await set_template(world, NEW)
        await world.until_equal(lambda: state(world), "Complete")
        assert set((await images(world)).values()) == {NEW}


async def test_a_cluster_that_comes_before_the_first_wave_has_succeeded_gets_the_earlier_template_and_then_a_wave() -> (
    None
):
    async with a_world() as world:
        placed, third = await start(world)
        await set_template(world, NEW)
        await drain(world, placed[1])
        await world.until_equal(lambda: images(world), {placed[0]: NEW, third: OLD})
        await world.until_equal(lambda: state(world), "Complete")
        assert await images(world) == {placed[0]: NEW, third: NEW}


async def test_a_cluster_that_comes_after_a_wave_has_succeeded_gets_the_new_template() -> None:
    waves = [WAVES["waves"][0] | {"gate": {"soakSeconds": 5}}, {"name": "rest", "pause": True}]
    async with a_world() as world:
        placed, third = await start(world, {"onFailure": "RollBack", "waves": waves})
        await set_template(world, NEW)

        async def message() -> str:
            return str((await rollout(world)).get("message"))

        await world.until_equal(message, "wave rest waits for approval")
        await world.restart()
        await drain(world, placed[1])
        await world.until_equal(lambda: images(world), {placed[0]: NEW, third: NEW})
        # It goes back with the others if the rollout fails after all.
        await world.merge(FEDERATED_ROLLOUTS, "web-deployments.apps", {"spec": {"abort": 1}})
        await world.until_equal(lambda: images(world), {placed[0]: OLD, third: OLD})


async def test_a_copy_in_a_joining_cluster_gets_what_the_others_run_after_an_override_was_rolled_back() -> None:
    async with a_world() as world:
        policy = a_policy({}, rollout=WAVES, schedulingMode="Duplicate", clusterSelector={"web": "true"})
        for name in ("east", "north"):
            await world.merge(FEDERATED_CLUSTERS, name, {"metadata": {"labels": {"web": "true"}}})
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_available("web", 4)
        await world.until_equal(lambda: state(world), "Complete")
        path = "/spec/template/metadata/annotations"
        override = an_override("east", path, {SIMULATOR_READY: "false"})
        del override["spec"]["overrideRules"][0]["targetClusters"]
        override["spec"]["overrideRules"][0]["overriders"]["jsonpatch"][0]["operator"] = "add"
        await world.create(OVERRIDE_POLICIES, override)
        await world.until_equal(lambda: state(world), "RolledBack")
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"clusterSelector": None}})
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        await world.until_available("web", 6)
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await world.until_equal(lambda: state(world), "Complete")


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_cluster_that_comes_in_the_moment_of_the_first_change_waits_for_its_approval(
    *, is_killed: bool
) -> None:
    async with a_world() as world:
        placed, third = await start(world)
        if is_killed:
            world.kill()
        await drain(world, placed[0])
        await drain(world, placed[1])
        await set_template(world, "broken:1", is_ready=False)
        if is_killed:
            await world.restart()
        seen = set()
        for _ in range(100):
            seen.add((await images(world)).get(third))
            await world.clock.advance(0.2)
        assert OLD in seen
        assert next(image for image in (OLD, "broken:1") if image in seen) == OLD
