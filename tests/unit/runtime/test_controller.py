"""What each outcome of a reconcile means."""

import asyncio

import pytest
import structlog

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Bug, ClusterUnreachable, Conflict, Forbidden, TooManyRequests
from federation.runtime.controller import DONE, Controller, ControllerOptions, Key, Result, key_of
from federation.runtime.workqueue import QueueOptions


class Reconciler:
    """Returns prepared results in order and records the keys."""

    def __init__(self, clock: ManualClock, *outcomes: Result | Exception) -> None:
        self._clock = clock
        self.outcomes = list(outcomes)
        self.asked: list[tuple[float, str]] = []

    async def __call__(self, key: str) -> Result:
        self.asked.append((round(self._clock.monotonic(), 3), key))
        outcome = self.outcomes.pop(0) if self.outcomes else DONE
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def a_controller(clock: ManualClock, reconcile, *, workers: int = 2, **options) -> Controller[str]:
    made = ControllerOptions(queue=QueueOptions(backoff_s_min=1.0), **options)
    return Controller("test", reconcile, workers=workers, clock=clock, options=made, jitter=lambda: 1.0)


@pytest.fixture
def logs():
    with structlog.testing.capture_logs() as entries:
        yield entries


async def test_a_key_is_reconciled_once_and_then_the_controller_is_idle(clock, start) -> None:
    reconcile = Reconciler(clock)
    controller = a_controller(clock, reconcile)
    controller.enqueue("a")
    controller.enqueue("a")
    start(controller.run())
    await controller.wait_idle()
    assert reconcile.asked == [(0, "a")]


async def test_a_result_can_requeue_its_key(clock, start, settle) -> None:
    reconcile = Reconciler(clock, Result(requeue_after_s=10))
    controller = a_controller(clock, reconcile)
    start(controller.run())
    controller.enqueue("a")
    await settle()
    await clock.advance(30)
    assert reconcile.asked == [(0, "a"), (10, "a")]


async def test_failures_back_off_and_success_resets_the_back_off(clock, start, settle) -> None:
    gone = ClusterUnreachable("no route")
    reconcile = Reconciler(clock, gone, gone, gone, DONE, gone, DONE)
    controller = a_controller(clock, reconcile)
    start(controller.run())
    controller.enqueue("a")
    await settle()
    await clock.advance(20)
    controller.enqueue("a")
    await settle()
    await clock.advance(20)
    assert [at for at, _ in reconcile.asked] == [0, 1, 3, 7, 20, 21]


async def test_a_conflict_is_retried_soon_and_silently(clock, start, settle, logs) -> None:
    reconcile = Reconciler(clock, *(Conflict("changed") for _ in range(6)))
    controller = a_controller(clock, reconcile, conflict_backoff_s_max=0.5)
    start(controller.run())
    controller.enqueue("a")
    await settle()
    await clock.advance(5)
    assert [at for at, _ in reconcile.asked] == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    assert not [entry for entry in logs if entry["log_level"] != "debug"]


async def test_a_retryable_error_is_logged_in_one_line_without_trace(clock, start, settle, logs) -> None:
    controller = a_controller(clock, Reconciler(clock, ClusterUnreachable("no route")))
    start(controller.run())
    controller.enqueue("a")
    await settle()
    (line,) = [entry for entry in logs if entry["log_level"] != "debug"]
    assert (line["log_level"], line["controller"], line["key"], line["error"]) == ("info", "test", "a", "no route")
    assert "exc_info" not in line


async def test_a_bug_is_logged_with_its_trace_and_retried(clock, start, settle, logs) -> None:
    reconcile = Reconciler(clock, Bug("impossible"), DONE)
    controller = a_controller(clock, reconcile)
    start(controller.run())
    controller.enqueue("a")
    await settle()
    await clock.advance(2)
    (line,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert isinstance(line["exc_info"], Bug)
    assert [at for at, _ in reconcile.asked] == [0, 1]


async def test_a_refusal_is_logged_in_one_line(clock, start, settle, logs) -> None:
    controller = a_controller(clock, Reconciler(clock, Forbidden("no")))
    start(controller.run())
    controller.enqueue("a")
    await settle()
    (line,) = [entry for entry in logs if entry["log_level"] == "info"]
    assert line["outcome"] == "failed"


async def test_the_retry_delay_of_a_server_is_respected(clock, start, settle) -> None:
    reconcile = Reconciler(clock, TooManyRequests("slow down", details={"retryAfterSeconds": 9}))
    controller = a_controller(clock, reconcile)
    start(controller.run())
    controller.enqueue("a")
    await settle()
    await clock.advance(20)
    assert [at for at, _ in reconcile.asked] == [0, 9]


async def test_a_reconcile_is_cancelled_at_its_deadline_and_retried(clock, start, settle) -> None:
    began: list[float] = []

    async def hang(key: str) -> Result:
        began.append(clock.monotonic())
        await asyncio.Event().wait()
        return DONE

    controller = a_controller(clock, hang, workers=1, reconcile_timeout_s=30)
    start(controller.run())
    controller.enqueue("a")
    await settle()
    await clock.advance(29)
    assert controller.active == 1
    await clock.advance(63)
    assert began == [0, 31, 63]


async def test_only_the_late_reconcile_is_cancelled(clock, start, settle) -> None:
    ended: list[str] = []

    async def slow(key: str) -> Result:
        await clock.sleep(25 if key != "hangs" else 1000)
        ended.append(key)
        return DONE

    controller = a_controller(clock, slow, workers=2, reconcile_timeout_s=30)
    start(controller.run())
    controller.enqueue("hangs")
    await settle()
    await clock.advance(20)
    controller.enqueue("late")
    await settle()
    await clock.advance(30)
    assert ended == ["late"]


async def test_one_key_never_runs_twice_at_once_and_keys_run_side_by_side(clock, start, settle) -> None:
    running: set[str] = set()
    most = 0

    async def work(key: str) -> Result:
        nonlocal most
        assert key not in running
        running.add(key)
        most = max(most, len(running))
        await clock.sleep(1)
        running.discard(key)
        return DONE

    controller = a_controller(clock, work, workers=3)
    start(controller.run())
    for number in range(6):
        controller.enqueue(f"k{number % 4}")
        controller.enqueue("k0")
    await settle()
    controller.enqueue("k0")
    await clock.advance(5)
    assert most == 3
    assert controller.queue.is_idle


async def test_cancellation_ends_running_reconciles_and_the_controller(clock, start, settle) -> None:
    ended = []

    async def work(key: str) -> Result:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(key)
        return DONE

    controller = a_controller(clock, work)
    task = start(controller.run())
    controller.enqueue("a")
    await settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["a"]


async def test_keys_that_a_full_queue_refused_are_listed_again(clock, start, settle) -> None:
    seen = []

    async def work(key: str) -> Result:
        seen.append(key)
        return DONE

    everything = [f"k{number}" for number in range(3)]
    options = ControllerOptions(queue=QueueOptions(depth_max=3))
    controller = Controller("full", work, clock=clock, options=options, resync=lambda: everything)
    for number in range(5):
        controller.enqueue(f"k{number}")
    start(controller.run())
    await settle()
    assert sorted(seen) == sorted([*everything, *everything])


def test_keys_print_as_namespace_and_name() -> None:
    assert str(Key("shop", "web")) == "shop/web"
    assert str(Key("", "member-1")) == "member-1"
    assert key_of({"metadata": {"name": "web", "namespace": "shop"}}) == Key("shop", "web")
    assert key_of({"metadata": {"name": "member-1"}}) == Key("", "member-1")
