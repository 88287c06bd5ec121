"""An HTTP plugin is down for ten minutes: nothing moves or is lost, few requests are sent, and it is used again afterwards.

The plugin is the example that rejects clusters by team, in process, behind a connection that can break or hang.
"""

import runpy
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.vectors import ROOT
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES, SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, SCHEDULING_PROFILES
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import DEPLOYMENTS
from federation.apimachinery.webhookclient import WebhookResponse
from federation.controllers.schedule.names import EVENT_SCHEDULING_FAILED
from federation.journal.decisions import DecisionFilter
from federation.scheduling.names import IGNORED_PLUGINS

OUTAGE_S = 600
COUNT = 12
TEAMS = {"east": {"teams": "red_blue"}, "north": {"teams": "red"}, "west": {"teams": "blue"}}
RULES = runpy.run_path(str(ROOT / "plugins" / "examples" / "business_rules.py"))["respond"]


class Service:
    """The connection to the plugin."""

    def __init__(self) -> None:
        self.mode = "up"
        self.calls = 0
        self.clock: ManualClock | None = None

    def on(self, clock: ManualClock) -> "Service":
        self.clock = clock
        return self

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        self.calls += 1
        if self.mode == "hang":
            assert self.clock is not None
            await self.clock.sleep(timeout_s)
            return WebhookResponse(0, error=f"no answer within {timeout_s:g} s")
        if self.mode == "down":
            return WebhookResponse(0, error="connection refused")
        return WebhookResponse(200, orjson.dumps(RULES(orjson.loads(body))))


async def begin(world: World, failure_policy: str, **policy: Any) -> None:
    """Place deployments of team red by the rules."""
    spec = {
        "payloadVersions": ["v1beta1"],
        "urlPrefix": "http://rules",
        "filterPath": "/filter",
        "failurePolicy": failure_policy,
        "fields": {"unit": ["labels"], "cluster": ["labels"]},
    }
    api_version = SCHEDULING_PROFILES.api_version
    for resource, name, body in (
        (SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS, "rules", spec),
        (SCHEDULING_PROFILES, "ruled", {"plugins": {"filter": {"enabled": [{"name": "rules"}]}}}),
    ):
        await world.create(
            resource,
            {"apiVersion": api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": body},
        )
    spread = a_policy({"east": 1, "north": 1, "west": 1}, schedulingProfile="ruled", **policy)
    await world.create(PROPAGATION_POLICIES, spread)
    for number in range(COUNT):
        await world.create(DEPLOYMENTS, a_deployment(f"web-{number}", replicas=4, team="red"))
    for number in range(COUNT):
        await world.until_replicas(f"web-{number}", {"east": 2, "north": 2})
    await world.settle()


async def journaled(world: World, name: str) -> dict[str, Any]:
    (record, *_) = await world.journal.query(DecisionFilter(name=name))
    found: dict[str, Any] = orjson.loads(record.explanation)
    return found


async def last(world: World) -> None:
    for _ in range(OUTAGE_S):
        await world.clock.advance(1.0)


@pytest.mark.parametrize("mode", ["down", "hang"])
async def test_with_fail_placements_stay_and_decisions_are_made_after_the_outage(mode: str) -> None:
    service = Service()
    async with a_world_without_pods(labels=TEAMS, service=service.on) as world:
        await begin(world, "Fail")
        service.mode, service.calls = mode, 0
        for number in range(COUNT):
            await world.scale(f"web-{number}", 8)
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=2, team="red"))
        await last(world)

        for number in range(COUNT):
            assert await world.replicas(f"web-{number}") == {"east": 2, "north": 2}
        assert await world.replicas("new") == {}
        condition = await world.condition("new", names.SCHEDULED)
        assert (condition["status"], condition["reason"]) == ("False", "PluginFailed")
        assert condition["message"].startswith("rules failed in filter: request failed: ")
        # One probe per pause of the circuit breaker and few retries, not one request per object.
        assert service.calls < 120
        warned = [message for reason, message in await world.events() if reason == EVENT_SCHEDULING_FAILED]
        assert len(warned) <= 4 * (COUNT + 1)

        service.mode, mended_s = "up", world.clock.monotonic()
        for number in range(COUNT):
            await world.until_replicas(f"web-{number}", {"east": 4, "north": 4})
        await world.until_replicas("new", {"east": 1, "north": 1})
        assert world.clock.monotonic() - mended_s < 25  # the longest pause, a hanging probe, and the rollout


async def test_with_ignore_decisions_are_made_without_the_plugin_and_report_it() -> None:
    service = Service()
    async with a_world_without_pods(labels=TEAMS, service=service.on) as world:
        await begin(world, "Ignore")
        service.mode, service.calls = "hang", 0
        for number in range(COUNT):
            await world.scale(f"web-{number}", 6)
        for number in range(COUNT):
            await world.until_replicas(f"web-{number}", {"east": 2, "north": 2, "west": 2})
        explanation = await journaled(world, "web-0")
        reason = "request failed: no answer within 5 s"
        assert explanation["ignored"] == [{"plugin": "rules", "point": "filter", "reasons": [reason]}]
        assert explanation["reason"] == f"3/3 clusters are available; rules was ignored in filter because {reason}"
        assert (await world.condition("web-0", names.SCHEDULED)).get("status") in (None, "True")
        await last(world)

        # The circuit breaker is open now, so decisions do not wait for the plugin.
        before_s = world.clock.monotonic()
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=3, team="red"))
        await world.until_replicas("new", {"east": 1, "north": 1, "west": 1})
        assert world.clock.monotonic() - before_s < 6

        service.mode = "up"
        await pass_quiet(world)
        await world.create(DEPLOYMENTS, a_deployment("newer", replicas=2, team="red"))
        await world.until_replicas("newer", {"east": 1, "north": 1})
        assert "ignored" not in await journaled(world, "newer")


STAYS: dict[str, Any] = {"reschedulePolicy": {"rescheduleWhen": {"policyContentChanged": False}}}


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_decisions_made_without_the_plugin_are_repeated_after_the_outage(is_restarted: bool) -> None:
    service = Service()
    async with a_world_without_pods(labels=TEAMS, service=service.on) as world:
        await begin(world, "Ignore")
        service.mode = "down"
        for number in range(COUNT - 1):
            await world.scale(f"web-{number}", 6)
        for number in range(COUNT - 1):
            await world.until_replicas(f"web-{number}", {"east": 2, "north": 2, "west": 2})
        assert (await world.federated("web-0"))["metadata"]["annotations"][IGNORED_PLUGINS] == "rules"
        await world.settle()
        if is_restarted:
            await world.restart()
            await world.pass_time(60)
        service.calls, decisions = 0, await count_decisions(world)
        records = await world.journal.query(DecisionFilter(), limit=10_000)
        await world.pass_time(600)
        # One probe per pause of the circuit breaker, and no object is rescheduled for another reason.
        assert service.calls < 120
        assert 20 < await count_decisions(world) - decisions < 60
        assert len(await world.journal.query(DecisionFilter(), limit=10_000)) <= len(records) + COUNT

        service.mode = "up"
        for number in range(COUNT - 1):
            await world.until_replicas(f"web-{number}", {"east": 3, "north": 3})
        await world.settle()
        assert IGNORED_PLUGINS not in (await world.federated("web-0"))["metadata"]["annotations"]
        explanation = await journaled(world, "web-0")
        assert explanation["because"][-1] == "ignoredPlugins"
        assert "ignored" not in explanation
        assert len(await world.journal.query(DecisionFilter(name=f"web-{COUNT - 1}"), limit=99)) == 1


async def test_a_policy_that_ignores_changes_keeps_decisions_made_without_the_plugin() -> None:
    service = Service()
    async with a_world_without_pods(labels=TEAMS, service=service.on) as world:
        await begin(world, "Ignore", **STAYS)
        service.mode = "down"
        await world.scale("web-0", 6)
        await world.until_replicas("web-0", {"east": 2, "north": 2, "west": 2})
        service.mode = "up"
        await world.pass_time(30)
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=2, team="red"))
        await world.until_replicas("new", {"east": 1, "north": 1})
        await world.settle()
        await world.restart()
        await world.settle()
        assert await world.replicas("web-0") == {"east": 2, "north": 2, "west": 2}
        annotations = (await world.federated("web-0"))["metadata"]["annotations"]
        assert annotations[IGNORED_PLUGINS] == "rules"
        assert annotations[names.SCHEDULING_DEFERRED_REASONS] == "policyContentChanged:false"


async def count_decisions(world: World) -> int:
    found = await world.journal.query(DecisionFilter(), limit=10_000)
    return sum(1 + record.repeats for record in found)


async def pass_quiet(world: World) -> None:
    """Advance the clock beyond the circuit breaker's longest pause."""
    for _ in range(20):
        await world.clock.advance(1.0)
