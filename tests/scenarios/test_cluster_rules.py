"""Rules for clusters: taints and remedies follow what holds in a cluster, and moves obey failover's limits."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
import yaml
from tests.support.manifests import a_deployment, a_policy
from tests.support.sources import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    CHANGE_FREEZES,
    CLUSTER_DISRUPTION_BUDGETS,
    CLUSTER_TAINT_POLICIES,
    FEDERATED_CLUSTERS,
    PROPAGATION_POLICIES,
    REMEDIES,
)
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.apimachinery.webhookclient import WebhookResponse

SICK = [{"clusterLabels": {"matchLabels": {"network": "sick"}}}]
TAINT = {"key": "network", "value": "sick", "effect": "NoExecute"}


class Receiver:
    """A service that remedies tell; it refuses the first requests."""

    def __init__(self, refusals: int = 0, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        self.refusals = refusals
        self.meanwhile = meanwhile
        self.received: list[Mapping[str, Any]] = []

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        raise AssertionError((connection, headers, timeout_s))

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        assert headers["Content-Type"] == "application/json"
        assert timeout_s == 10
        assert connection.server == "https://ops.example/hook"
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        if self.refusals:
            self.refusals -= 1
            return WebhookResponse(503)
        self.received.append(orjson.loads(body))
        return WebhookResponse(204)


def a_rule(resource: Resource, **spec: Any) -> Object:
    body = {"when": SICK, "holdSeconds": 60, "clearSeconds": 120, **spec}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "net"}, "spec": body}


async def running(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
    await world.create(DEPLOYMENTS, a_deployment("web", 4))
    await world.until_available("web", 4)
    await world.settle()


async def label(world: World, cluster: str, network: str | None) -> None:
    await world.user.patch(FEDERATED_CLUSTERS, cluster, {"metadata": {"labels": {"network": network}}})


async def taints(world: World, cluster: str) -> list[str]:
    found = await world.user.get(FEDERATED_CLUSTERS, cluster)
    return [str(taint["key"]) for taint in (found.get("spec") or {}).get("taints") or ()]


async def states(world: World) -> list[tuple[str, str]]:
    policy = await world.user.get(CLUSTER_TAINT_POLICIES, "net")
    return [(each["name"], each["state"]) for each in policy["status"].get("clusters") or ()]


async def test_a_cluster_is_emptied_while_the_rule_is_active_and_used_again_afterwards() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await world.create(CLUSTER_TAINT_POLICIES, a_rule(CLUSTER_TAINT_POLICIES, taints=[TAINT]))
        await label(world, "east", "sick")
        await world.pass_time(50)
        assert await taints(world, "east") == []
        await world.restart()
        await world.until_replicas("web", {"west": 4})
        assert await taints(world, "east") == ["network"]
        await world.until_equal(lambda: states(world), [("east", "Active")])
        await label(world, "east", None)
        await world.pass_time(100)
        assert await taints(world, "east") == ["network"], "it must be clear for a while"
        await world.pass_time(60)
        assert await taints(world, "east") == []
        await world.until_replicas("web", {"east": 2, "west": 2})
        events = [reason for reason, _ in await world.events() if reason.startswith("ClusterRule")]
        assert events == ["ClusterRuleActive", "ClusterRuleCleared"]


async def test_a_flapping_condition_moves_nothing() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await world.create(CLUSTER_TAINT_POLICIES, a_rule(CLUSTER_TAINT_POLICIES, taints=[TAINT]))
        for number in range(12):
            await label(world, "east", None if number % 2 else "sick")
            await world.pass_time(40)
        assert await taints(world, "east") == []
        assert await world.replicas("web") == {"east": 2, "west": 2}


async def test_a_rule_has_not_held_while_no_process_looked() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        await world.create(CLUSTER_TAINT_POLICIES, a_rule(CLUSTER_TAINT_POLICIES, taints=[TAINT], holdSeconds=600))
        await label(world, "east", "sick")
        await world.pass_time(30)
        await world.stop()
        await world.clock.advance(7200)
        await world.restart()
        await world.until_ready("east", "west")
        await world.pass_time(200)
        assert await taints(world, "east") == [], "it may have been clear meanwhile"
        await world.pass_time(150)
        assert await taints(world, "east") == ["network"]


async def test_a_budget_and_a_freeze_hold_what_a_rule_would_move() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        budget = {"metadata": {"name": "none"}, "spec": {"maxUnavailable": 0}}
        header = {"apiVersion": CLUSTER_DISRUPTION_BUDGETS.api_version, "kind": CLUSTER_DISRUPTION_BUDGETS.kind}
        await world.create(CLUSTER_DISRUPTION_BUDGETS, {**header, **budget})
        await world.create(CLUSTER_TAINT_POLICIES, a_rule(CLUSTER_TAINT_POLICIES, taints=[TAINT], holdSeconds=0))
        await label(world, "east", "sick")
        await world.pass_time(120)
        assert await taints(world, "east") == ["network"]
        assert await world.replicas("web") == {"east": 2, "west": 2}
        window = {"start": "2000-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z"}
        freeze = {"metadata": {"name": "sale"}, "spec": {"reason": "sale", "windows": [window], "holds": ["Evictions"]}}
        header = {"apiVersion": CHANGE_FREEZES.api_version, "kind": CHANGE_FREEZES.kind}
        await world.create(CHANGE_FREEZES, {**header, **freeze})
        await world.user.delete(CLUSTER_DISRUPTION_BUDGETS, "none")
        await world.pass_time(120)
        assert await world.replicas("web") == {"east": 2, "west": 2}
        await world.user.delete(CHANGE_FREEZES, "sale")
        await world.until_replicas("web", {"west": 4})


async def test_without_its_policy_a_taint_goes() -> None:
    async with a_world(members=("east", "west")) as world:
        await running(world)
        taint = {**TAINT, "effect": "NoSchedule"}
        await world.create(CLUSTER_TAINT_POLICIES, a_rule(CLUSTER_TAINT_POLICIES, taints=[taint], holdSeconds=0))
        await label(world, "east", "sick")
        await world.pass_time(10)
        assert await taints(world, "east") == ["network"]
        await world.user.delete(CLUSTER_TAINT_POLICIES, "net")
        await world.pass_time(10)
        assert await taints(world, "east") == []


async def test_a_remedy_tells_a_service_until_it_answers() -> None:
    receiver = Receiver(refusals=2)
    async with a_world(members=("east", "west"), gates=receiver) as world:
        await running(world)
        hook = {"type": "Webhook", "message": "look at it", "webhook": {"url": "https://ops.example/hook"}}
        remedy = a_rule(REMEDIES, actions=[hook, {"type": "Cordon"}], holdSeconds=0, clearSeconds=0)
        await world.create(REMEDIES, remedy)
        await label(world, "east", "sick")
        await world.pass_time(100)
        await world.restart()
        await world.pass_time(30)
        assert await taints(world, "east") == [names.TAINT_UNSCHEDULABLE]
        await label(world, "east", None)
        await world.pass_time(40)
        assert await taints(world, "east") == []
        assert [(each["remedy"], each["cluster"], each["state"]) for each in receiver.received] == [
            ("net", "east", "Active"),
            ("net", "east", "Cleared"),
        ]
        assert receiver.received[0]["message"] == "look at it"


async def test_a_rule_may_come_while_a_request_is_under_way() -> None:
    receiver = Receiver()
    async with a_world(members=("east", "west"), gates=receiver) as world:

        async def meanwhile() -> None:
            other = a_rule(
                REMEDIES, actions=[{"type": "Cordon"}], when=[{"clusterLabels": {"matchLabels": {"no": "cluster"}}}]
            )
            await world.create(REMEDIES, {**other, "metadata": {"name": "other"}})
            for _ in range(200):  # the controller reads the rule
                await asyncio.sleep(0)

        receiver.meanwhile = meanwhile
        await running(world)
        hook = {"type": "Webhook", "message": "look at it", "webhook": {"url": "https://ops.example/hook"}}
        await world.create(REMEDIES, a_rule(REMEDIES, actions=[hook], holdSeconds=0, clearSeconds=0))
        await label(world, "east", "sick")
        await world.pass_time(10)
        assert [each["state"] for each in receiver.received] == ["Active"]
        await world.pass_time(300)
        assert len(receiver.received) == 1, "the service gets one request"


async def test_the_rules_of_the_reference_do_what_it_says() -> None:
    page = (ROOT / "docs" / "reference" / "clusterrules.md").read_text(encoding="utf-8")
    policy, remedy = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    receiver = Receiver()
    async with a_world(members=("east", "west"), labels={"east": {"tier": "rented"}}, gates=receiver) as world:
        await world.create(CLUSTER_TAINT_POLICIES, policy)
        await world.create(REMEDIES, remedy)
        await world.lose("east")
        await world.until_ready("east", status="Unknown")
        await world.pass_time(400)
        assert "provider-trouble" in await taints(world, "east")
        assert names.TAINT_UNSCHEDULABLE in await taints(world, "east")
        assert {each["state"] for each in receiver.received} == {"Active"}
