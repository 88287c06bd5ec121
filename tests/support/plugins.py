"""Run the example plugins as processes, over real HTTP."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from federation.api.resources import SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS as CONFIGURATIONS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.webhookclient import WebhookClient
from federation.client.retryingwebhookclient import RetryingWebhookClient
from federation.plans.plugincalls import RemoteCaller
from tests.support.schedule_harness import API_VERSION, Harness, schedule_harness
from tests.support.vectors import ROOT


@asynccontextmanager
async def example(name: str, *arguments: str, port: int = 0) -> AsyncIterator[int]:
    """Run an example of `plugins/examples` for the block; yields its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "plugins" / "examples" / f"{name}.py"),
        "--port",
        str(port),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield int((await process.stdout.readline()).decode().rpartition(":")[2])
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def plugin_harness() -> AsyncIterator[Harness]:
    """Run a schedule controller that calls plugins over the network."""
    webhook_client = WebhookClient()
    try:
        async with schedule_harness(
            caller=RemoteCaller(RetryingWebhookClient(webhook_client, clock=SystemClock()))
        ) as harness:
            yield harness
    finally:
        await webhook_client.close()


async def configure(harness: Harness, name: str, url: str, **spec: Any) -> None:
    """Create the configuration of a plugin."""
    chosen = {"payloadVersions": ["v1beta1"], "urlPrefix": url, **spec}
    body = {"apiVersion": API_VERSION, "kind": CONFIGURATIONS.kind, "metadata": {"name": name}, "spec": chosen}
    await harness.client.create(CONFIGURATIONS, body)
