"""The whole server on a real socket, against clients that send too much, too slowly, garbage, or never read."""

import asyncio
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx
import orjson
import pytest
from tests.support.apiserver import Parts, api_server
from tests.support.metrics import sample_of
from tests.support.rest import Api, eventually

from federation.apiserver.http.serving import ServingOptions, serve
from federation.client.kubeconfig import load_kubeconfig

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
Send = Callable[..., Any]


class Line:
    """A plain connection of an administrator: `ask` writes raw bytes, `answer` reads one response."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    def head(self, method: str, path: str, version: str = "1.1", **headers: str) -> bytes:
        lines = [f"{method} {path} HTTP/{version}", "host: a", f"authorization: Bearer {self._token}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    def post(self, body: bytes, **headers: str) -> bytes:
        defaults = {"content_type": "application/json", "content_length": str(len(body))}
        return self.head("POST", CONFIGMAPS, **(defaults | headers)) + body

    async def ask(self, data: bytes) -> tuple[int, Any]:
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()
        return await self.answer()

    async def answer(self) -> tuple[int, Any]:
        """Return status and body of the next response; status 0 when the connection ended without one."""
        try:
            async with asyncio.timeout(60):
                head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
                status = int(head.split(b" ", 2)[1])
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0, None
        return status, orjson.loads(body) if b"application/json" in head else body

    async def is_closed(self) -> bool:
        try:
            return await asyncio.wait_for(self.reader.read(1), 60) == b""
        except ConnectionError:
            return True


@pytest.fixture
async def line(parts: Parts) -> Callable[..., Any]:
    """Return a function that serves the app with given limits and opens a connection to it."""
    token = parts.token_file.add(user="admin", groups=["system:masters"])

    @asynccontextmanager
    async def open_(**limits: Any) -> AsyncIterator[Line]:
        started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(
            serve(
                parts.app,
                host="127.0.0.1",
                port=0,
                tls=None,
                on_started=lambda _, port: started.set_result(port),
                options=ServingOptions(**limits),
            )
        )
        try:
            async with Line(await started, token) as line:
                yield line
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    return open_


def stalled() -> float:
    return sample_of("federation_server_connections_stalled_total") or 0.0


def nested(depth: int) -> bytes:
    return b'{"metadata":{"name":"a"},"data":' + b'{"a":' * depth + b"1" + b"}" * (depth + 1)


BOMB = gzip.compress(b"a" * 10_000_000, mtime=0)
ALIASES = b"a: &a [x, x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n" % ((c, c) + (c - 1,) * 10) for c in range(98, 108)
)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (nested(100_000), {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"{a: " * 50_000, {"content_type": "application/yaml"}, 400),
        (b"- " * 50_000, {"content_type": "application/yaml"}, 400),
        (b"a: [" + b"1," * 300_000 + b"1]", {"content_type": "application/yaml"}, 400),
        (ALIASES, {"content_type": "application/yaml"}, 400),
        (BOMB, {"content_encoding": "gzip"}, 400),
        (b"\xd9\xd9\xf7\xa1", {"content_type": "application/cbor"}, 415),
        (b"x" * 3_200_000, {}, 413),
        (b"", {"content_length": "99999999999"}, 413),
        (b"", {"content_length": "9" * 40}, 400),
        (b"", {"content_length": "-1"}, 400),
        (b"", {"content_length": "1", "transfer_encoding": "chunked"}, 400),
        (b'{"metadata":{"name":"\\ud800"}}', {}, 400),
        (b"\xff\xfe", {}, 400),
        (b"", {"x": "v" * 200_000}, 431),
        (b"", {f"x{number}": "" for number in range(1100)}, 431),
        (b"", {"x": "a\x00b"}, 400),
    ],
    ids=lambda value: str(value)[:24],
)
async def test_hostile_requests_are_answered_and_other_clients_are_served(
    line: Send, body: bytes, headers: dict[str, str], status: int
) -> None:
    async with line() as connection:
        assert (await connection.ask(connection.post(body, **headers)))[0] == status
        async with Line(connection._port, connection._token) as other:
            assert (await other.ask(other.head("GET", CONFIGMAPS)))[0] == 200


async def test_an_endless_header_is_refused(line: Send) -> None:
    async with line() as connection:
        connection.writer.write(b"GET / HTTP/1.1\r\nx: ")
        sent = 0
        with suppress(ConnectionError):
            while sent < 50_000_000 and not connection.reader.at_eof():
                connection.writer.write(b"v" * 50_000)
                await connection.writer.drain()
                sent += 50_000
        assert sent < 50_000_000


async def test_endless_trailers_close_the_connection(line: Send) -> None:
    async with line() as connection:
        head = connection.head("POST", CONFIGMAPS, transfer_encoding="chunked", content_type="application/json")
        connection.writer.write(head + b"2\r\n{}\r\n0\r\nx: ")
        sent = 0
        with suppress(ConnectionError):
            while sent < 50_000_000 and not connection.reader.at_eof():
                connection.writer.write(b"v" * 50_000)
                await connection.writer.drain()
                sent += 50_000
        assert sent < 50_000_000


async def test_an_early_response_is_received_and_the_connection_is_reused(line: Send) -> None:
    async with line() as connection:
        body = b"x" * 4_000_000
        assert (await connection.ask(connection.post(body)))[0] == 413
        assert (await connection.ask(connection.head("GET", CONFIGMAPS)))[0] == 200


async def test_a_missing_body_ends_at_the_request_deadline(line: Send) -> None:
    async with line() as connection:
        head = connection.head("POST", f"{CONFIGMAPS}?timeout=50ms", content_length="100")
        assert (await connection.ask(head + b"{"))[0] == 504


async def test_pipelined_requests_are_answered_in_order_up_to_a_limit(line: Send) -> None:
    async with line() as connection:
        paths = ["/version", CONFIGMAPS, "/livez", "/api"]
        answers = [await connection.ask(b"".join(connection.head("GET", path) for path in paths))]
        answers += [await connection.answer() for _ in paths[1:]]
        assert [status for status, _ in answers] == [200] * 4
        assert [answers[1][1]["kind"], answers[2][1], answers[3][1]["kind"]] == ["ConfigMapList", b"ok", "APIVersions"]
    async with line() as connection:
        statuses = {(await connection.ask(connection.head("GET", "/livez") * 500))[0]}
        while statuses and 0 not in statuses and len(statuses) < 3:
            statuses.add((await connection.answer())[0])
        assert statuses <= {200, 400, 0}
        assert await connection.is_closed()


async def test_http_1_0_is_answered_and_closed(line: Send) -> None:
    async with line() as connection:
        assert (await connection.ask(connection.head("GET", "/livez", "1.0")))[0] == 200
        assert await connection.is_closed()


async def test_a_request_split_into_single_bytes_is_one_request(line: Send) -> None:
    async with line() as connection:
        connection.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = connection.post(b'{"metadata":{"name":"slow"}}')
        for index in range(len(data) - 1):
            connection.writer.write(data[index : index + 1])
            await asyncio.sleep(0)
        assert (await connection.ask(data[-1:]))[0] == 201


async def test_a_client_that_stops_reading_a_list_is_disconnected(parts: Parts, line: Send) -> None:
    async with line() as patient:
        for number in range(12):
            body = orjson.dumps({"metadata": {"name": f"c{number}"}, "data": {"x": "v" * 900_000}})
            assert (await patient.ask(patient.post(body)))[0] == 201
    async with line(write_stall_s=0.1) as connection:
        connection.writer.write(connection.head("GET", CONFIGMAPS))
        connection.reader._limit = 1  # the reader stops reading from the socket
        before = stalled()
        async with Line(connection._port, connection._token) as other, asyncio.timeout(60):
            while stalled() == before:
                assert (await other.ask(other.head("GET", "/livez")))[0] == 200


@pytest.mark.real_time
def test_a_watcher_that_does_not_read_is_disconnected_with_bounded_memory(tmp_path: Path) -> None:
    """Over TLS, as in production: 60 MB of changes, one watcher reads them all and one reads none."""
    with api_server(tmp_path, serving=ServingOptions(graceful_stop_s=1, write_stall_s=2)) as parts:
        connection = load_kubeconfig(parts.kubeconfig, "")
        context = connection.to_tls()
        api = Api(connection, "default")
        url = httpx.URL(parts.server)
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect((url.host, url.port))
        assert isinstance(context, ssl.SSLContext)
        stuck = context.wrap_socket(raw, server_hostname=url.host)
        stuck.sendall(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        assert stuck.recv(12) == b"HTTP/1.1 200"
        assert parts.app._flow_control.watches == 1
        with api.http.stream("GET", f"{CONFIGMAPS}?watch=1", timeout=30) as reading:
            lines = reading.iter_lines()
            for number in range(60):
                api.send("POST", CONFIGMAPS, {"metadata": {"name": f"c{number}"}, "data": {"x": "v" * 1_000_000}})
                while orjson.loads(next(lines))["object"]["metadata"]["name"] != f"c{number}":
                    pass
            eventually(lambda: parts.app._flow_control.watches == 1)
        received = 12
        with suppress(ConnectionError, ssl.SSLError, TimeoutError):
            stuck.settimeout(10)
            while piece := stuck.recv(65536):
                received += len(piece)
        assert received < 8_000_000
        stuck.close()
        api.close()
