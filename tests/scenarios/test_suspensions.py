"""While a delivery is suspended nothing is written or deleted in its clusters; afterwards everything that waited is."""

import re
from datetime import timedelta
from typing import Any

import yaml
from tests.support.manifests import a_deployment, a_policy
from tests.support.sources import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    CLUSTER_DELIVERY_SUSPENSIONS,
    CLUSTER_OVERRIDE_POLICIES,
    DELIVERY_SUSPENSIONS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.scheduling.names import REASON_SUSPENDED

NEW = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}}
PATIENCE_S = 90


def a_suspension(resource: Resource = DELIVERY_SUSPENSIONS, **spec: Any) -> Object:
    metadata = {"name": "copy", **({"namespace": "default"} if resource.namespaced else {})}
    body = {"owner": "storage team", "reason": "volumes are copied", **spec}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": body}


async def suspend(world: World, seconds: float = 600, **spec: Any) -> str:
    """Suspend until then; return the end."""
    end = to_rfc3339(world.clock.now() + timedelta(seconds=seconds))
    await world.create(DELIVERY_SUSPENSIONS, a_suspension(until=end, **spec))
    await world.pass_time(1)
    return end


async def running(world: World, **spec: Any) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, **spec))
    await world.create(DEPLOYMENTS, a_deployment("web", 4))
    await world.until_available("web", 4)
    await world.settle()


async def image(world: World, member: str) -> str:
    copy = await world.members[member].find(DEPLOYMENTS, "web")
    assert copy is not None
    return str(copy["spec"]["template"]["spec"]["containers"][0]["image"])


async def states(world: World) -> dict[str, str]:
    entries = (await world.federated("web")).get("status", {}).get("clusters") or ()
    return {entry["cluster"]: entry["status"] for entry in entries}


async def test_a_suspended_cluster_keeps_what_it_has_and_others_go_on() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        end = await suspend(world, clusters=["east"])
        assert await states(world) == {"east": "OK", "west": "OK"}, "nothing is due"
        before = await world.members["east"].find(DEPLOYMENTS, "web")
        await world.members["east"].admin.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, namespace="default")
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.restart()
        await world.pass_time(PATIENCE_S)
        assert (await image(world, "east"), await image(world, "west")) == ("nginx:1.27", "nginx:1.28")
        copy = await world.members["east"].find(DEPLOYMENTS, "web")
        assert before is not None
        assert copy is not None
        assert copy["spec"]["replicas"] == 1, "drift is not repaired"
        assert (await states(world))["east"] == "DeliverySuspended"
        propagated = await world.condition("web", names.PROPAGATED)
        held = f"DeliverySuspension default/copy holds until {end}: volumes are copied (owner: storage team)"
        assert held in propagated["message"]
        await world.pass_time(600)
        assert await image(world, "east") == "nginx:1.28"
        await world.until_replicas("web", {"east": 2, "west": 2})


async def test_a_suspension_of_a_namespace_stops_no_deletion() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await suspend(world)
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.members["east"].find(DEPLOYMENTS, "web") is None


async def test_a_suspension_of_a_namespace_stops_neither_a_move_nor_the_removal_of_a_cluster() -> None:
    async with a_world(members=("east", "west", "north")) as world:
        await running(world)
        await suspend(world, clusters=["east", "north"])
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.until_replicas("web", {"west": 4})
        assert await world.members["east"].find(DEPLOYMENTS, "web") is None


async def test_what_a_cluster_override_policy_changes_passes_a_suspension_of_a_namespace() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await suspend(world)
        await world.merge(DEPLOYMENTS, "web", NEW)
        await world.pass_time(PATIENCE_S)
        assert await image(world, "east") == "nginx:1.27"
        restriction = [{"path": "/spec/template/spec/automountServiceAccountToken", "operator": "add", "value": False}]
        rules = [{"targetClusters": {"clusters": ["east"]}, "overriders": {"jsonpatch": restriction}}]
        labels = {names.CLUSTER_OVERRIDE_POLICY_LABEL: "restrict"}
        await world.create(
            CLUSTER_OVERRIDE_POLICIES,
            {
                "apiVersion": CLUSTER_OVERRIDE_POLICIES.api_version,
                "kind": CLUSTER_OVERRIDE_POLICIES.kind,
                "metadata": {"name": "restrict"},
                "spec": {"overrideRules": rules},
            },
        )
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"labels": labels}})
        await world.pass_time(PATIENCE_S)
        copy = await world.members["east"].find(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
        assert await states(world) == {"east": "OK", "west": "DeliverySuspended"}
        await world.user.delete(DELIVERY_SUSPENSIONS, "copy", "default")
        await world.settle()
        assert await image(world, "west") == "nginx:1.28"


async def test_a_suspension_of_an_administrator_stops_the_deletion_of_the_source() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        objects = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
        await world.create(
            CLUSTER_DELIVERY_SUSPENSIONS, a_suspension(CLUSTER_DELIVERY_SUSPENSIONS, clusters=["east"], objects=objects)
        )
        await world.pass_time(1)
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.pass_time(PATIENCE_S)
        assert await world.members["east"].find(DEPLOYMENTS, "web") is not None
        assert await world.members["west"].find(DEPLOYMENTS, "web") is None
        assert await states(world) == {"east": "DeliverySuspended"}
        await world.user.delete(CLUSTER_DELIVERY_SUSPENSIONS, "copy")
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.members["east"].find(DEPLOYMENTS, "web") is None


async def test_what_leaves_a_suspended_cluster_waits_and_nothing_new_comes() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await world.create(CLUSTER_DELIVERY_SUSPENSIONS, a_suspension(CLUSTER_DELIVERY_SUSPENSIONS, clusters=["east"]))
        await world.pass_time(1)
        await world.create(DEPLOYMENTS, a_deployment("new", 2))
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "west"}]}})
        await world.pass_time(PATIENCE_S)
        assert await world.members["east"].find(DEPLOYMENTS, "new") is None
        copy = await world.members["east"].find(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["spec"]["replicas"] == 2
        copy = await world.members["west"].find(DEPLOYMENTS, "web")
        assert copy is not None
        assert copy["spec"]["replicas"] == 3, "one more than the workload has, as maxSurge allows"
        await world.user.delete(CLUSTER_DELIVERY_SUSPENSIONS, "copy")
        await world.until_replicas("web", {"west": 4})
        await world.until_available("new", 2)


async def test_while_scheduling_is_suspended_nothing_is_placed_or_moved_and_then_what_waited_is() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        suspension = {"spec": {"suspension": {"scheduling": True, "reason": "ask platform"}}}
        await world.merge(PROPAGATION_POLICIES, "divide", suspension)
        await world.settle()
        assert not await world.condition("web", names.SCHEDULED), "nothing waits yet"

        await world.create(DEPLOYMENTS, a_deployment("new", 2))
        await world.scale("web", 6)
        await world.lose("west")
        await world.pass_time(600)
        assert await world.replicas("new") == {}
        assert await world.replicas("web") == {"east": 2, "west": 2}
        scheduled = await world.condition("new", names.SCHEDULED)
        assert (scheduled["status"], scheduled["reason"]) == ("False", REASON_SUSPENDED)
        assert scheduled["message"].endswith("suspends scheduling: ask platform")
        assert (await world.condition("web", names.SCHEDULED)).get("reason") == REASON_SUSPENDED

        await world.restart()
        await world.bring_back("west")
        await world.until_ready("west")
        await world.settle()
        assert await world.replicas("web") == {"east": 2, "west": 2}
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"suspension": None}})
        await world.until_replicas("new", {"east": 1, "west": 1})
        await world.until_replicas("web", {"east": 3, "west": 3})


async def test_the_suspensions_of_the_reference_are_accepted() -> None:
    page = (ROOT / "docs" / "reference" / "suspensions.md").read_text(encoding="utf-8")
    examples = [each for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) for each in yaml.safe_load_all(text)]
    assert [each["kind"] for each in examples] == [
        "DeliverySuspension",
        "ClusterDeliverySuspension",
        "PropagationPolicy",
    ]
    kinds = (DELIVERY_SUSPENSIONS, CLUSTER_DELIVERY_SUSPENSIONS, PROPAGATION_POLICIES)
    async with a_world(members=("east",)) as world:
        for example, resource in zip(examples, kinds, strict=True):
            await world.create(resource, example)
