"""Stores of every kind behind one interface, for the conformance suites.

Each `StoreBackend.open()` returns a running store on the backend's one database, so a test can restart a store or open
several at once. Closing the backend closes all of them.

`stores_for` decides on which stores a conformance test runs: most behaviours are the same above every store.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from federation.apiserver.store.interface import Body, Event, Store
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from tests.support.suite.tiers import collects_nightly

QUICK = StoreOptions(tail_interval_s=0.2, progress_interval_s=0.05)


def stores_for(metafunc: pytest.Metafunc, *databases: str) -> list[Any]:
    """Return the stores of a test as parameters: memory, and with the marker `every_store` also `databases`.

    On a database, tests without the marker are nightly. Other tiers do not even collect them.
    """
    is_for_every_store = metafunc.definition.get_closest_marker("every_store") is not None
    has_nightly = collects_nightly(metafunc.config)
    params = [pytest.param("memory", id="memory")]
    if is_for_every_store or has_nightly:
        marks = [] if is_for_every_store else [pytest.mark.nightly]
        for name in databases:
            own = [pytest.mark.postgres] if name == "postgres" else []
            params.append(pytest.param(name, id=name, marks=marks + own))
    return params


def a_body(text: str = "") -> Body:
    """Return a value that contains its own revision: {"rv":"7","text":"…"}."""
    return Body(b'{"rv":"', b'","text":"' + text.encode() + b'"}')


def a_value(revision: int, text: str = "") -> bytes:
    """Return the stored bytes of `a_body(text)`."""
    return b'{"rv":"%d","text":"%b"}' % (revision, text.encode())


async def eventually(is_so: Callable[[], bool]) -> None:
    """Return once `is_so`; TimeoutError after a minute."""
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110  # the awaited change happens in another process or thread
            await asyncio.sleep(0.001)


class StoreBackend:
    """One database, or memory, and the open stores on it."""

    def __init__(self, name: str, url: str = "") -> None:
        self.name = name
        self.url = url
        self._open: dict[int, tuple[Store, asyncio.Task[None]]] = {}

    @property
    def is_durable(self) -> bool:
        return bool(self.url)

    async def open(self, **options: Any) -> Store:
        """Return a running store; `options` are fields of StoreOptions."""
        chosen = dataclasses.replace(QUICK, **options)
        store: Store = SQLStore(self.url, chosen) if self.url else MemoryStore(chosen)
        running = asyncio.create_task(store.run())
        self._open[id(store)] = (store, running)
        await store.ready()
        return store

    async def stop(self, store: Store) -> None:
        """Stop one store like an orderly exit of its process."""
        _, running = self._open.pop(id(store))
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await store.close()

    async def close(self) -> None:
        for store, _ in list(self._open.values()):
            await self.stop(store)


class Recorder:
    """Reads a watch in the background and records its events."""

    def __init__(self, store: Store, prefix: str = "", since: int = 0) -> None:
        self.events: list[Event] = []
        self.revision = since
        self.error: BaseException | None = None
        self._moved = asyncio.Condition()
        self._task = asyncio.create_task(self._read(store, prefix, since))

    async def wait_for(self, revision: int) -> list[Event]:
        """Return all events once the watch has reached `revision`."""
        async with asyncio.timeout(60), self._moved:
            await self._moved.wait_for(lambda: self.revision >= revision or self.error is not None)
        if self.error is not None:
            raise self.error
        return self.events

    async def wait_for_error(self) -> BaseException:
        async with asyncio.timeout(60), self._moved:
            await self._moved.wait_for(lambda: self.error is not None)
        assert self.error is not None
        return self.error

    async def stop(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _read(self, store: Store, prefix: str, since: int) -> None:
        try:
            async for batch in store.watch(prefix, since):
                self.events += batch
                self.revision = batch.revision
                await self._tell()
        except Exception as error:  # noqa: BLE001  # the test inspects any error that ends the watch
            self.error = error
            await self._tell()

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()


@contextlib.asynccontextmanager
async def recording(store: Store, prefix: str = "", since: int = 0) -> AsyncIterator[Recorder]:
    """Yield a running Recorder."""
    recorder = Recorder(store, prefix, since)
    try:
        yield recorder
    finally:
        await recorder.stop()
