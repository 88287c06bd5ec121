"""Policies and content while members, host and control plane fail: what is in members is the old content or the new one."""

import functools
from datetime import timedelta
from typing import Any

import yaml
from tests.support.faults import STORMS
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world, a_world_without_pods

from federation.api import names
from federation.api.resources import (
    CLUSTER_DELIVERY_SUSPENSIONS,
    FEDERATED_TYPE_CONFIGS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object, Resource

IMAGE = "nginx:1.28"
NEW = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": IMAGE}]}}}}


async def copy_in(world: World, cluster: str, resource: Resource = DEPLOYMENTS, name: str = "web") -> Object:
    found = await world.members[cluster].find(resource, name)
    assert found is not None
    return found


async def image(world: World, cluster: str) -> str:
    return str((await copy_in(world, cluster))["spec"]["template"]["spec"]["containers"][0]["image"])


async def is_managed(world: World, cluster: str) -> bool:
    return names.MANAGED_LABEL in ((await copy_in(world, cluster))["metadata"].get("labels") or {})


async def test_an_equal_object_is_taken_over_once_after_all_failures() -> None:
    async with a_world_without_pods(members=("east",)) as world:
        east = world.members["east"]
        theirs = a_deployment("web", 2)
        theirs["spec"]["minReadySeconds"] = 7
        before = await east.admin.create(DEPLOYMENTS, theirs)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        ours = a_deployment("web", 2)
        ours["spec"]["minReadySeconds"] = 8
        wishes = {names.CONFLICT_RESOLUTION: "adopt-if-equal", names.CLUSTERS_TO_ADOPT: '{"regexp":"."}'}
        ours["metadata"]["annotations"] = wishes
        east.line.faults.begin(0.5, *STORMS)
        await world.create(DEPLOYMENTS, ours)
        await world.pass_time(30)
        await world.lose("east")
        world.kill()
        await world.restart()
        east.line.faults.end()
        await world.bring_back("east")
        await world.pass_time(30)
        assert not await is_managed(world, "east")
        assert (await copy_in(world, "east"))["spec"] == before["spec"], "it differs, so it is left alone"
        east.line.faults.begin(0.5, "5xx", "409")
        await world.merge(DEPLOYMENTS, "web", {"spec": {"minReadySeconds": 7}})
        await world.until_equal(lambda: is_managed(world, "east"), True)
        east.line.faults.end()
        after = await copy_in(world, "east")
        assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])


async def test_a_retained_field_is_never_overwritten_while_an_update_fails() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        rules = [{"path": "spec.minReadySeconds", "expression": "member > template ? member : template"}]
        await world.merge(FEDERATED_TYPE_CONFIGS, "deployments.apps", {"spec": {"retention": rules}})
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", 2))
        await world.until_replicas("web", {"east": 1, "west": 1})
        east = world.members["east"]
        await east.merge(DEPLOYMENTS, "web", {"spec": {"minReadySeconds": 5}})
        east.line.faults.begin(0.7, *STORMS)
        await world.merge(DEPLOYMENTS, "web", {"spec": {**NEW["spec"], "minReadySeconds": 2}})
        for step in range(40):
            await world.pass_time(1)
            assert (await copy_in(world, "east"))["spec"]["minReadySeconds"] == 5
            if step == 5:
                await world.restart()
            if step == 15:
                east.line.mode = "down"
                await east.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
            if step == 25:
                world.kill()
                await world.restart()
                east.line.mode = "up"
        east.line.faults.end()
        await world.until_replicas("web", {"east": 1, "west": 1})
        await world.until_equal(lambda: image(world, "east"), IMAGE)
        assert (await copy_in(world, "east"))["spec"]["minReadySeconds"] == 5
        assert (await copy_in(world, "west"))["spec"]["minReadySeconds"] == 2


def text_override(sub_path: str) -> list[Object]:
    change = {"subPath": sub_path, "value": "db.east"}
    fields = [{"fieldPath": "/data/app.yaml", "yaml": [change]}]
    return [{"targetClusters": {"clusters": ["east"]}, "overriders": {"fields": fields}}]


async def test_content_without_its_overrides_reaches_no_member_while_they_fail() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        kinds = [{"apiVersion": "v1", "kind": "ConfigMap"}]
        policy = a_policy({"east": 1, "west": 1}, schedulingMode="Duplicate", resourceSelectors=kinds)
        await world.create(PROPAGATION_POLICIES, policy)
        override = an_override("east", "/x", "", name="texts")
        override["spec"] = {"resourceSelectors": kinds, "overrideRules": text_override("/database/host")}
        await world.create(OVERRIDE_POLICIES, override)
        label = {names.OVERRIDE_POLICY_LABEL: "texts"}
        metadata = {"name": "app", "namespace": "default", "labels": label}
        data = {"app.yaml": "database: {host: db, port: 1}\n"}
        await world.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        await world.until_equal(lambda: databases(world), {"east": ("db.east", 1), "west": ("db", 1)})

        # The text and the rule change while the member answers errors; the rule does not fit the new text.
        east = world.members["east"]
        east.line.faults.begin(0.6, *STORMS)
        broken = {"spec": {"overrideRules": text_override("/nothing/at/all/host")}}
        await world.merge(OVERRIDE_POLICIES, "texts", broken)
        await world.merge(CONFIGMAPS, "app", {"data": {"app.yaml": "database: {host: db, port: 2}\n"}})
        world.kill()
        await world.restart()
        for _ in range(20):
            await world.pass_time(1)
            assert (await databases(world))["east"] == ("db.east", 1)
        assert (await databases(world))["west"] == ("db", 2), "other clusters do not wait"
        await world.lose("east")
        mended = {"spec": {"overrideRules": text_override("/database/host")}}
        await world.merge(OVERRIDE_POLICIES, "texts", mended)
        await world.restart()
        east.line.faults.end()
        await world.bring_back("east")
        await world.until_equal(lambda: databases(world), {"east": ("db.east", 2), "west": ("db", 2)})


async def databases(world: World) -> dict[str, tuple[str, int]]:
    """Return host and port in the text of each member."""
    found = {}
    for member in world.members.values():
        if (config := await member.find(CONFIGMAPS, "app")) is not None:
            database = yaml.safe_load(config["data"]["app.yaml"])["database"]
            found[member.name] = (database["host"], database["port"])
    return found


async def test_what_a_suspension_holds_is_deleted_only_after_its_end_also_in_a_cluster_that_was_lost() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", 4))
        await world.until_replicas("web", {"east": 2, "west": 2})
        east = world.members["east"]
        until = to_rfc3339(world.clock.now() + timedelta(seconds=100))
        body = {"owner": "storage team", "reason": "volumes are copied", "clusters": ["east"], "until": until}
        metadata = {"name": "copy"}
        await world.create(CLUSTER_DELIVERY_SUSPENSIONS, {"metadata": metadata, "spec": body})
        await world.pass_time(1)
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.lose("east")
        await world.restart()
        await world.bring_back("east")
        await world.pass_time(20)
        assert (await image(world, "east"), await image(world, "west")) == ("nginx:1.27", IMAGE)
        await world.user.delete(DEPLOYMENTS, "web", "default")
        east.line.faults.begin(0.5, *STORMS)
        world.kill()
        await world.restart()
        await world.pass_time(40)
        assert await world.replicas("web") == {"east": 2}
        await world.pass_time(60)
        east.line.faults.end()
        await world.until_equal(lambda: world.replicas("web"), {})
        await world.until_gone(DEPLOYMENTS, "web")


async def test_a_policy_of_higher_priority_moves_a_workload_through_failures_and_gives_it_back() -> None:
    async with a_world(members=("east", "west"), toleration_s=600) as world:
        single: dict[str, Any] = {"schedulingMode": "Duplicate", "maxClusters": 1}
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, name="base", **single))
        web = a_deployment("web", 2)
        web["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0}}
        await world.create(DEPLOYMENTS, web)
        await world.until_available("web", 2)
        west = world.members["west"]
        west.line.faults.begin(0.5, *STORMS)
        await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, name="urgent", priority=5, **single))
        await world.until(functools.partial(west.find, DEPLOYMENTS, "web"), "the new copy")
        await world.lose("west")
        west.line.faults.end()
        world.kill()
        await world.restart()
        await world.pass_time(30)
        assert await available(world, "east") == 2, "the new copy is not known to run"
        await world.user.delete(PROPAGATION_POLICIES, "urgent", "default")
        await world.pass_time(20)
        await world.bring_back("west")
        await world.until_replicas("web", {"east": 2})
        assert await available(world, "east") == 2

        await world.create(PROPAGATION_POLICIES, a_policy({"west": 1}, name="urgent", priority=5, **single))
        while await world.replicas("web") != {"west": 2}:
            await world.pass_time(0.5)
            assert await available(world, "east") + await available(world, "west") >= 2
        await world.until_available("web", 2)


async def available(world: World, cluster: str) -> int:
    copy = await world.members[cluster].find(DEPLOYMENTS, "web")
    return 0 if copy is None else int((copy.get("status") or {}).get("availableReplicas", 0))
