"""API Priority and Fairness: seats, queues, flows and rejections."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from federation.apimachinery.errors import TooManyRequests
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.flowcontrol import Flow, FlowControl, FlowControlOptions
from federation.apiserver.http.prioritylevels import PriorityLevel

READ = Attributes("list", "", "v1", "pods")
WRITE = Attributes("create", "", "v1", "pods")
_WORKLOADS_OF_ALL = 245 / 120


def user(name: str, *groups: str) -> User:
    return User(name, (*groups, "system:authenticated"))


def flow_control(seats: int, *, percent: int = 100, **changes: float) -> FlowControl:
    """Return a FlowControl with this many seats for workloads."""
    options = FlowControlOptions(requests_max=int(seats * _WORKLOADS_OF_ALL), flow_percent_max=percent, **changes)  # type: ignore[arg-type]
    control = FlowControl(options)
    assert control._levels[PriorityLevel.WORKLOADS].seats == seats
    return control


async def settled() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def is_idle(control: FlowControl) -> bool:
    return all(
        not (level.executing or level.queued or level.flows or level.queues) for level in control._levels.values()
    )


async def test_requests_beyond_the_seats_queue_in_order() -> None:
    control = flow_control(2)
    order: list[int] = []
    flows: list[Flow | None] = []

    async def request(number: int) -> None:
        flows.append(await control.acquire(user("a"), READ))
        order.append(number)

    await request(0)
    await request(1)
    waiting = [asyncio.create_task(request(number)) for number in (2, 3)]
    await settled()
    assert order == [0, 1]
    control.release(flows[0])
    await waiting[0]
    assert order == [0, 1, 2]
    control.release(flows[0])
    await waiting[1]
    for flow in flows[2:]:
        control.release(flow)
    assert is_idle(control)


async def test_flows_are_served_round_robin_whatever_their_queue_lengths() -> None:
    control = flow_control(1)
    flow = await control.acquire(user("flood"), READ)
    order: list[str] = []

    async def request(name: str, attributes: Attributes = READ) -> None:
        own = await control.acquire(user(name), attributes)
        order.append(name if attributes is READ else f"{name}'s write")
        control.release(own)

    tasks = [asyncio.create_task(request("flood")) for _ in range(5)]
    await settled()
    tasks += [asyncio.create_task(request("late")), asyncio.create_task(request("flood", WRITE))]
    await settled()
    control.release(flow)
    await asyncio.gather(*tasks)
    assert order == ["flood", "late", "flood's write", "flood", "flood", "flood", "flood"]
    assert is_idle(control)


async def test_one_flow_never_holds_all_seats() -> None:
    control = flow_control(10, percent=40)
    flows = [await control.acquire(user("flood"), READ) for _ in range(4)]
    fifth = asyncio.create_task(control.acquire(user("flood"), READ))
    await settled()
    assert not fifth.done()
    others = [await control.acquire(user("flood"), WRITE), await control.acquire(user("b"), READ)]
    control.release(flows.pop())
    flows.append(await fifth)
    for flow in (*flows, *others):
        control.release(flow)
    assert is_idle(control)


async def test_priority_levels_are_independent_and_masters_never_queue() -> None:
    control = flow_control(1, wait_s_max=0)
    assert await control.acquire(user("a"), READ)
    with pytest.raises(TooManyRequests):
        await control.acquire(user("b"), READ)
    assert await control.acquire(user("system:kube-scheduler"), READ)
    assert await control.acquire(user("system:node:a", "system:nodes"), READ)
    for _ in range(10):
        assert await control.acquire(user("admin", "system:masters"), WRITE) is None


@pytest.mark.parametrize("limits", [{"level_waiting_max": 1}, {"flow_waiting_max": 1}])
async def test_a_full_queue_is_a_429_with_a_retry_time(limits: dict[str, int]) -> None:
    control = flow_control(1, **limits)
    before = REGISTRY.get_sample_value("federation_server_requests_rejected_total", {"level": "workloads"}) or 0
    await control.acquire(user("a"), READ)
    waiting = asyncio.create_task(control.acquire(user("a"), READ))
    await settled()
    with pytest.raises(TooManyRequests) as caught:
        await control.acquire(user("a"), READ)
    assert caught.value.details == {"retryAfterSeconds": 1}
    assert REGISTRY.get_sample_value("federation_server_requests_rejected_total", {"level": "workloads"}) == before + 1
    assert REGISTRY.get_sample_value("federation_server_requests_waiting", {"level": "workloads"}) == 1
    assert REGISTRY.get_sample_value("federation_server_requests_running", {"level": "workloads"}) == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_cancelled_request_leaves_the_queue() -> None:
    control = flow_control(1)
    flow = await control.acquire(user("a"), READ)
    first = asyncio.create_task(control.acquire(user("a"), READ))
    second = asyncio.create_task(control.acquire(user("b"), READ))
    await settled()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    control.release(flow)
    control.release(await second)
    assert is_idle(control)


async def test_a_seat_granted_to_a_request_that_is_cancelled_goes_to_the_next() -> None:
    control = flow_control(1)
    flow = await control.acquire(user("a"), READ)
    first = asyncio.create_task(control.acquire(user("a"), READ))
    second = asyncio.create_task(control.acquire(user("a"), READ))
    await settled()
    control.release(flow)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    control.release(await asyncio.wait_for(second, 1))
    assert is_idle(control)


async def test_a_seat_is_not_granted_to_a_cancelled_request() -> None:
    control = flow_control(1)
    flow = await control.acquire(user("a"), READ)
    first = asyncio.create_task(control.acquire(user("a"), READ))
    second = asyncio.create_task(control.acquire(user("a"), READ))
    await settled()
    first.cancel()
    control.release(flow)
    control.release(await asyncio.wait_for(second, 1))
    await asyncio.gather(first, return_exceptions=True)
    assert is_idle(control)


_STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from(["acquire", "release", "cancel"])), max_size=60
)


@given(_STEPS, st.integers(1, 4), st.sampled_from([40, 100]))
def test_seats_are_never_exceeded_and_no_request_queues_while_one_is_free(
    steps: list[tuple[str, bool, str]], seats: int, percent: int
) -> None:
    async def run() -> None:
        control = flow_control(seats, percent=percent)
        level = control._levels[PriorityLevel.WORKLOADS]
        tasks: list[asyncio.Task[Flow | None]] = []
        running: list[Flow | None] = []
        for name, is_write, step in steps:
            if step == "acquire":
                tasks.append(asyncio.create_task(control.acquire(user(name), WRITE if is_write else READ)))
            elif step == "release" and running:
                control.release(running.pop(0))
            elif step == "cancel" and tasks:
                tasks.pop(0).cancel()
            await settled()
            running += [task.result() for task in tasks if task.done() and not task.cancelled()]
            tasks = [task for task in tasks if not task.done()]
            assert level.executing == len(running) == sum(level.flows.values()) <= seats
            assert level.queued == len(tasks) == sum(len(queue) for queue in level.queues.values())
            assert all(count <= level.flow_seats for count in level.flows.values())
            assert level.next_flow() is None
        for flow in running:
            control.release(flow)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for flow in done:
            if isinstance(flow, Flow):
                control.release(flow)
        assert is_idle(control)

    asyncio.run(run())


def test_watches_are_counted_over_all_users_and_per_user() -> None:
    control = FlowControl(FlowControlOptions(watches_max=3, user_watches_max=1))
    control.open_watch(user("a"), READ)
    with pytest.raises(TooManyRequests):
        control.open_watch(user("a"), READ)
    for _ in range(2):
        control.open_watch(user("admin", "system:masters"), READ)
    with pytest.raises(TooManyRequests):
        control.open_watch(user("b"), READ)
    control.close_watch(user("a"))
    control.open_watch(user("b"), READ)
    assert control.watches == 3
    for name in ("admin", "admin", "b"):
        control.close_watch(user(name))
    assert control.watches == 0
    assert not control._user_watches
