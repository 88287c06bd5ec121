"""The network in front of a simulated member: latency, errors, silence and broken connections."""

import asyncio

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apiserver.http.asgi import ABORT, Receive, Scope, Send
from federation.simulator.network import Network


class Connection:
    """One client: a request to an app that sends each event of `events`, behind the network."""

    def __init__(self, clock: ManualClock, network: Network) -> None:
        self.events = asyncio.Queue[bytes]()
        self.sent: list[tuple[float, bytes | int]] = []
        self.is_aborted = False
        self._clock = clock
        self._network = network

    def request(self) -> "asyncio.Task[None]":
        scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        scope["extensions"] = {ABORT: self._abort}
        return asyncio.ensure_future(self._serve(scope))

    async def _serve(self, scope: Scope) -> None:
        await self._network.wrap(self._app)(scope, self._receive, self._send)

    def _abort(self) -> None:
        self.is_aborted = True
        self.events.put_nowait(b"")

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        while event := await self.events.get():
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"end"})

    async def _receive(self) -> Scope:
        assert self.is_aborted, "the app reads no body"
        return {"type": "http.disconnect"}

    async def _send(self, message: Scope) -> None:
        self.sent.append((self._clock.monotonic(), message.get("status") or message["body"]))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def network(clock: ManualClock) -> Network:
    return Network(clock, seed="member-1")


@pytest.fixture
def connection(clock: ManualClock, network: Network) -> Connection:
    return Connection(clock, network)


async def test_latency_applies_to_responses_and_to_open_watches(
    clock: ManualClock, network: Network, connection: Connection
) -> None:
    watch = connection.request()
    connection.events.put_nowait(b"first")
    await clock.advance(0)
    assert connection.sent == [(0, b"first")]
    network.latency_s = 2
    connection.events.put_nowait(b"second")
    await clock.advance(0)
    await clock.advance(1)
    network.latency_s = 0
    await clock.advance(1)
    connection.events.put_nowait(b"")
    await clock.advance(0)
    assert connection.sent == [(0, b"first"), (2, b"second"), (2, b"end")]
    await watch

    network.latency_s = 3
    connection.events.put_nowait(b"")
    late = connection.request()
    await clock.advance(0)
    await clock.advance(3)
    assert connection.sent[-1] == (5, b"end")
    await late


async def test_a_frozen_network_delivers_after_it_thaws(
    clock: ManualClock, network: Network, connection: Connection
) -> None:
    watch = connection.request()
    await clock.advance(0)
    network.set_frozen(True)
    connection.events.put_nowait(b"late")
    await clock.advance(60)
    assert connection.sent == []
    network.set_frozen(False)
    await clock.advance(0)
    assert connection.sent == [(60, b"late")]
    watch.cancel()


async def test_a_cut_breaks_open_connections_and_later_requests_until_it_is_restored(
    clock: ManualClock, network: Network, connection: Connection
) -> None:
    watch = connection.request()
    await clock.advance(0)
    network.cut()
    await watch
    assert connection.is_aborted

    later = Connection(clock, network)
    await later.request()
    assert later.is_aborted
    assert later.sent == []

    network.restore()
    again = Connection(clock, network)
    again.events.put_nowait(b"")
    await again.request()
    assert again.sent == [(0, b"end")]


async def test_a_share_of_the_requests_fails_and_the_seed_decides_which(clock: ManualClock) -> None:
    async def failures(seed: str) -> list[bool]:
        network = Network(clock, seed=seed)
        network.error_share = 0.3
        answers = []
        for _ in range(200):
            connection = Connection(clock, network)
            connection.events.put_nowait(b"")
            await connection.request()
            answers.append(503 in [status for _, status in connection.sent])
        return answers

    first = await failures("member-1")
    assert 30 < sum(first) < 90
    assert first == await failures("member-1")
    assert first != await failures("member-2")
