"""An in-memory registry behind a client whose server can fail, and a manual clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, Request, Transport, Watch, WatchBatch
from federation.client.local import LocalClient


class FaultyTransport:
    """A transport that passes requests on until `failure` is set; then every request and running watch fails.

    `refused` are failures of single kinds.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.failure: Exception | None = None
        self.refused: dict[Resource, Exception] = {}
        self.calls: list[str] = []
        self.ended = asyncio.Event()

    async def request(self, request: Request) -> Object:
        is_look = request.verb == "list" and request.field_selector.startswith("metadata.name=")
        self.calls.append("patch" if request.verb == "apply" else "look" if is_look else request.verb)
        if failure := self.failure or self.refused.get(request.resource):
            raise failure
        return await self.transport.request(request)

    async def raw(self, *arguments: Any) -> tuple[int, bytes]:
        self.calls.append("raw")
        if self.failure is not None:
            raise self.failure
        return await self.transport.raw(*arguments)

    async def close(self) -> None:
        self.calls.append("close")

    async def stream(self, request: Request) -> Watch:
        self.calls.append("watch")
        if failure := self.failure or self.refused.get(request.resource):
            raise failure
        batches = self.transport.stream(request)
        ended = asyncio.ensure_future(self.ended.wait())
        pending: asyncio.Future[WatchBatch] | None = None
        try:
            while True:
                pending = asyncio.ensure_future(anext(batches))
                await asyncio.wait((ended, pending), return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    if self.failure is not None:
                        raise self.failure
                    return
                yield pending.result()
        finally:
            for task in (ended, pending):
                if task is not None:
                    task.cancel()
            await asyncio.gather(*(t for t in (ended, pending) if t), return_exceptions=True)
            await batches.aclose()


class FaultyClient(Client):
    """A client over a FaultyTransport."""

    transport: FaultyTransport

    def __init__(self, client: Client) -> None:
        super().__init__(FaultyTransport(client.transport))

    @property
    def calls(self) -> list[str]:
        """The verbs of all calls; "look" is a list of one object by its name."""
        return self.transport.calls

    def fail(self, failure: Exception | None) -> None:
        """Fail all later calls; running watches end with the failure at once."""
        self.transport.failure = failure
        self.cut()

    def refuse(self, resource: Resource, failure: Exception | None) -> None:
        """Fail all later calls about one kind."""
        self.transport.refused.pop(resource, None)
        if failure is not None:
            self.transport.refused[resource] = failure

    def cut(self) -> None:
        """End the running watches."""
        self.transport.ended.set()
        self.transport.ended = asyncio.Event()

    def replace(self, transport: Transport) -> None:
        """Use another server."""
        self.transport.transport = transport


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
