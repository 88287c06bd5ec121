"""Certificates, and tiny servers with scripted answers."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from federation.apimachinery.clock import Clock, ManualClock
from federation.apimachinery.connection import Connection
from federation.apiserver.auth.pki import PKI, ensure_pki
from federation.client.http import HTTPClient
from federation.client.session import HTTPOptions

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> PKI:
    return ensure_pki(tmp_path_factory.mktemp("pki"), now=datetime.now(UTC))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@dataclass
class TinyServer:
    """A minimal HTTP server that records its requests as (head, body)."""

    requests: list[tuple[str, bytes]]
    connection: Connection
    ports: list[int] = field(default_factory=list)
    """The client's port of each request."""


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., HTTPClient]]:
    """Make clients that are closed at the end of the test."""
    clients: list[HTTPClient] = []

    def make(connection: Connection, clock: Clock | None = None, **options: Any) -> HTTPClient:
        client = HTTPClient(connection, HTTPOptions(**options), clock=clock)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
async def serve(pki: PKI) -> AsyncIterator[Callable[..., Awaitable[TinyServer]]]:
    """Start a server that answers with `answer(head) -> bytes | None`; None means no answer."""
    servers: list[asyncio.Server] = []
    writers: list[asyncio.StreamWriter] = []

    async def start(answer: Callable[[str], bytes | None], *, tls: bool = False) -> TinyServer:
        found = TinyServer([], Connection(server=""))

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            try:
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    lengths = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
                    body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
                    found.requests.append((head, body))
                    found.ports.append(writer.get_extra_info("peername")[1])
                    data = answer(head)
                    if data is None:
                        continue
                    writer.write(data)
                    await writer.drain()
                    if b"connection: close" in data.lower():
                        break
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        context = None
        if tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(pki.serving.certificate, pki.serving.key)
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        servers.append(server)
        port = server.sockets[0].getsockname()[1]
        found.connection = Connection(server=f"{'https' if tls else 'http'}://127.0.0.1:{port}")
        return found

    yield start
    for server in servers:
        server.close()
    for writer in writers:
        writer.close()
    await asyncio.sleep(0)


def answered(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Return a complete HTTP answer."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


@pytest.fixture(name="answered")
def answered_fixture() -> Callable[..., bytes]:
    return answered


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path
