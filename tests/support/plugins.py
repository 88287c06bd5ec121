"""The example plugins as a user runs them: one command each, real HTTP."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from federation.api.resources import SCHEDULER_PLUGIN_WEBHOOK_CONFIGURATIONS as CONFIGURATIONS
from federation.base.clock import SystemClock
from federation.client.outcalls import Outcalls
from federation.client.services import Services
from federation.controllers.schedule.webhooks import RemoteCaller
from tests.support.schedule_world import API_VERSION, World, schedule_world
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
async def calling_world() -> AsyncIterator[World]:
    """Run a schedule controller that calls plugins over the network."""
    outcalls = Outcalls()
    try:
        async with schedule_world(caller=RemoteCaller(Services(outcalls, clock=SystemClock()))) as world:
            yield world
    finally:
        await outcalls.close()


async def configure(world: World, name: str, url: str, **spec: Any) -> None:
    """Create the configuration of a plugin."""
    chosen = {"payloadVersions": ["v1beta1"], "urlPrefix": url, **spec}
    body = {"apiVersion": API_VERSION, "kind": CONFIGURATIONS.kind, "metadata": {"name": name}, "spec": chosen}
    await world.client.create(CONFIGURATIONS, body)
