"""Seats, turns and refusals."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from federation.base.errors import TooManyRequests
from federation.server.identity import Attributes, User
from federation.server.limits import Flow, Limiter, LimitOptions
from federation.server.priority import Level

READ = Attributes("list", "", "v1", "pods")
WRITE = Attributes("create", "", "v1", "pods")
_WORKLOADS_OF_ALL = 245 / 120


def user(name: str, *groups: str) -> User:
    return User(name, (*groups, "system:authenticated"))


def limiter(seats: int, *, percent: int = 100, **changes: float) -> Limiter:
    """Return a limiter with so many seats for workloads."""
    options = LimitOptions(requests_max=int(seats * _WORKLOADS_OF_ALL), flow_percent_max=percent, **changes)  # type: ignore[arg-type]
    held = Limiter(options)
    assert held._levels[Level.WORKLOADS].seats == seats
    return held


async def settled() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def is_idle(held: Limiter) -> bool:
    return all(not (level.running or level.waiting or level.flows or level.queues) for level in held._levels.values())


async def test_requests_beyond_the_seats_wait_in_turn() -> None:
    held = limiter(2)
    order: list[int] = []
    flows: list[Flow | None] = []

    async def request(number: int) -> None:
        flows.append(await held.enter(user("a"), READ))
        order.append(number)

    await request(0)
    await request(1)
    waiting = [asyncio.create_task(request(number)) for number in (2, 3)]
    await settled()
    assert order == [0, 1]
    held.leave(flows[0])
    await waiting[0]
    assert order == [0, 1, 2]
    held.leave(flows[0])
    await waiting[1]
    for flow in flows[2:]:
        held.leave(flow)
    assert is_idle(held)


async def test_users_take_turns_however_many_requests_each_has_waiting() -> None:
    held = limiter(1)
    flow = await held.enter(user("flood"), READ)
    order: list[str] = []

    async def request(name: str, attributes: Attributes = READ) -> None:
        own = await held.enter(user(name), attributes)
        order.append(name if attributes is READ else f"{name}'s write")
        held.leave(own)

    tasks = [asyncio.create_task(request("flood")) for _ in range(5)]
    await settled()
    tasks += [asyncio.create_task(request("late")), asyncio.create_task(request("flood", WRITE))]
    await settled()
    held.leave(flow)
    await asyncio.gather(*tasks)
    assert order == ["flood", "late", "flood's write", "flood", "flood", "flood", "flood"]
    assert is_idle(held)


async def test_one_flow_never_holds_all_seats() -> None:
    held = limiter(10, percent=40)
    flows = [await held.enter(user("flood"), READ) for _ in range(4)]
    fifth = asyncio.create_task(held.enter(user("flood"), READ))
    await settled()
    assert not fifth.done()
    others = [await held.enter(user("flood"), WRITE), await held.enter(user("b"), READ)]
    held.leave(flows.pop())
    flows.append(await fifth)
    for flow in (*flows, *others):
        held.leave(flow)
    assert is_idle(held)


async def test_levels_do_not_disturb_each_other_and_masters_never_wait() -> None:
    held = limiter(1, wait_s_max=0)
    assert await held.enter(user("a"), READ)
    with pytest.raises(TooManyRequests):
        await held.enter(user("b"), READ)
    assert await held.enter(user("system:kube-scheduler"), READ)
    assert await held.enter(user("system:node:a", "system:nodes"), READ)
    for _ in range(10):
        assert await held.enter(user("admin", "system:masters"), WRITE) is None


@pytest.mark.parametrize("limits", [{"level_waiting_max": 1}, {"flow_waiting_max": 1}])
async def test_too_many_waiting_get_a_429_with_a_time_to_come_back(limits: dict[str, int]) -> None:
    held = limiter(1, **limits)
    before = REGISTRY.get_sample_value("federation_server_requests_rejected_total", {"level": "workloads"}) or 0
    await held.enter(user("a"), READ)
    waiting = asyncio.create_task(held.enter(user("a"), READ))
    await settled()
    with pytest.raises(TooManyRequests) as caught:
        await held.enter(user("a"), READ)
    assert caught.value.details == {"retryAfterSeconds": 1}
    assert REGISTRY.get_sample_value("federation_server_requests_rejected_total", {"level": "workloads"}) == before + 1
    assert REGISTRY.get_sample_value("federation_server_requests_waiting", {"level": "workloads"}) == 1
    assert REGISTRY.get_sample_value("federation_server_requests_running", {"level": "workloads"}) == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_who_gives_up_waiting_leaves_no_trace() -> None:
    held = limiter(1)
    flow = await held.enter(user("a"), READ)
    first = asyncio.create_task(held.enter(user("a"), READ))
    second = asyncio.create_task(held.enter(user("b"), READ))
    await settled()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    held.leave(flow)
    held.leave(await second)
    assert is_idle(held)


async def test_a_seat_given_to_someone_who_just_left_goes_to_the_next() -> None:
    held = limiter(1)
    flow = await held.enter(user("a"), READ)
    first = asyncio.create_task(held.enter(user("a"), READ))
    second = asyncio.create_task(held.enter(user("a"), READ))
    await settled()
    held.leave(flow)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    held.leave(await asyncio.wait_for(second, 1))
    assert is_idle(held)


async def test_a_seat_is_not_given_to_someone_who_left_a_moment_before() -> None:
    held = limiter(1)
    flow = await held.enter(user("a"), READ)
    first = asyncio.create_task(held.enter(user("a"), READ))
    second = asyncio.create_task(held.enter(user("a"), READ))
    await settled()
    first.cancel()
    held.leave(flow)
    held.leave(await asyncio.wait_for(second, 1))
    await asyncio.gather(first, return_exceptions=True)
    assert is_idle(held)


_STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.sampled_from(["enter", "leave", "cancel"])), max_size=60
)


@given(_STEPS, st.integers(1, 4), st.sampled_from([40, 100]))
def test_seats_are_never_overdrawn_and_nobody_waits_while_one_is_free(
    steps: list[tuple[str, bool, str]], seats: int, percent: int
) -> None:
    async def run() -> None:
        held = limiter(seats, percent=percent)
        level = held._levels[Level.WORKLOADS]
        tasks: list[asyncio.Task[Flow | None]] = []
        running: list[Flow | None] = []
        for name, is_write, step in steps:
            if step == "enter":
                tasks.append(asyncio.create_task(held.enter(user(name), WRITE if is_write else READ)))
            elif step == "leave" and running:
                held.leave(running.pop(0))
            elif step == "cancel" and tasks:
                tasks.pop(0).cancel()
            await settled()
            running += [task.result() for task in tasks if task.done() and not task.cancelled()]
            tasks = [task for task in tasks if not task.done()]
            assert level.running == len(running) == sum(level.flows.values()) <= seats
            assert level.waiting == len(tasks) == sum(len(queue) for queue in level.queues.values())
            assert all(count <= level.flow_seats for count in level.flows.values())
            assert level.next_flow() is None
        for flow in running:
            held.leave(flow)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for flow in done:
            if isinstance(flow, Flow):
                held.leave(flow)
        assert is_idle(held)

    asyncio.run(run())


def test_watches_are_counted_over_all_users_and_per_user() -> None:
    held = Limiter(LimitOptions(watches_max=3, user_watches_max=1))
    held.open_watch(user("a"), READ)
    with pytest.raises(TooManyRequests):
        held.open_watch(user("a"), READ)
    for _ in range(2):
        held.open_watch(user("admin", "system:masters"), READ)
    with pytest.raises(TooManyRequests):
        held.open_watch(user("b"), READ)
    held.close_watch(user("a"))
    held.open_watch(user("b"), READ)
    assert held.watches == 3
    for name in ("admin", "admin", "b"):
        held.close_watch(user(name))
    assert held.watches == 0
    assert not held._watches
