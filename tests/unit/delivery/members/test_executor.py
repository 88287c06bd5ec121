"""The executor's limits, deadlines and use of the circuit breaker, on a virtual clock."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.support.member_world import Line
from tests.support.metrics import sample_of

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterError
from federation.apimachinery.resources import DEPLOYMENTS
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.breaker import BreakerOptions
from federation.client.client import Client
from federation.client.limitedtransport import TransportLimits
from federation.client.pool import ClusterPool, PoolOptions
from federation.delivery.members.executor import Executor, ExecutorOptions
from federation.delivery.members.operations import Outcome
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus

OK = Outcome(ClusterStatus.OK)


def key(cluster: str = "m1", name: str = "web") -> MemberKey:
    return MemberKey(cluster, DEPLOYMENTS, "default", name)


async def succeed(_: Any) -> Outcome:
    return OK


async def get(client: Client) -> Outcome:
    await client.raw("GET", "/version")
    return OK


async def hang(_: Any) -> Outcome:
    await asyncio.get_running_loop().create_future()
    return OK


class Setting:
    def __init__(self, *, breaker: BreakerOptions | None = None, **options: Any) -> None:
        self.clock = ManualClock()
        limits = TransportLimits(breaker=breaker or BreakerOptions())
        self.pool = ClusterPool(clock=self.clock, options=PoolOptions(limits=limits))
        self.line = Line(Registry(MemoryStore(clock=self.clock), clock=self.clock), self.clock)
        for cluster in ("m1", "m2"):
            self.pool.set_transport(cluster, self.line)
        self.recovered: list[Any] = []
        self.executor = Executor(
            self.pool, clock=self.clock, options=ExecutorOptions(**options), on_recovered=self.recovered.append
        )

    async def probe(self) -> None:
        """Probe the member's health, as the cluster controller does."""
        with suppress(ClusterError):
            await self.pool.client("m1").raw("GET", "/version")

    def submit(self, action: Callable[[Any], Any], cluster: str = "m1", name: str = "web") -> "asyncio.Future[Outcome]":
        return self.executor.submit(key(cluster, name), action, owner=(cluster, name))


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Setting]:
    setting = Setting(**options)
    task = asyncio.create_task(setting.executor.run())
    await asyncio.sleep(0)
    try:
        yield setting
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_an_operation_ends_with_its_outcome() -> None:
    async with running() as s:
        assert await s.submit(succeed) is OK
        assert not s.executor.is_pending(key())


async def test_an_operation_is_pending_until_its_result_is_recorded() -> None:
    """A reconcile that found neither would repeat the operation."""
    recorded: list[Outcome] = []
    gaps = 0
    async with running() as s:
        s.submit(succeed).add_done_callback(lambda future: recorded.append(future.result()))
        while not recorded:
            gaps += not s.executor.is_pending(key())
            await asyncio.sleep(0)
        assert not s.executor.is_pending(key())
    assert gaps == 0


async def test_operations_submitted_before_the_start_wait_for_it() -> None:
    setting = Setting()
    future = setting.submit(succeed)
    await asyncio.sleep(0)
    assert not future.done()
    task = asyncio.create_task(setting.executor.run())
    assert await future is OK
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_operations_on_one_object_never_overlap() -> None:
    async with running() as s:
        first, second = s.submit(hang), s.submit(succeed)
        assert first is second
        assert s.executor.is_pending(key())


async def test_the_limit_of_one_member_does_not_delay_another() -> None:
    async with running(in_flight_max=2) as s:
        held = [s.submit(hang, name=f"web-{n}") for n in range(3)]
        other = s.submit(succeed, cluster="m2")
        assert await other is OK
        await asyncio.sleep(0)
        assert not any(future.done() for future in held)


async def test_a_deadline_ends_an_operation_and_lets_the_next_one_in() -> None:
    async with running(in_flight_max=1, deadline_s=10.0) as s:
        late, waiting = s.submit(hang, name="a"), s.submit(succeed, name="b")
        await s.clock.advance(9.9)
        assert not late.done()
        await s.clock.advance(0.2)
        assert late.result().is_unanswered
        assert await waiting is OK


async def test_an_operation_past_its_deadline_is_cancelled() -> None:
    ended = asyncio.Event()

    async def hang_and_tell(client: Any) -> Outcome:
        try:
            return await hang(client)
        finally:
            ended.set()

    async with running(deadline_s=10.0) as s:
        late = s.submit(hang_and_tell)
        await s.clock.advance(10.1)
        assert late.result().is_unanswered
        await s.clock.advance(0)
        assert ended.is_set()


async def test_the_time_in_flight_is_measured() -> None:
    def measured_s() -> float:
        return sample_of("federation_dispatch_operation_seconds_sum", {"cluster": "m1"}) or 0.0

    async with running(deadline_s=10.0) as s:
        await s.clock.advance(5)
        before_s = measured_s()
        s.submit(hang)
        await s.clock.advance(10.1)
        assert measured_s() - before_s == pytest.approx(10.0, abs=0.2)


async def test_a_hanging_member_is_slow_and_an_idle_one_is_not() -> None:
    async with running(slow_after_s=0.5) as s:
        assert not s.executor.is_slow("m1")
        s.submit(hang)
        assert not s.executor.is_slow("m1")
        await s.clock.advance(0.6)
        assert s.executor.is_slow("m1")
        assert not s.executor.is_slow("m2")


async def test_a_member_that_answers_one_operation_after_the_other_is_not_slow() -> None:
    async with running(slow_after_s=0.5) as s:
        s.submit(hang)
        await s.clock.advance(0.4)
        assert await s.submit(succeed, name="other") is OK
        await s.clock.advance(0.4)
        assert not s.executor.is_slow("m1")
        await s.clock.advance(0.2)
        assert s.executor.is_slow("m1")


async def test_an_open_circuit_refuses_operations_and_notifies_their_owners_when_it_closes() -> None:
    async with running(breaker=BreakerOptions(failures_max=2, pause_s_min=1.0), deadline_s=1.0) as s:
        s.line.mode = "down"
        for number in range(2):
            s.submit(hang, name=f"web-{number}")
        await s.clock.advance(1.1)
        assert s.executor.is_slow("m1")
        refused = s.submit(succeed, name="refused")
        assert refused.done()
        assert refused.result().is_unanswered
        await s.clock.advance(0.5)
        await s.probe()
        assert s.executor.is_slow("m1"), "still down"
        s.line.mend()
        await s.clock.advance(3.0)
        await s.probe()
        assert not s.executor.is_slow("m1")
        assert ("m1", "refused") in s.recovered
        assert ("m1", "web-1") in s.recovered
        assert await s.submit(succeed) is OK


async def test_operations_that_wait_while_the_circuit_opens_fail_without_a_call() -> None:
    started: list[str] = []

    async def start(_: Client) -> Outcome:
        started.append("x")
        return OK

    async with running(breaker=BreakerOptions(failures_max=1), in_flight_max=1, deadline_s=1.0) as s:
        s.submit(hang, name="first")
        waiting = s.submit(start, name="waiting")
        await s.clock.advance(1.1)
        assert waiting.result().is_unanswered
        assert started == []


async def test_an_open_circuit_admits_one_operation_as_a_probe_after_its_pause() -> None:
    async with running(breaker=BreakerOptions(failures_max=1, pause_s_min=1.0), deadline_s=1.0) as s:
        s.submit(hang)
        await s.clock.advance(1.1)
        assert s.submit(get, name="early").result().is_unanswered
        await s.clock.advance(1.1)
        assert await s.submit(get, name="probe") is OK
        assert ("m1", "early") in s.recovered


async def test_an_answer_between_failures_keeps_the_circuit_closed() -> None:
    async with running(breaker=BreakerOptions(failures_max=2), deadline_s=1.0) as s:
        for number in range(4):
            s.submit(hang, name=f"web-{number}")
            await s.clock.advance(1.1)
            await s.submit(get, name=f"fine-{number}")
        assert not s.executor.is_slow("m1")


async def test_a_waiting_operation_whose_future_is_cancelled_does_not_start() -> None:
    started: list[str] = []

    async def start(_: Client) -> Outcome:
        started.append("x")
        return OK

    async with running(in_flight_max=1, deadline_s=1.0) as s:
        s.submit(hang, name="first")
        cancelled, waiting = s.submit(start, name="cancelled"), s.submit(succeed, name="waiting")
        cancelled.cancel()
        await s.clock.advance(1.1)
        assert await waiting is OK
        assert started == []


async def test_a_cluster_without_a_client_fails_its_operations() -> None:
    async with running() as s:
        assert (await s.submit(succeed, cluster="unknown")).status is ClusterStatus.CLIENT_RETRIEVAL_FAILED


async def test_a_bug_in_an_operation_is_raised_by_its_future() -> None:
    async def fail(_: Client) -> Outcome:
        raise KeyError("a bug")

    async with running() as s:
        with pytest.raises(KeyError):
            await s.submit(fail)
        assert await s.submit(succeed) is OK


async def test_a_full_queue_refuses_operations() -> None:
    async with running(in_flight_max=1, queue_length_max=1) as s:
        s.submit(hang, name="a")
        s.submit(hang, name="b")
        assert s.submit(hang, name="c").result().is_unanswered


async def test_operations_of_a_removed_cluster_fail() -> None:
    async with running(in_flight_max=1) as s:
        running_, waiting = s.submit(hang, name="a"), s.submit(hang, name="b")
        s.executor.end_cluster("m1")
        assert running_.result().is_unanswered
        assert waiting.result().is_unanswered
        assert await s.submit(succeed) is OK


async def test_nothing_starts_after_the_end_until_it_runs_again() -> None:
    setting = Setting()
    running_ = asyncio.create_task(setting.executor.run())
    await asyncio.sleep(0)
    assert await setting.submit(succeed) == OK
    running_.cancel()
    await asyncio.gather(running_, return_exceptions=True)
    waiting = setting.submit(succeed)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    running_ = asyncio.create_task(setting.executor.run())
    assert await waiting == OK
    running_.cancel()
    await asyncio.gather(running_, return_exceptions=True)
