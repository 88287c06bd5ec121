"""The ASGI app in process, over a MemoryStore: no sockets, no TLS."""

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts, build, calm
from tests.support.faults import StoreCopy, copy_of, restored

from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.app import AppOptions
from federation.apiserver.store.memory import MemoryStore
from federation.hosting.roles import HOST_RBAC

ADMIN = Peer("admin", ("system:masters",))
Client = Callable[..., httpx.AsyncClient]


class _Prepared(NamedTuple):
    folder: Path
    content: StoreCopy


_preparations: list[_Prepared] = []


async def _prepared() -> _Prepared:
    """Return the files and the store of a server that has started."""
    if not _preparations:
        folder, store = Path(tempfile.mkdtemp(prefix="fedapi-")), MemoryStore()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        parts = build(folder, store)
        await parts.registry.start()
        await ensure_default_rbac(parts.registry, HOST_RBAC)
        _preparations.append(_Prepared(folder, copy_of(store)))
    return _preparations[0]


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    """A server whose registry and authorizer run."""
    async with running(tmp_path) as parts:
        yield parts


@asynccontextmanager
async def running(directory: Path, options: AppOptions | None = None) -> AsyncIterator[Parts]:
    """Run the registry and the authorizer of a server; its keys and default roles are made once per process."""
    begin = await _prepared()
    shutil.copytree(begin.folder, directory, dirs_exist_ok=True)
    store = restored(MemoryStore(), begin.content)
    parts = build(directory, store, options=options)
    await parts.registry.start()
    tasks = [asyncio.create_task(parts.authorizer.run()), asyncio.create_task(parts.registry.run())]
    await parts.authorizer.wait_synced()
    await calm(store)
    yield parts
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await store.close()


def connect(app: Any, peer: Peer | None = ADMIN, **headers: str) -> httpx.AsyncClient:
    """Return a client of the app whose certificate is `peer`'s."""

    async def connected(scope: Any, receive: Any, send: Any) -> None:
        scope["state"] = {"peer": peer}
        await app(scope, receive, send)

    transport = httpx.ASGITransport(app=connected)
    return httpx.AsyncClient(transport=transport, base_url="https://api", headers=headers)


@pytest.fixture
async def admin(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with connect(parts.app) as client:
        yield client


async def eventually(check: Callable[[], Awaitable[bool]]) -> None:
    """Return once the check is true; for effects that arrive through a watch."""
    async with asyncio.timeout(60):
        while not await check():  # noqa: ASYNC110  # the state changes in the product, which has no event for tests
            await asyncio.sleep(0)


class Stream:
    """A watch on raw ASGI, read while it runs."""

    def __init__(
        self, app: Any, path: str, query: str = "", *, headers: dict[str, str] | None = None, peer: Peer | None = ADMIN
    ) -> None:
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.lines: asyncio.Queue[Any] = asyncio.Queue()
        self.started = asyncio.Event()
        self._gone = asyncio.Event()
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(k.encode(), v.encode()) for k, v in (headers or {}).items()],
            "state": {"peer": peer},
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            self.started.set()
            return
        for line in message.get("body", b"").splitlines():
            self.lines.put_nowait(orjson.loads(line))
        if not message.get("more_body"):
            self.lines.put_nowait(None)

    async def next(self) -> Any:
        """Return the next event, None at the end of the stream."""
        return await asyncio.wait_for(self.lines.get(), 60)

    async def disconnect(self) -> None:
        self._gone.set()
        await asyncio.wait_for(self.task, 60)


@pytest.fixture
async def watch(parts: Parts) -> AsyncIterator[Callable[..., Stream]]:
    """Return a function that opens watches. They are closed at the end of the test."""
    streams: list[Stream] = []

    def open_(path: str, query: str = "watch=1", **arguments: Any) -> Stream:
        streams.append(Stream(parts.app, path, query, **arguments))
        return streams[-1]

    yield open_
    for stream in streams:
        await stream.disconnect()
