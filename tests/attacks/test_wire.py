"""A hostile or broken server at the other end of a connection: smuggled, cut, endless and unexpected answers.

Each test runs on the event loops of asyncio and of uvloop, over a real socket.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterError, ClusterUnreachable, Obstacle, RequestTimeout
from federation.apimachinery.resources import CONFIGMAPS
from federation.apiserver.auth.pki import PKI, ensure_pki
from federation.client.http import HTTPClient
from federation.client.session import HTTPOptions
from federation.client.wireconnection import HEAD_BYTES_MAX, HEADERS_MAX

Run = Callable[[Coroutine[Any, Any, None]], None]
OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"Content-Length: 2\r\n\r\n{}"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FORGED = OK + b"Content-Length: 6\r\n\r\nforged"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def start(scenario: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(scenario, 30))

    return start


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> PKI:
    return ensure_pki(tmp_path_factory.mktemp("pki"), now=datetime.now(UTC))


@dataclass
class Peer:
    """The server's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> str:
        """Return the head of the next request when its body has arrived, "" at the end of the connection."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            lengths = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
            if lengths:
                await self.reader.readexactly(int(lengths[0].split(":")[1]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""
        return head

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


@dataclass
class World:
    client: HTTPClient
    heads: list[str] = field(default_factory=list)
    """Of all requests."""
    opened: int = 0
    """Connections."""
    closed: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    """Ends of connections."""


Play = Callable[[Peer, World], Awaitable[None]]


@asynccontextmanager
async def playing(
    play: Play, *, host: str = "127.0.0.1", tls: PKI | None = None, **options: Any
) -> AsyncIterator[World]:
    """Serve each connection by `play`, closed at its end."""
    playing: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        playing.add(task)
        world.opened += 1
        try:
            with suppress(OSError):
                await play(Peer(reader, writer), world)
        finally:
            writer.close()
            world.closed.put_nowait(None)

    context = None
    if tls is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tls.serving.certificate, tls.serving.key)
    server = await asyncio.start_server(serve, host, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    address = f"[{host}]" if ":" in host else host
    connection = Connection(f"{'https' if tls else 'http'}://{address}:{port}")
    if tls is not None:
        connection = replace(connection, ca_data=tls.ca_certificate.read_bytes())
    world = World(HTTPClient(connection, HTTPOptions(**options)))
    try:
        yield world
    finally:
        await world.client.close()
        server.close()
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)


def answering(*pieces: bytes, is_closed: bool = False) -> Play:
    """Answer each request with these pieces, and close the connection after the first if `is_closed`."""

    async def play(peer: Peer, world: World) -> None:
        while head := await peer.request():
            world.heads.append(head)
            for piece in pieces:
                await peer.send(piece)
                await asyncio.sleep(0)
            if is_closed:
                return

    return play


async def get(world: World, path: str = "/x", **arguments: Any) -> tuple[int, bytes]:
    return await world.client.raw("GET", path, **arguments)


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "tls"])
def test_connections_are_kept(run: Run, pki: PKI, is_encrypted: bool) -> None:
    async def scenario() -> None:
        async with playing(answering(WHOLE), tls=pki if is_encrypted else None) as world:
            for _ in range(5):
                assert await get(world) == (200, b"{}")
            assert (len(world.heads), world.opened) == (5, 1)

    run(scenario())


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([CHUNKED + b"1\r\n{\r\n1;name=value\r\n}\r\n0\r\nTrailer: x\r\n\r\n"], (200, b"{}")),
        ([bytes([byte]) for byte in CHUNKED + b"2\r\n{}\r\n0\r\n\r\n"], (200, b"{}")),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 7\r\n\r\n" + WHOLE], (200, b"{}")),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], (204, b"")),
        ([b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"], (304, b"")),
        ([b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}"], (200, b"{}")),
        ([b"HTTP/1.1 200 OK\r\ncontent-LENGTH:  2 \r\n\r\n{}"], (200, b"{}")),
    ],
    ids=["chunked", "byte by byte", "interim", "204", "304", "HTTP/1.0 kept", "odd header"],
)
def test_answers_of_any_legal_form_are_read_and_the_connection_is_kept(
    run: Run, pieces: list[bytes], expected: tuple[int, bytes]
) -> None:
    async def scenario() -> None:
        async with playing(answering(*pieces)) as world:
            assert [await get(world), await get(world)] == [expected] * 2
            assert world.opened == 1

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "is_closed"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n{}", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", False),
        (OK + b"\r\n{}", True),
        (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", False),
        (WHOLE, True),
        (WHOLE + FORGED, False),
        (WHOLE + b"\r\nforged", False),
        (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n" + FORGED, False),
    ],
    ids=["1.0", "1.0 with length", "no length", "close", "closed", "split", "garbage", "chunked and split"],
)
def test_a_connection_that_should_end_or_has_more_is_not_used_again(run: Run, answer: bytes, is_closed: bool) -> None:
    async def scenario() -> None:
        async with playing(answering(answer, is_closed=is_closed)) as world:
            for number in (1, 2, 3):
                assert await get(world) == (200, b"{}")
                assert world.opened == number

    run(scenario())


BROKEN = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "no version": b"200 OK\r\n\r\n",
    "another version": b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "chunks and length": OK + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "negative length": OK + b"Content-Length: -2\r\n\r\n{}",
    "signed length": OK + b"Content-Length: +2\r\n\r\n{}",
    "length with a text": OK + b"Content-Length: 2 2\r\n\r\n{}",
    "endless length": OK + b"Content-Length: 99999999999999999999999999\r\n\r\n{}",
    "two encodings": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "unknown encoding": OK + b"Transfer-Encoding: identity\r\n\r\n{}",
    "chunked twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked, x\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "size of a chunk": CHUNKED + b"x\r\n{}\r\n0\r\n\r\n",
    "signed size": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "endless size": CHUNKED + b"fffffffffffffffff\r\n{}",
    "long chunk": CHUNKED + b"1\r\n{}\r\n0\r\n\r\n",
    "bare line feeds": b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}",
    "space before the colon": OK + b"Content-Length : 2\r\n\r\n{}",
    "no colon": OK + b"Content-Length\r\n\r\n{}",
    "NUL in a header": OK + b"X: a\0b\r\nContent-Length: 2\r\n\r\n{}",
    "switched protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    "long header": OK + b"X: " + b"a" * (HEAD_BYTES_MAX + 1) + b"\r\nContent-Length: 2\r\n\r\n{}",
    "many headers": OK + b"X: a\r\n" * (HEADERS_MAX + 1) + b"Content-Length: 2\r\n\r\n{}",
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
def test_broken_http_is_unreachable_and_ends_the_connection(run: Run, answer: bytes) -> None:
    async def scenario() -> None:
        async with playing(answering(answer)) as world:
            with pytest.raises(ClusterUnreachable, match="the connection broke"):
                await get(world)
            await world.closed.get()
            assert len(world.heads) == 1, "a server that does not speak HTTP is not asked again"

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"", "without an answer"),
        (OK, "broke"),
        (OK + b"Content-Length: 3\r\n\r\n{}", "broke"),
        (CHUNKED + b"2\r\n{}\r\n", "broke"),
        (CHUNKED + b"5\r\n{}", "broke"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "broke"),
    ],
    ids=["nothing", "half a head", "half a body", "no last chunk", "half a chunk", "interim only"],
)
def test_an_answer_that_ends_early_is_unreachable(run: Run, answer: bytes, text: str) -> None:
    async def scenario() -> None:
        async with playing(answering(answer, is_closed=True)) as world:
            with pytest.raises(ClusterUnreachable, match=text):
                await get(world)
            with pytest.raises(ClusterUnreachable, match=text):
                await world.client.list(CONFIGMAPS)

    run(scenario())


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (OK + b"X: ", b"a" * 10_000),
        (OK, b"X: a\r\n" * 1_000),
        (b"", b"\r\n" * 5_000),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 100),
        (CHUNKED + b"1;", b"a" * 10_000),
        (CHUNKED + b"1\r\n{\r\n0\r\nX: ", b"a" * 10_000),
        (CHUNKED + b"1\r\n{\r\n0\r\n", b"X: a\r\n" * 1_000),
    ],
    ids=["header", "headers", "blank lines", "interim", "extension", "trailer", "trailers"],
)
def test_what_is_no_body_does_not_come_without_end(run: Run, first: bytes, again: bytes) -> None:
    async def endless(peer: Peer, world: World) -> None:
        await peer.request()
        await peer.send(first)
        while True:
            await peer.send(again)
            world.heads.append("")

    async def scenario() -> None:
        async with playing(endless) as world:
            with pytest.raises(ClusterUnreachable, match="longer than"):
                await get(world, timeout_s=25)
            await world.closed.get()
            with pytest.raises(ClusterUnreachable, match="longer than"):
                async for _ in world.client.watch(CONFIGMAPS, resource_version="1"):
                    pass

    run(scenario())


@pytest.mark.real_time
@pytest.mark.parametrize("slow", [WHOLE, OK + b"X: " + b"a" * 99, CHUNKED + b"1\r\n{\r\n" * 99])
def test_an_answer_that_drips_has_the_time_of_its_request(run: Run, slow: bytes) -> None:
    async def drip(peer: Peer, world: World) -> None:
        await peer.request()
        for byte in slow:
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.02)  # the attack is the pause
        await peer.request()

    async def scenario() -> None:
        async with playing(drip) as world:
            with pytest.raises(RequestTimeout):
                await get(world, timeout_s=0.1)
            await world.closed.get()

    run(scenario())


def test_a_request_that_is_cancelled_costs_its_connection_and_no_other(run: Run) -> None:
    async def half(peer: Peer, world: World) -> None:
        while head := await peer.request():
            world.heads.append(head)
            await peer.send(WHOLE if "/whole" in head else WHOLE[:-1])
            begun.set()

    async def scenario() -> None:
        async with playing(half) as world:
            await get(world, "/whole")
            begun.clear()
            cancelled = asyncio.ensure_future(get(world, "/half"))
            await begun.wait()
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await world.closed.get()
            assert await get(world, "/whole") == (200, b"{}")
            assert world.opened == 2

    begun = asyncio.Event()
    run(scenario())


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "POST"])
def test_only_what_may_happen_twice_is_sent_again_and_only_on_a_kept_connection(run: Run, method: str) -> None:
    async def answer_once(peer: Peer, world: World) -> None:
        world.heads.append(await peer.request())
        await peer.send(WHOLE)
        if head := await peer.request():
            world.heads.append(head)

    async def close_at_once(peer: Peer, world: World) -> None:
        world.heads.append(await peer.request())

    async def scenario() -> None:
        async with playing(answer_once) as world:
            assert await get(world) == (200, b"{}")
            if method in ("PATCH", "POST"):
                with pytest.raises(ClusterUnreachable, match="without an answer"):
                    await world.client.raw(method, "/x", body={})
            else:
                assert await world.client.raw(method, "/x", body={}) == (200, b"{}")
            assert [head.split(" ")[0] for head in world.heads] == [
                "GET",
                *([method] if method in ("PATCH", "POST") else [method] * 2),
            ]
        async with playing(close_at_once) as world:
            with pytest.raises(ClusterUnreachable, match="without an answer"):
                await world.client.raw(method, "/x", body={})
            assert len(world.heads) == 1

    run(scenario())


@pytest.mark.real_time
@pytest.mark.parametrize("late", [b"", FORGED, b"HTTP/1.1 408 Request Timeout\r\n\r\n"], ids=["end", "forged", "408"])
def test_what_arrives_between_two_requests_is_not_the_answer_to_the_second(run: Run, late: bytes) -> None:
    """The event loop may be too busy to see the end of a kept connection before a write that must not be repeated."""

    async def scenario() -> None:
        sent = asyncio.Event()

        async def play(peer: Peer, world: World) -> None:
            while head := await peer.request():
                world.heads.append(head)
                await peer.send(WHOLE)
                await go.wait()
                await peer.send(late)
                sent.set()
                if not late:
                    return

        go = asyncio.Event()
        async with playing(play) as world:
            assert await get(world) == (200, b"{}")
            go.set()
            await sent.wait()
            await asyncio.sleep(0.1)  # the connection has been idle for longer than a burst
            assert await world.client.raw("POST", "/x", body={}) == (200, b"{}")
            assert world.opened == 2

    run(scenario())


def test_the_kernel_is_asked_before_a_kept_connection_is_used_again(run: Run) -> None:
    async def scenario() -> None:
        leave, left = asyncio.Event(), asyncio.Event()

        async def answer_and_leave(peer: Peer, world: World) -> None:
            await peer.request()
            await peer.send(WHOLE)
            await leave.wait()
            peer.writer.write_eof()
            left.set()
            await peer.request()

        async with playing(answer_and_leave) as world:
            await get(world)
            wire = world.client._http._session._wire
            assert wire is not None
            (kept,) = wire._idle
            kept.idle_since_s -= 10.0
            kept.pause()  # as a busy event loop, it does not see what arrives
            assert kept.is_alive(asyncio.get_running_loop().time())
            leave.set()
            await left.wait()
            assert not kept.is_alive(asyncio.get_running_loop().time())

    run(scenario())


def test_a_server_that_answers_before_it_has_read_the_request_gets_no_other_on_that_connection(run: Run) -> None:
    async def answer_early(peer: Peer, world: World) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.reader._transport.pause_reading()  # type: ignore[attr-defined]
        world.heads.append("")
        await peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
        await done.wait()

    async def scenario() -> None:
        async with playing(answer_early) as world:
            for number in (1, 2):
                status, _ = await world.client.raw("PUT", "/x", body=b"x" * 20_000_000)
                assert (status, world.opened) == (413, number)
            done.set()

    done = asyncio.Event()
    run(scenario())


@pytest.mark.real_time
def test_a_slow_reader_of_a_watch_holds_the_server_back(run: Run) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"%s"}}}\n' % (b"x" * 60_000)

    async def scenario() -> None:
        progress = asyncio.Event()

        async def endless(peer: Peer, world: World) -> None:
            await peer.request()
            await peer.send(CHUNKED)
            while True:
                await peer.send(b"%x\r\n%s\r\n" % (len(line), line))
                world.heads.append("")
                progress.set()

        async with playing(endless, read_buffer_bytes=100_000) as world:
            watch = world.client.watch(CONFIGMAPS, resource_version="1")
            await anext(watch)
            while progress.is_set():  # until the server cannot send for a while
                progress.clear()
                await asyncio.sleep(0.2)
            sent = len(world.heads)
            assert sent < 500, "30 MB; the rest are buffers of the kernel"
            while len(world.heads) < sent + 200:
                await anext(watch)
            await watch.aclose()
            await world.closed.get()

    run(scenario())


def test_ipv6(run: Run) -> None:
    async def scenario() -> None:
        async with playing(answering(WHOLE), host="::1") as world:
            assert await get(world) == (200, b"{}")
            assert f"Host: {world.client.connection.server.removeprefix('http://')}\r\n" in world.heads[0]

    run(scenario())


def test_credentials_and_paths_split_no_request(run: Run) -> None:
    async def scenario() -> None:
        async with playing(answering(WHOLE)) as world:
            for path in ("/x HTTP/1.1\r\nX: y", "/x\r\n", "/x y", "/\x00", "/ä"):
                with pytest.raises(ClusterUnreachable):
                    await get(world, path)
            connection = replace(world.client.connection, token="a\r\nImpersonate-User: admin")
            client = HTTPClient(connection)
            with pytest.raises(ClusterError, match="Authorization has a control character"):
                await client.raw("GET", "/x")
            await client.close()
            assert world.heads == []

    run(scenario())


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "tls"])
def test_a_proxy_is_used(run: Run, pki: PKI, is_encrypted: bool) -> None:
    async def scenario() -> None:
        async with playing(answering(WHOLE), tls=pki if is_encrypted else None) as world:

            async def proxy(peer: Peer, seen: World) -> None:
                head = await peer.request()
                seen.heads.append(head)
                if not head.startswith("CONNECT "):
                    await peer.send(WHOLE)
                    return
                host, port = head.split(" ")[1].rsplit(":", 1)
                reader, writer = await asyncio.open_connection(host, int(port))
                await peer.send(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")

                async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
                    while data := await source.read(65536):
                        target.write(data)
                    target.close()

                await asyncio.gather(copy(peer.reader, writer), copy(reader, peer.writer))

            async with playing(proxy) as between:
                url = between.client.connection.server.replace("http://", "http://me:pw@")
                client = HTTPClient(replace(world.client.connection, proxy_url=url, token="secret"))
                assert await client.raw("GET", "/x") == (200, b"{}")
                await client.close()
                (head,) = between.heads
                server = world.client.connection.server
                first = f"CONNECT {server.removeprefix('https://')} " if is_encrypted else f"GET {server}/x "
                assert head.startswith(first)
                assert "Proxy-Authorization: Basic bWU6cHc=\r\n" in head
                assert ("secret" in head) == (not is_encrypted), "TLS hides credentials from a proxy"

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407"),
        (b"HTTP/1.1 200 OK\r\n\r\nmore", "more than a head"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20_000, "more than a head"),
        (b"", "closed the connection"),
        (b"nonsense\r\n\r\n", "nonsense"),
    ],
)
def test_a_proxy_that_refuses_is_no_connection(run: Run, pki: PKI, answer: bytes, text: str) -> None:
    async def scenario() -> None:
        async with playing(answering(answer, is_closed=True)) as between:
            client = HTTPClient(Connection("https://127.0.0.1:1", proxy_url=between.client.connection.server))
            with pytest.raises(ClusterUnreachable, match=text):
                await client.raw("GET", "/x")
            await client.close()

    run(scenario())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_away_says_nothing_about_the_server(run: Run, scheme: str) -> None:
    async def scenario() -> None:
        client = HTTPClient(Connection(f"{scheme}://192.0.2.1:6443", proxy_url="http://me:secret@127.0.0.1:1"))
        with pytest.raises(ClusterUnreachable, match=r"the proxy 127\.0\.0\.1:1 does not answer") as refusal:
            await client.raw("GET", "/x")
        assert refusal.value.obstacle is Obstacle.PROXY_AWAY
        assert "secret" not in str(refusal.value)
        await client.close()

    run(scenario())


def test_a_client_certificate_is_shown(run: Run, pki: PKI, tmp_path: Path) -> None:
    async def scenario() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki.ca_certificate))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(pki.serving.certificate, pki.serving.key)
        subjects: list[Any] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, asyncio.IncompleteReadError):
                while await reader.readuntil(b"\r\n\r\n"):
                    subjects.append(writer.get_extra_info("peercert")["subject"])
                    writer.write(WHOLE)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        nobody = Connection(address, ca_data=pki.ca_certificate.read_bytes())
        admin = replace(
            nobody,
            client_cert_data=pki.admin_certificate.read_bytes(),
            client_key_data=pki.admin_key.read_bytes(),
        )
        clients = HTTPClient(admin), HTTPClient(nobody)
        assert await clients[0].raw("GET", "/x") == (200, b"{}")
        assert len(subjects) == 1
        with pytest.raises(ClusterUnreachable):
            await clients[1].raw("GET", "/x")
        for client in clients:
            await client.close()
        server.close()

    run(scenario())


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "tls"])
def test_a_watch_can_end_while_its_reader_is_behind(run: Run, pki: PKI, is_encrypted: bool) -> None:
    """Resuming schedules a read; a connection that is aborted before it runs must not fail in the event loop."""
    line = b'{"type":"ADDED","object":{"metadata":{"name":"%s"}}}\n' % (b"x" * 60_000)

    async def endless(peer: Peer, world: World) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        while True:
            await peer.send(b"%x\r\n%s\r\n" % (len(line), line))
            world.heads.append("")
            if len(world.heads) % 20 == 0:
                sent.set()

    sent = asyncio.Event()

    async def scenario() -> None:
        problems: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        async with playing(endless, tls=pki if is_encrypted else None, read_buffer_bytes=10_000) as world:
            for _ in range(5):
                watch = world.client.watch(CONFIGMAPS, resource_version="1")
                await anext(watch)
                while not await anext(watch):
                    pass
                await sent.wait()
                sent.clear()
                await anext(watch)
                await watch.aclose()
                await world.closed.get()
            assert problems == []

    run(scenario())
