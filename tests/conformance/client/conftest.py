"""The same API behind both clients: a registry in memory, reached in process and through a real HTTPS server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from federation.api.resources import NAMESPACES
from federation.base.clock import SystemClock
from federation.client.connection import Connection
from federation.client.http import HTTPClient
from federation.client.local import LocalClient
from federation.client.protocol import Client
from federation.registry.options import RegistryOptions
from federation.registry.registry import Registry
from federation.store.memory import MemoryStore


@asynccontextmanager
async def running(*loops) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def https_server(registry: Registry, directory: Path) -> AsyncIterator[Connection]:
    """Serve the registry on a free port and give the administrator's connection."""
    from federation.server.app import create_app
    from federation.server.authn import Authenticator
    from federation.server.authz import RBACAuthorizer
    from federation.server.pki import ensure_pki
    from federation.server.serving import serve
    from federation.store.journal import MemoryJournal

    clock = SystemClock()
    pki = ensure_pki(directory, now=clock.now())
    authorizer = RBACAuthorizer(registry)
    app = create_app(
        registry,
        authenticator=Authenticator(registry, clock=clock),
        authorizer=authorizer,
        journal=MemoryJournal(),
    )
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = serve(
        app,
        host="127.0.0.1",
        port=0,
        tls=pki.serving,
        on_started=lambda host, port: started.set_result(f"https://{host}:{port}"),
        on_stopping=app.stop,
    )
    async with running(authorizer.run(), serving):
        await authorizer.wait_synced()
        yield Connection(
            server=await asyncio.wait_for(started, 10),
            ca_data=pki.ca_certificate.read_bytes(),
            client_cert_data=pki.admin_certificate.read_bytes(),
            client_key_data=pki.admin_key.read_bytes(),
        )


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    store = MemoryStore()
    registry = Registry(store, clock=SystemClock(), options=RegistryOptions(bookmark_interval_s=0.05))
    async with running(store.run()):
        await registry.start()
        async with running(registry.run()):
            yield registry


@pytest.fixture(params=["local", "https"])
async def client(request: pytest.FixtureRequest, registry: Registry, tmp_path: Path) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        made: Client
        if request.param == "local":
            made = LocalClient(registry)
        else:
            made = HTTPClient(await stack.enter_async_context(https_server(registry, tmp_path)))
        await made.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        yield made
        await made.close()
