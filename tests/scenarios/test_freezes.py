"""In a freeze nothing is moved and nothing is updated; scaling and repairs go on, and afterwards everything that waited."""

import re
from datetime import timedelta
from typing import Any

import yaml
from tests.support.manifests import a_deployment, a_policy
from tests.support.sources import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CHANGE_FREEZES, FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.planning.freezes.names import FREEZE_EXCEPTIONS
from federation.scheduling.names import REASON_FROZEN
from federation.simulator.controllers.names import SIMULATOR_READY

NEW = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}}
PATIENCE_S = 60
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")


async def freeze(world: World, seconds: float = 300, **spec: Any) -> str:
    """Create a freeze that holds from now on; return its end."""
    now = world.clock.now()
    end = to_rfc3339(now + timedelta(seconds=seconds))
    windows = [{"start": to_rfc3339(now - timedelta(seconds=1)), "end": end}]
    body: Object = {
        "apiVersion": CHANGE_FREEZES.api_version,
        "kind": CHANGE_FREEZES.kind,
        "metadata": {"name": "sale"},
        "spec": {"reason": "the sale, ask ops", "windows": windows, **spec},
    }
    await world.create(CHANGE_FREEZES, body)
    await world.pass_time(1)
    return end


async def images(world: World, name: str = "web") -> set[str]:
    copies = [await member.find(DEPLOYMENTS, name) for member in world.members.values()]
    return {copy["spec"]["template"]["spec"]["containers"][0]["image"] for copy in copies if copy is not None}


async def running(world: World, available: int = 4, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", 4))
    await world.until_available("web", available)
    await world.settle()


async def drain(world: World, cluster: str) -> None:
    taint = {"key": names.TAINT_DRAIN, "effect": "NoExecute", "timeAdded": to_rfc3339(world.clock.now())}
    await world.user.patch(FEDERATED_CLUSTERS, cluster, {"spec": {"taints": [taint]}})


async def test_updates_wait_and_scaling_goes_on() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        end = await freeze(world)
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.restart()
        await world.pass_time(PATIENCE_S)
        assert await images(world) == {"nginx:1.27"}
        propagated = await world.condition("web", names.PROPAGATED)
        assert f"ChangeFreeze sale holds until {end}: the sale, ask ops" in propagated["message"]
        await world.scale("web", 6)
        await world.until_replicas("web", {"east": 3, "west": 3})
        assert await images(world) == {"nginx:1.27"}
        await world.pass_time(300)
        assert await images(world) == {"nginx:1.28"}


async def test_a_rollback_passes_a_freeze() -> None:
    canary = {"name": "canary", "clusters": ["east"], "timeoutSeconds": 120}
    async with a_world(members=("east", "west")) as world:
        await running(world, rollout={"onFailure": "RollBack", "waves": [canary]})
        template = {"metadata": {"annotations": {SIMULATOR_READY: "false"}}, **NEW["spec"]["template"]}
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})
        await world.until_equal(lambda: images(world), {"nginx:1.28", "nginx:1.27"})
        await freeze(world, 3600)
        await world.until_equal(lambda: images(world), {"nginx:1.27"})
        await world.until_available("web", 4)
        working = {"metadata": {"annotations": {SIMULATOR_READY: None}}}
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": working}})
        await world.pass_time(300)
        assert await images(world) == {"nginx:1.27"}, "the next attempt waits"
        await world.user.delete(CHANGE_FREEZES, "sale")
        await world.until_equal(lambda: images(world), {"nginx:1.28"})
        await world.until_available("web", 4)


async def test_a_change_that_its_user_takes_back_passes_a_freeze_and_the_next_one_waits() -> None:
    canary = {"name": "canary", "clusters": ["east"], "timeoutSeconds": 3_600}
    async with a_world(members=("east", "west")) as world:
        await running(world, rollout={"onFailure": "Pause", "waves": [canary]})
        template = {"metadata": {"annotations": {SIMULATOR_READY: "false"}}, **NEW["spec"]["template"]}
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})
        await world.until_equal(lambda: images(world), {"nginx:1.28", "nginx:1.27"})
        await freeze(world, 3600)
        earlier = {
            "metadata": {"annotations": {SIMULATOR_READY: None}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}]},
        }
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": earlier}})
        await world.until_equal(lambda: images(world), {"nginx:1.27"})
        await world.until_available("web", 4)
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.pass_time(300)
        assert await images(world) == {"nginx:1.27"}
        await world.user.delete(CHANGE_FREEZES, "sale")
        await world.until_equal(lambda: images(world), {"nginx:1.28"})
        await world.until_available("web", 4)


async def test_copies_and_configuration_wait_too_and_drift_is_repaired() -> None:
    async with a_world(members=("east", "west")) as world:
        kinds = [{"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "apps/v1", "kind": "Deployment"}]
        await running(world, 8, schedulingMode="Duplicate", resourceSelectors=kinds)
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}}
        await world.create(CONFIG_MAPS, {**config, "data": {"a": "1"}})
        await world.settle()
        await freeze(world)
        await world.members["west"].admin.patch(CONFIG_MAPS, "c", {"data": {"a": "3"}}, namespace="default")
        await world.pass_time(10)
        copy = await world.members["west"].find(CONFIG_MAPS, "c")
        assert copy is not None
        assert copy["data"] == {"a": "1"}, "a repair is no update"
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.merge(CONFIG_MAPS, "c", {"data": {"a": "2"}})
        await world.pass_time(PATIENCE_S)
        assert await images(world) == {"nginx:1.27"}
        await world.user.delete(CHANGE_FREEZES, "sale")
        await world.pass_time(10)
        assert await images(world) == {"nginx:1.28"}
        copy = await world.members["east"].find(CONFIG_MAPS, "c")
        assert copy is not None
        assert copy["data"] == {"a": "2"}


async def test_nothing_is_evicted_until_the_end() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        end = await freeze(world)
        await drain(world, "east")
        await world.pass_time(PATIENCE_S)
        assert await world.replicas("web") == {"east": 2, "west": 2}
        scheduled = await world.condition("web", names.SCHEDULED)
        assert scheduled["reason"] == REASON_FROZEN
        assert f"ChangeFreeze sale holds until {end}: the sale, ask ops" in scheduled["message"]
        await world.restart()
        await world.pass_time(PATIENCE_S)
        assert await world.replicas("web") == {"east": 2, "west": 2}
        await world.until_replicas("web", {"west": 4})
        await world.until_equal(lambda: reason(world), "")


async def test_a_drain_that_is_taken_back_within_a_freeze_holds_nothing_any_more() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await freeze(world, 3600)
        await drain(world, "east")
        await world.until_equal(lambda: reason(world), REASON_FROZEN)
        await world.user.patch(FEDERATED_CLUSTERS, "east", {"spec": {"taints": []}})
        await world.pass_time(PATIENCE_S)
        assert await reason(world) == ""
        assert await world.replicas("web") == {"east": 2, "west": 2}


async def reason(world: World) -> str:
    condition = await world.condition("web", names.SCHEDULED)
    return str(condition["reason"]) if condition.get("status") == "False" else ""


async def test_an_exception_and_other_clusters_are_not_held() -> None:
    async with a_world(members=("east", "west"), labels={"east": {"tier": "prod"}}) as world:
        await running(world)
        await world.create(DEPLOYMENTS, a_deployment("api", 2))
        await world.until_available("api", 2)
        await freeze(world, clusterSelector={"matchLabels": {"tier": "prod"}})
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.merge(DEPLOYMENTS, "api", NEW)
        await world.pass_time(PATIENCE_S)
        assert await images(world) == {"nginx:1.27", "nginx:1.28"}, "west is not frozen"
        exceptions = {"metadata": {"annotations": {FREEZE_EXCEPTIONS: "default/api"}}}
        await world.user.patch(CHANGE_FREEZES, "sale", exceptions)
        await world.pass_time(10)
        assert await images(world, "api") == {"nginx:1.28"}
        assert await images(world) == {"nginx:1.27", "nginx:1.28"}
        await world.user.delete(CHANGE_FREEZES, "sale")


async def test_a_policy_edit_moves_nothing_and_new_objects_are_placed() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await freeze(world, holds=["Moves"])
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.create(DEPLOYMENTS, a_deployment("new", 2))
        await world.until_available("new", 2)
        await world.pass_time(PATIENCE_S)
        assert await world.replicas("web") == {"east": 2, "west": 2}
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.pass_time(20)
        assert await images(world) == {"nginx:1.28"}, "updates are not held"
        await world.pass_time(200)
        await world.until_replicas("web", {"west": 4})


async def test_the_freeze_of_the_reference_is_accepted() -> None:
    page = (ROOT / "docs" / "reference" / "freezes.md").read_text(encoding="utf-8")
    [example] = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    async with a_world(members=("east",)) as world:
        await world.create(CHANGE_FREEZES, example)


async def test_a_move_that_is_frozen_does_not_go_on_while_its_cluster_is_lost() -> None:
    async with a_world() as world:
        copies = a_policy({}, schedulingMode="Duplicate")
        await world.create(
            PROPAGATION_POLICIES, {**copies, "spec": {**copies["spec"], "placement": [{"cluster": "east"}]}}
        )
        await world.create(DEPLOYMENTS, a_deployment("web", 4))
        await world.until_available("web", 4)
        await freeze(world, 3600)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.settle()
        await world.lose("east")
        await world.pass_time(200)
        assert await world.members["west"].find(DEPLOYMENTS, "web") is None
        await world.bring_back("east")
        await world.pass_time(600)
        assert await world.replicas("web") == {"east": 4}
        await world.user.delete(CHANGE_FREEZES, "sale")
        await world.until_replicas("web", {"west": 4})
