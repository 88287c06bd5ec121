"""One registry in memory behind both transports: in process, and through a real HTTPS server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import NAMESPACES
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import RegistryOptions
from federation.client.client import Client
from federation.client.http import HTTPClient
from federation.client.local import LocalClient


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
    from federation.apiserver.auth.authentication import Authenticator
    from federation.apiserver.auth.pki import ensure_pki
    from federation.apiserver.auth.rbac import RBACAuthorizer
    from federation.apiserver.http.app import App
    from federation.apiserver.http.serving import serve

    clock = SystemClock()
    pki = ensure_pki(directory, now=clock.now())
    authorizer = RBACAuthorizer(registry)
    app = App(
        registry,
        authenticator=Authenticator(registry, clock=clock),
        authorizer=authorizer,
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
