"""Webhook plugins in the schedule controller: configurations, HTTP requests, failures."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from tests.support.plugins import configure, example, plugin_harness
from tests.support.schedule_harness import Harness

from federation.api.resources import PROPAGATION_POLICIES
from federation.api.resources import SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS as CONFIGURATIONS


def business_rules(port: int = 0) -> AbstractAsyncContextManager[int]:
    return example("business_rules", port=port)


@asynccontextmanager
async def a_world() -> AsyncIterator[Harness]:
    """A harness with real HTTP, a cluster for each of the teams red and blue, and a profile with the example rules."""
    async with plugin_harness() as harness:
        await harness.cluster("blue", labels={"teams": "blue"})
        await harness.cluster("red", labels={"teams": "green_red"})
        await harness.profile("r", plugins={"filter": {"enabled": [{"type": "Webhook", "name": "business-rules"}]}})
        await harness.policy("p", schedulingProfile="r")
        yield harness


async def configure_rules(harness: Harness, port: int, **spec: Any) -> None:
    chosen = {"payloadVersions": ["v1alpha1"], "filterPath": "/filter", **spec}
    await configure(harness, "business-rules", f"http://127.0.0.1:{port}", **chosen)


async def test_the_example_decides_and_when_it_is_gone_the_placement_stays_until_it_is_back() -> None:
    async with a_world() as harness:
        async with business_rules() as port:
            await configure_rules(harness, port)
            await harness.deployment(policy="p", labels={"team": "red"})
            await harness.becomes({"red": None})
        await harness.patch_object("web", {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}})
        await harness.patch(PROPAGATION_POLICIES, "p", {"spec": {"maxClusters": 2}}, namespace="default")
        condition = await harness.condition("False", "PluginFailed")
        assert condition["message"].startswith("business-rules failed in filter: request failed: ")
        assert await harness.placed() == {"red": None}
        async with business_rules(port):
            await harness.becomes({"blue": None})
            await harness.condition("True")


async def test_a_configuration_that_is_edited_or_deleted_counts_at_once() -> None:
    async with business_rules() as port, a_world() as harness:
        await configure_rules(harness, port, filterPath="/wrong", payloadVersions=["v7"])
        await harness.deployment(policy="p", labels={"team": "red"})
        assert "payloadVersions ['v7']" in (await harness.condition("False", "PluginFailed"))["message"]
        reported = [(reason, message) for _, reason, message in await harness.events() if "payloadVersions" in message]
        assert "WebhookConfigurationError" in {reason for reason, _ in reported}

        async def failing_with(text: str) -> None:
            async def read() -> bool:
                return text in (await harness.condition("False", "PluginFailed"))["message"]

            await harness.until(read, text)

        await harness.patch(CONFIGURATIONS, "business-rules", {"spec": {"payloadVersions": ["v1alpha1"]}})
        await failing_with("unexpected status code: 404")
        registered = [message for _, reason, message in await harness.events() if reason == "WebhookRegistered"]
        assert registered == ["it is a scheduler plugin now, asked in payload version v1alpha1 for filter"]
        await harness.patch(CONFIGURATIONS, "business-rules", {"spec": {"filterPath": ""}})
        await failing_with("filter is not supported by the webhook")
        await harness.patch(CONFIGURATIONS, "business-rules", {"spec": {"filterPath": "filter"}})
        await harness.becomes({"red": None})
        await harness.client.delete(CONFIGURATIONS, "business-rules")
        await harness.patch(PROPAGATION_POLICIES, "p", {"spec": {"maxClusters": 2}}, namespace="default")
        await failing_with("is not registered")
        assert await harness.placed() == {"red": None}


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        ({"caData": "aGVsbG8="}, "webhook 'w': tlsConfig.caData is no PEM certificate"),
        ({"certData": "aGVsbG8=", "keyData": "aGVsbG8="}, "webhook 'w': tlsConfig.certData and keyData are not a PEM"),
    ],
)
async def test_invalid_credentials_are_reported_before_any_call(tls: dict[str, str], problem: str) -> None:
    async with plugin_harness() as harness:
        await configure(harness, "w", "https://plugin.example", tlsConfig=tls, filterPath="/filter")

        async def is_told() -> bool:
            return any(problem in message for _, _, message in await harness.events())

        await harness.until(is_told)
        await harness.profile("r", plugins={"filter": {"enabled": [{"name": "w"}]}})
        await harness.cluster("east")
        await harness.policy("p", schedulingProfile="r")
        await harness.deployment(policy="p")
        assert problem in (await harness.condition("False", "PluginFailed"))["message"]


async def test_changed_paths_trigger_rescheduling_and_a_changed_timeout_does_not() -> None:
    async with business_rules() as port, a_world() as harness:
        await configure_rules(
            harness, port, payloadVersions=["v1beta1"], fields={"unit": ["labels"], "cluster": ["labels"]}
        )
        await harness.deployment(policy="p", labels={"team": "red"})
        await harness.becomes({"red": None})
        await harness.idle()
        decided = len(await harness.journaled())
        await harness.patch(CONFIGURATIONS, "business-rules", {"spec": {"httpTimeout": "4s"}})
        await harness.idle()
        assert len(await harness.journaled()) == decided
        await harness.patch(CONFIGURATIONS, "business-rules", {"spec": {"filterPath": "/wrong"}})
        assert "unexpected status code: 404" in (await harness.condition("False", "PluginFailed"))["message"]
        assert await harness.placed() == {"red": None}


async def test_a_changed_label_triggers_rescheduling_only_if_a_plugin_declares_it() -> None:
    async with business_rules() as port, a_world() as harness:
        await configure_rules(
            harness, port, payloadVersions=["v1beta1"], fields={"unit": ["labels"], "cluster": ["labels"]}
        )
        await harness.deployment(policy="p", labels={"team": "red"})
        await harness.becomes({"red": None})
        await harness.idle()
        decided = len(await harness.journaled())
        await harness.patch_object("web", {"spec": {"template": {"metadata": {"annotations": {"note": "x"}}}}})
        await harness.idle()
        assert len(await harness.journaled()) == decided
        await harness.patch_object("web", {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}})
        await harness.becomes({"blue": None})


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"garbage\r\n\r\n", b""])
async def test_an_invalid_response_is_a_failure(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, a_world() as harness:
        await configure_rules(harness, server.sockets[0].getsockname()[1])
        await harness.deployment(policy="p")
        condition = await harness.condition("False", "PluginFailed")
        assert "business-rules failed in filter" in condition["message"]
        assert await harness.placed() == {}
