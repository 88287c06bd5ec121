"""Attack: somebody without an account takes the connections of everybody, with bodies that never end or with nothing."""

import asyncio
import gc
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import wsproto
from hypothesis import given
from hypothesis import strategies as st
from tests.support.apiserver import api_server
from tests.support.collector import scanning_new_objects_only
from tests.support.rest import eventually
from tests.unit.apiserver.http.test_serving import client, echo, large, serving
from uvicorn.server import ServerState
from wsproto.events import Ping

from federation.apimachinery.filelimit import file_limit_problem, raise_file_limit
from federation.apiserver.auth.identity import ANONYMOUS, MASTERS, SERVICE_ACCOUNT_PREFIX, User
from federation.apiserver.auth.pki import PKI, ensure_pki
from federation.apiserver.http.asgi import SLICE_BYTES, Disconnected, Request
from federation.apiserver.http.connection import Connection
from federation.apiserver.http.connectionshares import SEAT, SYSTEM, ConnectionShares, Seat, ShareLimits, to_owner
from federation.apiserver.http.serving import ServingOptions
from federation.apiserver.http.unsentbytes import UnsentLimits
from federation.apiserver.http.watchresponses import _deliver, _encode_plain
from federation.apiserver.http.websocketconnection import WebSocketConnection
from federation.apiserver.store.watch import Watcher
from federation.terminal.execution import until_signal

POST = b"POST /ui/login HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nx"


@pytest.fixture
def pki(tmp_path: Path) -> PKI:
    return ensure_pki(tmp_path / "pki", now=datetime.now(UTC))


async def test_a_body_that_does_not_come_ends_its_connection_on_every_route() -> None:
    ended = asyncio.Event()

    async def read(scope: Any, receive: Any, send: Any) -> None:
        try:
            await Request(scope, receive, send).body(1_000_000)
        except Disconnected:
            ended.set()

    async with serving(None, read, options=ServingOptions(request_body_s=0.05)) as (port, _), asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(POST)
        assert await reader.read() == b""
        await ended.wait()
        writer.close()


async def test_a_body_that_comes_is_read_to_its_end(pki: PKI) -> None:
    async def read(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive, send)
        await request.respond(200, b"%d" % len(await request.body(10_000_000)))

    async with serving(None, read, options=ServingOptions(request_body_s=1.0)) as (port, _), asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n")
        sent, loop = 0, asyncio.get_running_loop()
        began_s = loop.time()
        while loop.time() < began_s + 1.2:  # longer than a body may pause
            writer.write(b"%x\r\n%s\r\n" % (100_000, b"x" * 100_000))
            sent += 100_000
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.write(b"0\r\n\r\n")
        assert (await reader.read()).endswith(b"%d" % sent)
        writer.close()


@pytest.mark.real_time
async def test_a_new_connection_of_an_address_ends_its_oldest_without_a_user(pki: PKI) -> None:
    async with serving(pki.serving, echo, options=ServingOptions(connections_max=8)) as (port, _):
        url = f"https://127.0.0.1:{port}/"
        async with AsyncExitStack() as held:
            administrator = await held.enter_async_context(client(pki, has_certificate=True))
            assert (await administrator.get(url)).status_code == 200
            [kept] = administrator._transport._pool.connections  # type: ignore[attr-defined]
            lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
            async with asyncio.timeout(30):
                assert await lines[0][0].read() == b""
            assert not lines[1][0].at_eof()
            assert (await administrator.get(url)).status_code == 200
            assert administrator._transport._pool.connections == [kept]  # type: ignore[attr-defined]
            for _, writer in lines:
                writer.close()


@pytest.mark.real_time
async def test_a_handshake_has_a_deadline(pki: PKI) -> None:
    async with serving(pki.serving, options=ServingOptions(handshake_s=0.05)) as (port, _), asyncio.timeout(30):
        for sent in (b"", b"\x16\x03\x01\x02\x00\x01"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            assert await reader.read() == b""
            writer.close()


@pytest.mark.parametrize("is_socket", [False, True], ids=["http", "websocket"])
def test_a_connection_with_a_token_stays_beside_any_number_without(tmp_path: Path, is_socket: bool) -> None:
    """A token makes a connection known, whatever it was upgraded to."""
    with api_server(tmp_path, serving=ServingOptions(connections_max=8, graceful_stop_s=1)) as parts:
        token = parts.token_file.add(user="admin", groups=["system:masters"])
        address = ("127.0.0.1", int(parts.server.rpartition(":")[2]))
        context = ssl.create_default_context(cafile=str(parts.pki.ca_certificate))
        head = (
            f"GET /api/v1/namespaces?watch=true&resourceVersion=0 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}"
        )
        if is_socket:
            head += "\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13"
            head += "\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="
        with ExitStack() as stack:
            known = stack.enter_context(
                context.wrap_socket(socket.create_connection(address, 30), server_hostname="127.0.0.1")
            )
            known.sendall(head.encode() + b"\r\n\r\n")
            assert known.recv(1000).split()[1] == (b"101" if is_socket else b"200")
            others = [stack.enter_context(socket.create_connection(address, 30)) for _ in range(12)]
            assert others[0].recv(1) == b""  # closed for the others
            known.settimeout(0.2)
            with suppress(TimeoutError):
                while True:
                    assert known.recv(100_000), "closed for connections without a user"


_WATCH = b"GET /api/v1/namespaces/default/secrets?watch=true HTTP/1.1\r\nhost: a\r\nauthorization: Bearer %b\r\n"
_UPGRADE = b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: %b==\r\n"


def test_lost_connections_leave_no_garbage(tmp_path: Path) -> None:
    """TLS makes it 100 KB for each, which the collector finds after hours, and then it stops everybody for seconds."""
    seen = set(Connection.__subclasses__())
    with api_server(tmp_path) as parts:
        token = parts.token_file.add(user="admin", groups=["system:masters"]).encode()
        [kind] = set(Connection.__subclasses__()) - seen
        watch = _WATCH % token
        requests = {
            "no request": (b"", b""),
            "unfinished head": (b"GET / HTTP/1.1\r\nhost: a\r\nx-", b""),
            "unfinished body": (POST, b""),
            "response": (b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n", b"200"),
            "watch": (watch + b"\r\n", b"200"),
            "watches one after the other": ((watch + b"\r\n") * 3, b"200"),
            "websocket": (watch + _UPGRADE % (b"A" * 22) + b"\r\n", b"101"),
        }
        context = ssl.create_default_context(cafile=str(parts.pki.ca_certificate))
        address = ("127.0.0.1", int(parts.server.rpartition(":")[2]))
        with _without_collections():
            for name, (request, status) in requests.items():
                with context.wrap_socket(socket.create_connection(address, 30), server_hostname="127.0.0.1") as client:
                    client.sendall(request)
                    if status:
                        assert client.recv(1000).split()[1] == status, name
                    else:
                        eventually(lambda: _all(kind))
                try:
                    eventually(lambda: not _all(kind))
                except AssertionError:
                    pytest.fail(f"{name}: {len(_all(kind))} connections stay")
            eventually(lambda: not any("secrets/default/" in watcher.prefix for watcher in _all(Watcher)))


@contextmanager
def _without_collections() -> Iterator[None]:
    with scanning_new_objects_only():
        gc.disable()
        try:
            yield
        finally:
            gc.enable()


def _all(kind: type) -> list[Any]:
    """Return the new objects of a class that nothing has freed."""
    return [each for each in gc.get_objects() if type(each) is kind]


@pytest.mark.real_time
async def test_websockets_without_a_user_count() -> None:
    async def accept(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        await receive()

    upgrade = b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
    head = b"GET /?watch=1 HTTP/1.1\r\nhost: a\r\n%bsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n" % upgrade
    async with serving(None, accept, options=ServingOptions(connections_max=8)) as (port, _), asyncio.timeout(30):
        lines = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            lines.append((reader, writer))
            assert b"101" in await reader.readline()
        await lines[0][0].read()
        for _, writer in lines:
            writer.close()


async def test_a_head_of_many_small_headers_is_refused_before_its_end() -> None:
    """Each of 30,000 headers would take 130 bytes for half a minute."""
    async with serving(None) as (port, _), asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 2_000)
        assert b" 431 " in await reader.readline()
        writer.close()


class MemoryTransport(asyncio.Transport):
    """Keeps what is written, and whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.has_closed = self.is_paused = False
        self.aborted = asyncio.Event()

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def is_closing(self) -> bool:
        return self.has_closed

    def close(self) -> None:
        self.has_closed = True

    def abort(self) -> None:
        self.aborted.set()


def websocket(loop: asyncio.AbstractEventLoop, transport: MemoryTransport) -> WebSocketConnection:
    """Return a connection after its handshake."""
    seats = ConnectionShares(LIMITS, lambda: None)
    config = uvicorn.Config(echo, ws=WebSocketConnection, log_config=None)
    state = {SEAT: seats.admit("a", lambda: None)}
    connection = WebSocketConnection(config=config, server_state=ServerState(), app_state=state, _loop=loop)
    connection.transport = transport
    connection.conn.connection = wsproto.Connection(wsproto.ConnectionType.SERVER)
    return connection


def test_a_client_that_pings_and_does_not_read_is_disconnected() -> None:
    transport, loop = MemoryTransport(), asyncio.new_event_loop()
    connection = websocket(loop, transport)
    connection.handle_ping(Ping())
    assert transport.written
    assert not transport.aborted.is_set()
    connection.pause_writing()
    connection.handle_ping(Ping())
    assert transport.aborted.is_set()
    loop.close()


@pytest.mark.parametrize("opcode", ["ping", "message", "part"])
async def test_others_are_served_between_the_frames_that_arrive_at_once(opcode: str) -> None:
    """The event loop reads 256 KiB at once, which hold 43,000 empty frames: they held it for up to three seconds."""
    head = {"ping": b"\x89", "message": b"\x82", "part": b"\x00"}[opcode]
    begin = b"\x02\x80abcd" if opcode == "part" else b""
    transport, count = MemoryTransport(), 2_000
    connection = websocket(asyncio.get_running_loop(), transport)
    handled, in_turn, in_turn_max = 0, 0, 0

    def count_frames(handle: Callable[[Any], None], event: Any) -> None:
        nonlocal handled, in_turn, in_turn_max
        handled, in_turn = handled + 1, in_turn + 1
        in_turn_max = max(in_turn, in_turn_max)
        handle(event)

    connection.handle_ping = partial(count_frames, connection.handle_ping)  # type: ignore[method-assign]  # counts
    connection.handle_message = partial(count_frames, connection.handle_message)  # type: ignore[method-assign]
    connection.data_received(begin + (head + b"\x80abcd") * count)
    while handled < count:
        assert transport.is_paused
        in_turn = 0
        if opcode == "message":
            await connection.receive()  # is no reason to read more
        await asyncio.sleep(0)
    assert in_turn_max <= 128
    while opcode == "message" and not connection.queue.empty():
        await connection.receive()
    await asyncio.sleep(0)
    assert not transport.is_paused


@pytest.mark.real_time
async def test_a_message_that_is_too_large_ends_the_connection() -> None:
    transport = MemoryTransport()
    connection = websocket(asyncio.get_running_loop(), transport)
    connection.config.ws_max_size = connection.buffer.max_length = 1_000
    connection.data_received(b"\x82\xff" + (40_000_000).to_bytes(8, "big") + b"abcd" + b"x" * 2_000)
    assert b"exceeds the maximum size" in transport.written
    assert transport.has_closed
    async with asyncio.timeout(30):
        await transport.aborted.wait()


async def lines_to(port: int, path: str, number: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Return connections whose clients do not read the response."""
    lines = []
    for _ in range(number):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
        writer.write(b"GET %b HTTP/1.1\r\nhost: a\r\n\r\n" % path.encode())
        lines.append((reader, writer))
    return lines


async def test_responses_that_nobody_reads_share_a_budget_of_memory() -> None:
    """Each of 120 lists of 40 MB would stay in memory for half a minute."""
    size, options = 8_000_000, ServingOptions(user_unsent_bytes_max=20_000_000)
    async with serving(None, large, options=options) as (port, _), asyncio.timeout(30):
        lines = await lines_to(port, f"/{size}", 2)
        for reader, _ in lines:
            assert b" 200 " in await reader.readline()
        for reader, writer in await lines_to(port, f"/{size}", 4):
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
        for reader, writer in lines:
            await reader.readuntil(b"\r\n\r\n")
            assert len(await reader.readexactly(size)) == size, "whoever was first gets all, however late he reads"
            writer.close()


@pytest.mark.real_time
async def test_a_client_that_reads_slowly_gets_a_large_list(pki: PKI) -> None:
    """Buffers below TLS hide from the transport that the client reads, and it waits longer than a stalled one may."""
    size, options = 6_000_000, ServingOptions(write_stall_s=1.0, user_unsent_bytes_max=1_000)
    context = ssl.create_default_context(cafile=str(pki.ca_certificate))
    async with serving(pki.serving, large, options=options) as (port, _), asyncio.timeout(30):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        reader, writer = await asyncio.open_connection(
            sock=connection, ssl=context, server_hostname="127.0.0.1", limit=16_384
        )
        writer.write(b"GET /%d HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n" % size)
        read = 0
        while piece := await reader.read(65_536):
            read += len(piece)
            await asyncio.sleep(0.02)
        assert read > size
        writer.close()


async def test_a_watch_that_nobody_reads_copies_no_event() -> None:
    """Each of 300 watches would hold several copies of an object of 2.7 MB."""
    event, sent = b"x" * 1_000_000, []

    async def send(message: Any) -> None:
        sent.append(message["body"])

    await _deliver(
        Request({"method": "GET", "path": "/", "headers": []}, send, send),
        _encode_plain,
        [("ADDED", b"{}"), ("MODIFIED", event)],
    )  # type: ignore[arg-type]
    assert b"".join(sent) == b'{"type":"ADDED","object":{}}\n{"type":"MODIFIED","object":' + event + b"}\n"
    large = [piece for piece in sent if len(piece) > 100]
    assert all(piece.obj is event and len(piece) <= SLICE_BYTES for piece in large)


async def test_a_large_event_is_not_encoded_for_a_watch_that_nobody_reads() -> None:
    encoded, is_blocked = [], asyncio.Event()

    async def send(message: Any) -> None:
        is_blocked.set()
        await asyncio.Event().wait()

    batch = [("MODIFIED", b"x" * 1_000_000)]
    task = asyncio.create_task(
        _deliver(
            Request({"method": "GET", "path": "/", "headers": []}, send, send),
            lambda _: encoded.append(1) or b"",
            batch,
        )
    )  # type: ignore[arg-type,func-returns-value]
    await is_blocked.wait()
    task.cancel()
    assert not encoded


LIMITS = ShareLimits(
    total=10, unknown=5, source=2, known=4, owner=2, held_bytes=100_000, unsent=UnsentLimits(1_000, 2_000)
)
ADMINISTRATOR, USER = User("a", (MASTERS,)), User("u")
ACCOUNTS = [User(f"{SERVICE_ACCOUNT_PREFIX}n:{name}") for name in "abc"]


class Connections:
    """Connections in the order of their arrival, and those that were closed."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.shares = ConnectionShares(LIMITS, lambda: None)

    def open(self, source: str, name: str = "", user: User = ANONYMOUS) -> Seat | None:
        seat = self.shares.admit(source, lambda: self.closed.append(name or source))
        if seat is not None:
            seat.recognize(user)
        return seat


def test_the_oldest_connection_without_a_user_makes_room() -> None:
    door = Connections()
    for number, source in enumerate("aaabccd"):
        door.open(source, f"{source}{number}")
    assert door.closed == ["a0", "a1"]
    assert door.shares.total == 5
    door.shares.shed()
    assert door.closed == ["a0", "a1", "a2"]


def test_no_number_of_users_and_strangers_refuses_an_administrator() -> None:
    door = Connections()
    for number in range(50):
        door.open(f"s{number}", user=User(f"u{number // 5}"))
        door.open(f"t{number}")
    seats = [door.open("admin", user=ADMINISTRATOR) for _ in range(6)]
    assert all(seat is not None and seat.owner for seat in seats)
    assert "admin" not in door.closed
    assert door.shares.total == 10
    # Only those with the same rights can take the reserve.
    assert door.open("admin", user=ADMINISTRATOR) is None


@pytest.mark.parametrize("users", [[USER] * 3, ACCOUNTS], ids=["one-user", "accounts-of-one-namespace"])
def test_a_user_has_a_share_and_his_further_connections_count_as_unknown(users: list[User]) -> None:
    door = Connections()
    seats = [door.open("a", user=user) for user in users]
    assert [bool(seat and seat.owner) for seat in seats] == [True, True, False]
    first, _, third = seats
    assert first is not None
    assert third is not None
    first.leave()
    third.recognize(users[2])
    assert third.owner
    first.leave()
    assert door.shares.total == 2


@pytest.mark.parametrize(
    ("user", "owner"),
    [
        (ADMINISTRATOR, SYSTEM),
        (User("system:federation:agent:east"), SYSTEM),
        (User(f"{SERVICE_ACCOUNT_PREFIX}kube-system:x"), SYSTEM),
        (USER, "user:u"),
        (ACCOUNTS[0], "system:serviceaccount:n"),
        (User("x", ("system:serviceaccounts",)), "user:x"),
    ],
)
def test_connections_count_against_their_owner(user: User, owner: str) -> None:
    assert to_owner(user) == owner


def test_unfinished_requests_share_a_budget_of_memory() -> None:
    door = Connections()
    seats = [door.open(name) for name in "abcd"]
    for seat, size in zip(seats, (10_000, 60_000, 30_000, 50_000), strict=True):
        assert seat is not None
        seat.hold(size)
    assert door.closed == ["b"], "the oldest that holds much"
    seats[2].hold(0)  # type: ignore[union-attr]
    seats[3].hold(80_000)  # type: ignore[union-attr]
    assert door.closed == ["b"]
    seats[3].recognize(USER)  # type: ignore[union-attr]
    seats[2].hold(90_000)  # type: ignore[union-attr]
    assert door.closed == ["b"], "a known connection does not count"


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"), st.sampled_from([ANONYMOUS, USER, ADMINISTRATOR, *ACCOUNTS]), st.integers(0, 9)
        ),
        max_size=60,
    )
)
def test_counts_are_those_of_the_connections_that_are_open(steps: list[tuple[str, User, int]]) -> None:
    door = Connections()
    seats: dict[str, Seat] = {}
    for number, (source, user, leaving) in enumerate(steps):
        seat = door.open(source, str(number), user)
        if seat is not None:
            seats[str(number)] = seat
            seat.hold(number * 1_000)
            seat.owe(number * 50)
        for name in door.closed:
            seats.pop(name, None)
        if len(seats) > leaving:
            seats.pop(list(seats)[leaving]).leave()
        assert door.shares.total == len(seats) <= LIMITS.total
    for seat in seats.values():
        seat.leave()
        assert not seat.owe(1)
    assert door.shares.total == 0
    door.closed.clear()
    for source in "abab":
        seat = door.open(source)
        assert seat is not None
        assert seat.owe(LIMITS.unsent.owner // 2)
    assert not door.closed, "nothing is left of the bytes of connections that have ended"


async def test_whatever_runs_until_a_signal_may_open_all_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = []

    async def work() -> None:
        limits.append(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert await until_signal(work()) == 0
        assert limits == [hard]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_of_open_files_is_raised_and_a_low_one_is_reported() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert raise_file_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "may open 1,024 files" in file_limit_problem(1024, 10_000)
    assert file_limit_problem(10_000, 10_000) == file_limit_problem(resource.RLIM_INFINITY, 10_000) == ""
