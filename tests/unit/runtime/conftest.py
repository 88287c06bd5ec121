"""A registry in memory behind a client whose server can be taken away, and a clock that moves when told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest

from federation.api.resources import Object
from federation.base.clock import ManualClock
from federation.client.local import LocalClient
from federation.client.protocol import Client, WatchBatch
from federation.registry.registry import Registry
from federation.store.memory import MemoryStore


class FaultyClient:
    """A client that passes calls on until `failure` is set; then every call fails with it, running watches too."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.failure: Exception | None = None
        self.calls: list[str] = []
        self._cut = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._client, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append(name)
            if self.failure is not None:
                raise self.failure
            return await target(*arguments, **named)

        return call

    def fail(self, failure: Exception | None) -> None:
        """Fail from now on; running watches end with the failure at once."""
        self.failure = failure
        self.cut()

    def cut(self) -> None:
        """End the running watches."""
        self._cut.set()
        self._cut = asyncio.Event()

    def replace(self, client: Client) -> None:
        """Put another server behind the client."""
        self._client = client

    async def watch(self, *arguments: Any, **named: Any) -> AsyncIterator[WatchBatch]:
        self.calls.append("watch")
        if self.failure is not None:
            raise self.failure
        batches = self._client.watch(*arguments, **named)
        cut = asyncio.ensure_future(self._cut.wait())
        pending: asyncio.Future[WatchBatch] | None = None
        try:
            while True:
                pending = asyncio.ensure_future(anext(batches))
                await asyncio.wait((cut, pending), return_when=asyncio.FIRST_COMPLETED)
                if cut.done():
                    if self.failure is not None:
                        raise self.failure
                    return
                yield pending.result()
        finally:
            for task in (cut, pending):
                if task is not None:
                    task.cancel()
            await asyncio.gather(*(t for t in (cut, pending) if t), return_exceptions=True)
            await batches.aclose()


async def settle() -> None:
    """Let everything that can run without time passing run."""
    for _ in range(60):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def new_server(clock: ManualClock, start: Any) -> Callable[[], Awaitable[LocalClient]]:
    async def make() -> LocalClient:
        store = MemoryStore(clock=clock)
        start(store.run())
        registry = Registry(store, clock=clock)
        await registry.start()
        return LocalClient(registry)

    return make


@pytest.fixture
async def server(new_server: Callable[[], Awaitable[LocalClient]]) -> LocalClient:
    return await new_server()


@pytest.fixture
def client(server: LocalClient) -> FaultyClient:
    return FaultyClient(server)


@pytest.fixture
async def start() -> AsyncIterator[Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]]:
    """Run something until the test ends; a failure of it fails the test."""
    tasks: list[asyncio.Task[None]] = []

    def run(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        tasks.append(task)
        return task

    yield run
    failures = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for failure in failures:
        if failure is not None:
            raise failure


@pytest.fixture(name="settle")
def settle_fixture() -> Callable[[], Awaitable[None]]:
    return settle


@pytest.fixture
def a_configmap() -> Callable[..., Object]:
    def build(name: str, namespace: str = "default", labels: dict[str, str] | None = None, **data: str) -> Object:
        metadata: Object = {"name": name, "namespace": namespace}
        if labels:
            metadata["labels"] = labels
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}

    return build
