"""One cluster's limits: slots, the circuit breaker, and a replaceable inner transport."""

import asyncio
from typing import Any

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterUnreachable, NotFound, RequestTimeout, RequestWithdrawn
from federation.apimachinery.resources import NAMESPACES, Object
from federation.client.breaker import Breaker, BreakerOptions, Circuit
from federation.client.client import Client, PatchType, Request, Watch
from federation.client.limitedtransport import LimitedTransport, TransportLimits

DOWN = ClusterUnreachable("no route")


class Scripted:
    """A transport whose calls end as the test says; while `gate` is closed they wait."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_closed = False

    async def _call(self, name: str) -> None:
        self.calls.append(name)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def request(self, request: Request) -> Object:
        await self._call(request.verb)
        return {"from": id(self)}

    async def raw(self, *arguments: Any) -> tuple[int, bytes]:
        await self._call("raw")
        return 200, b"ok"

    async def stream(self, request: Request) -> Watch:
        await self._call("watch")
        yield []

    async def close(self) -> None:
        self.is_closed = True


class Guarded(Client):
    """A client over a guarded transport."""

    transport: LimitedTransport

    @property
    def breaker(self) -> Breaker:
        return self.transport.breaker


@pytest.fixture
def inner() -> Scripted:
    return Scripted()


def guarded(inner: Scripted, clock: ManualClock, **options: Any) -> Guarded:
    breaker = BreakerOptions(failures_max=3, pause_s_min=10, pause_s_max=40)
    return Guarded(LimitedTransport("m1", inner, clock=clock, options=TransportLimits(breaker=breaker, **options)))


async def fail(client: Guarded, times: int) -> None:
    for _ in range(times):
        with pytest.raises(ClusterUnreachable):
            await client.get(NAMESPACES, "x")


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def test_every_verb_reaches_the_inner_transport(inner, clock) -> None:
    client = guarded(inner, clock)
    obj = {"metadata": {"name": "x"}}
    await client.get(NAMESPACES, "x")
    await client.list(NAMESPACES)
    await client.create(NAMESPACES, obj)
    await client.update(NAMESPACES, obj)
    await client.patch(NAMESPACES, "x", {}, patch_type=PatchType.MERGE)
    await client.delete(NAMESPACES, "x")
    assert [batch async for batch in client.watch(NAMESPACES, resource_version="1")] == [[]]
    assert await client.raw("GET", "/healthz") == (200, b"ok")
    assert inner.calls == ["get", "list", "create", "update", "patch", "delete", "watch", "raw"]
    await client.close()
    assert inner.is_closed


async def test_an_open_circuit_refuses_calls(inner, clock) -> None:
    client = guarded(inner, clock)
    inner.failure = DOWN
    await fail(client, 3)
    with pytest.raises(ClusterUnreachable, match="cluster m1 does not answer; it is left alone"):
        await client.get(NAMESPACES, "x")
    with pytest.raises(ClusterUnreachable, match="does not answer"):
        async for _ in client.watch(NAMESPACES, resource_version="1"):
            pass
    assert len(inner.calls) == 3


async def test_one_successful_probe_closes_the_circuit(inner, clock) -> None:
    recovered: list[str] = []
    client = guarded(inner, clock)
    client.transport.on_recovered(recovered.append)
    inner.failure = DOWN
    await fail(client, 3)
    await clock.advance(11)
    inner.gate.clear()
    probe = asyncio.ensure_future(client.get(NAMESPACES, "x"))
    await settle()
    with pytest.raises(ClusterUnreachable, match="does not answer"):
        await client.get(NAMESPACES, "x")
    inner.failure = None
    inner.gate.set()
    await probe
    assert recovered == ["m1"]
    await client.get(NAMESPACES, "x")
    assert len(inner.calls) == 5


async def test_a_failed_probe_doubles_the_pause(inner, clock) -> None:
    client = guarded(inner, clock)
    inner.failure = DOWN
    await fail(client, 3)
    for pause_s in (10, 20, 40, 40):
        await clock.advance(pause_s + 0.1)
        before = len(inner.calls)
        await fail(client, 2)
        assert len(inner.calls) == before + 1


async def test_an_api_error_counts_as_a_response(inner, clock) -> None:
    client = guarded(inner, clock)
    for failure in (DOWN, DOWN, NotFound("x"), DOWN, DOWN):
        inner.failure = failure
        with pytest.raises(type(failure)):
            await client.get(NAMESPACES, "x")
    assert client.breaker.state is Circuit.CLOSED


async def test_raw_bypasses_and_closes_an_open_circuit(inner, clock) -> None:
    client = guarded(inner, clock)
    inner.failure = DOWN
    await fail(client, 3)
    with pytest.raises(ClusterUnreachable, match="no route"):
        await client.raw("GET", "/healthz")
    inner.failure = None
    assert await client.raw("GET", "/healthz") == (200, b"ok")
    await client.get(NAMESPACES, "x")


async def test_calls_wait_for_a_slot_with_a_timeout(inner, clock) -> None:
    client = guarded(inner, clock, in_flight_max=2, slot_timeout_s=5)
    inner.gate.clear()
    calls = [asyncio.ensure_future(client.get(NAMESPACES, "x")) for _ in range(4)]
    await settle()
    assert len(inner.calls) == 2
    calls[2].cancel()
    await clock.advance(6)
    with pytest.raises(RequestTimeout, match="no free slot of 2"):
        await calls[3]
    inner.gate.set()
    await asyncio.gather(*calls[:2])
    await asyncio.gather(*(client.get(NAMESPACES, "x") for _ in range(5)))
    assert len(inner.calls) == 7


async def test_a_deletion_that_is_not_wanted_any_more_when_it_has_a_slot_is_not_sent(inner, clock) -> None:
    client = guarded(inner, clock, in_flight_max=1)
    inner.gate.clear()
    busy = asyncio.ensure_future(client.get(NAMESPACES, "x"))
    await settle()
    answers = [True]
    waiting = [asyncio.ensure_future(client.delete(NAMESPACES, "x", is_wanted=lambda: answers[0])) for _ in range(2)]
    await settle()
    inner.gate.set()
    await waiting[0]
    answers[0] = False
    with pytest.raises(RequestWithdrawn):
        await client.delete(NAMESPACES, "x", is_wanted=lambda: answers[0])
    await asyncio.gather(busy, waiting[1], return_exceptions=True)
    assert inner.calls == ["get", "delete"]
    assert client.breaker.state is Circuit.CLOSED
    await client.get(NAMESPACES, "x")  # its slot is free again


async def test_calls_that_waited_for_a_slot_fail_when_the_circuit_opened(inner, clock) -> None:
    client = guarded(inner, clock, in_flight_max=3)
    inner.gate.clear()
    inner.failure = DOWN
    calls = [asyncio.ensure_future(client.get(NAMESPACES, "x")) for _ in range(10)]
    await settle()
    inner.gate.set()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(result, ClusterUnreachable) for result in results)
    assert len(inner.calls) <= 5
    inner.failure = None
    await clock.advance(11)
    await client.get(NAMESPACES, "x")
    await asyncio.gather(*(client.get(NAMESPACES, "x") for _ in range(3)))


async def test_a_replaced_transport_starts_with_a_closed_circuit(inner, clock) -> None:
    client = guarded(inner, clock)
    inner.failure = DOWN
    await fail(client, 3)
    other = Scripted()
    assert client.transport.replace(other) is inner
    assert await client.get(NAMESPACES, "x") == {"from": id(other)}


def test_a_circuit_without_failures_in_a_row_stays_closed(clock) -> None:
    breaker = Breaker(clock, BreakerOptions(failures_max=2))
    for _ in range(5):
        breaker.record_failure()
        breaker.record_success()
    assert breaker.try_acquire()


async def test_a_failed_watch_counts_as_a_failure(inner, clock) -> None:
    client = guarded(inner, clock)
    inner.failure = DOWN
    for _ in range(3):
        with pytest.raises(ClusterUnreachable, match="no route"):
            await anext(client.watch(NAMESPACES, resource_version="1"))
    assert client.breaker.state is Circuit.OPEN
