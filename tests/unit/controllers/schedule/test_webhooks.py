"""Webhook plugins through the whole schedule controller: configured by objects, asked over HTTP, and when they fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from tests.support.plugins import calling_world, configure, example
from tests.support.schedule_world import World

from federation.api.resources import PROPAGATION_POLICIES
from federation.api.resources import SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS as CONFIGURATIONS


def business_rules(port: int = 0) -> AbstractAsyncContextManager[int]:
    return example("business_rules", port=port)


@asynccontextmanager
async def a_world() -> AsyncIterator[World]:
    """A world that calls out, with a cluster for the red and one for the blue team, and a profile with the rules."""
    async with calling_world() as world:
        await world.cluster("blue", labels={"teams": "blue"})
        await world.cluster("red", labels={"teams": "green_red"})
        await world.profile("r", plugins={"filter": {"enabled": [{"type": "Webhook", "name": "business-rules"}]}})
        await world.policy("p", schedulingProfile="r")
        yield world


async def configure_rules(world: World, port: int, **spec: Any) -> None:
    chosen = {"payloadVersions": ["v1alpha1"], "filterPath": "/filter", **spec}
    await configure(world, "business-rules", f"http://127.0.0.1:{port}", **chosen)


async def test_the_example_decides_and_when_it_is_gone_the_placement_stays_until_it_is_back() -> None:
    async with a_world() as world:
        async with business_rules() as port:
            await configure_rules(world, port)
            await world.deployment(policy="p", labels={"team": "red"})
            await world.becomes({"red": None})
        await world.patch_object("web", {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}})
        await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"maxClusters": 2}}, namespace="default")
        condition = await world.condition("False", "PluginFailed")
        assert condition["message"].startswith("business-rules failed in filter: request failed: ")
        assert await world.placed() == {"red": None}
        async with business_rules(port):
            await world.becomes({"blue": None})
            await world.condition("True")


async def test_a_configuration_that_is_edited_or_deleted_counts_at_once() -> None:
    async with business_rules() as port, a_world() as world:
        await configure_rules(world, port, filterPath="/wrong", payloadVersions=["v7"])
        await world.deployment(policy="p", labels={"team": "red"})
        assert "payloadVersions ['v7']" in (await world.condition("False", "PluginFailed"))["message"]
        told = [(reason, message) for _, reason, message in await world.events() if "payloadVersions" in message]
        assert "WebhookConfigurationError" in {reason for reason, _ in told}

        async def failing_with(text: str) -> None:
            async def look() -> bool:
                return text in (await world.condition("False", "PluginFailed"))["message"]

            await world.until(look, text)

        await world.patch(CONFIGURATIONS, "business-rules", {"spec": {"payloadVersions": ["v1alpha1"]}})
        await failing_with("unexpected status code: 404")
        registered = [message for _, reason, message in await world.events() if reason == "WebhookRegistered"]
        assert registered == ["it is a scheduler plugin now, asked in payload version v1alpha1 for filter"]
        await world.patch(CONFIGURATIONS, "business-rules", {"spec": {"filterPath": ""}})
        await failing_with("filter is not supported by the webhook")
        await world.patch(CONFIGURATIONS, "business-rules", {"spec": {"filterPath": "filter"}})
        await world.becomes({"red": None})
        await world.client.delete(CONFIGURATIONS, "business-rules")
        await world.patch(PROPAGATION_POLICIES, "p", {"spec": {"maxClusters": 2}}, namespace="default")
        await failing_with("is not registered")
        assert await world.placed() == {"red": None}


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        ({"caData": "aGVsbG8="}, "webhook 'w': tlsConfig.caData is no PEM certificate"),
        ({"certData": "aGVsbG8=", "keyData": "aGVsbG8="}, "webhook 'w': tlsConfig.certData and keyData are not a PEM"),
    ],
)
async def test_credentials_that_cannot_be_used_are_told_before_any_call(tls: dict[str, str], problem: str) -> None:
    async with calling_world() as world:
        await configure(world, "w", "https://plugin.example", tlsConfig=tls, filterPath="/filter")

        async def is_told() -> bool:
            return any(problem in message for _, _, message in await world.events())

        await world.until(is_told)
        await world.profile("r", plugins={"filter": {"enabled": [{"name": "w"}]}})
        await world.cluster("east")
        await world.policy("p", schedulingProfile="r")
        await world.deployment(policy="p")
        assert problem in (await world.condition("False", "PluginFailed"))["message"]


async def test_what_a_plugin_is_asked_is_a_reason_to_decide_again_how_long_it_may_take_is_none() -> None:
    async with business_rules() as port, a_world() as world:
        await configure_rules(
            world, port, payloadVersions=["v1beta1"], fields={"unit": ["labels"], "cluster": ["labels"]}
        )
        await world.deployment(policy="p", labels={"team": "red"})
        await world.becomes({"red": None})
        await world.idle()
        decided = len(await world.journaled())
        await world.patch(CONFIGURATIONS, "business-rules", {"spec": {"httpTimeout": "4s"}})
        await world.idle()
        assert len(await world.journaled()) == decided
        await world.patch(CONFIGURATIONS, "business-rules", {"spec": {"filterPath": "/wrong"}})
        assert "unexpected status code: 404" in (await world.condition("False", "PluginFailed"))["message"]
        assert await world.placed() == {"red": None}


async def test_a_label_that_a_plugin_asked_to_be_told_is_a_reason_to_decide_again_another_change_is_none() -> None:
    async with business_rules() as port, a_world() as world:
        await configure_rules(
            world, port, payloadVersions=["v1beta1"], fields={"unit": ["labels"], "cluster": ["labels"]}
        )
        await world.deployment(policy="p", labels={"team": "red"})
        await world.becomes({"red": None})
        await world.idle()
        decided = len(await world.journaled())
        await world.patch_object("web", {"spec": {"template": {"metadata": {"annotations": {"note": "x"}}}}})
        await world.idle()
        assert len(await world.journaled()) == decided
        await world.patch_object("web", {"spec": {"template": {"metadata": {"labels": {"team": "blue"}}}}})
        await world.becomes({"blue": None})


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b"garbage\r\n\r\n", b""])
async def test_a_broken_answer_is_a_failure(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, a_world() as world:
        await configure_rules(world, server.sockets[0].getsockname()[1])
        await world.deployment(policy="p")
        condition = await world.condition("False", "PluginFailed")
        assert "business-rules failed in filter" in condition["message"]
        assert await world.placed() == {}
