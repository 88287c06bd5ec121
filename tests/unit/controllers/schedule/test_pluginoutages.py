"""Objects whose plugin is unavailable: which one probes it, and which are requeued when it is available again."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.webhookclient import WebhookResponse
from federation.client.breaker import BreakerOptions
from federation.client.retryingwebhookclient import RetryingWebhookClient, RetryOptions, WebhookRequest
from federation.controllers.schedule.pluginoutages import PluginOutages
from federation.runtime.controller import Key, Result

KEYS = [Key("default", name) for name in ("a", "b", "c")]
CALL = WebhookRequest(Connection("http://p/"), b"", {}, 5.0)


class Line:
    """A connection to a plugin that is up or down."""

    is_up = False

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        return WebhookResponse(200) if self.is_up else WebhookResponse(0, error="down")


class Setup:
    """PluginOutages with a client and a clock."""

    def __init__(self) -> None:
        self.clock, self.line = ManualClock(), Line()
        breaker = BreakerOptions(failures_max=1, pause_s_min=4.0, pause_s_max=4.0)
        options = RetryOptions(breaker=breaker)
        self.webhook_client = RetryingWebhookClient(self.line, clock=self.clock, options=options, jitter=lambda: 1.0)
        self.requeued: list[Key] = []
        self.outages = PluginOutages(self.webhook_client, self.requeued.append, clock=self.clock, plugin_retry_s=10.0)

    async def decide(self, key: Key) -> Result:
        """Make the calls that the reconciler makes for one object."""
        self.outages.stop_waiting(key)
        since_s = self.clock.monotonic()
        await self.webhook_client.send_all("p", [CALL])
        return self.outages.wait_for(key, ["p"], since_s)


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    setup = Setup()
    running = asyncio.create_task(setup.outages.run())
    yield setup
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_one_object_at_a_time_tries_and_each_time_another_one(setup: Setup) -> None:
    for key in KEYS:
        assert await setup.decide(key) == Result()
    await setup.clock.advance(3.0)
    assert setup.requeued == []
    for key in (*KEYS, KEYS[0]):
        await setup.clock.advance(4.0)
        assert setup.requeued[0] == key
        await setup.decide(key)
        setup.requeued.clear()
    assert setup.webhook_client.retry_in_s("p") is not None


async def test_the_first_response_requeues_all_objects(setup: Setup) -> None:
    for key in KEYS:
        await setup.decide(key)
    setup.line.is_up = True
    setup.outages.stop_waiting(KEYS[0])
    await setup.clock.advance(4.0)
    await setup.webhook_client.send_all("p", [CALL])
    assert setup.requeued == KEYS[1:]


async def test_an_unavailable_plugin_may_be_available_when_a_probe_is_due(setup: Setup) -> None:
    assert (setup.outages.is_unavailable("p"), setup.outages.may_be_available("p")) == (False, True)
    await setup.decide(KEYS[0])
    assert (setup.outages.is_unavailable("p"), setup.outages.may_be_available("p")) == (True, False)
    setup.outages.stop_waiting(KEYS[0])
    await setup.clock.advance(4.0)
    assert (setup.outages.is_unavailable("p"), setup.outages.may_be_available("p")) == (True, True)
    alone = PluginOutages(None, setup.requeued.append, clock=setup.clock, plugin_retry_s=3.0)
    assert (alone.is_unavailable("p"), alone.may_be_available("p")) == (False, False)


async def test_an_object_that_waits_for_two_plugins_is_requeued_once(
    setup: Setup,
) -> None:
    for plugin in ("p", "q"):
        await setup.webhook_client.send_all(plugin, [CALL])
    assert setup.outages.wait_for(KEYS[0], ["p", "q"], setup.clock.monotonic()) == Result()
    setup.line.is_up = True
    await setup.clock.advance(4.0)
    setup.requeued.clear()
    await setup.webhook_client.send_all("q", [CALL])
    assert setup.requeued == [KEYS[0]]
    await setup.webhook_client.send_all("p", [CALL])
    assert setup.requeued == [KEYS[0]]


async def test_an_object_that_stopped_waiting_is_not_retried(setup: Setup) -> None:
    await setup.decide(KEYS[0])
    setup.outages.stop_waiting(KEYS[0])
    await setup.clock.advance(60.0)
    assert setup.requeued == []


async def test_an_object_whose_plugin_came_back_meanwhile_is_tried_at_once(setup: Setup) -> None:
    since_s = setup.clock.monotonic()
    await setup.webhook_client.send_all("p", [CALL])
    setup.line.is_up = True
    await setup.clock.advance(5.0)
    await setup.webhook_client.send_all("p", [CALL])
    assert setup.outages.wait_for(KEYS[0], ["p"], since_s) == Result(0.0)


async def test_an_object_is_retried_some_time_after_an_invalid_response(setup: Setup) -> None:
    setup.line.is_up = True
    assert await setup.decide(KEYS[0]) == Result(10.0)
    assert PluginOutages(None, setup.requeued.append, clock=setup.clock, plugin_retry_s=3.0).wait_for(
        KEYS[0], ["p"], 0
    ) == Result(3.0)
