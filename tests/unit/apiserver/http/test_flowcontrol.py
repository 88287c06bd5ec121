"""API Priority and Fairness: seats, queues, flows and rejections."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.metrics import sample_of

from federation.apimachinery.errors import TooManyRequests
from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.flowcontrol import Flow, FlowControl, FlowControlOptions

READ = Attributes("list", "", "v1", "pods")
WRITE = Attributes("create", "", "v1", "pods")
_WORKLOADS_OF_ALL = 245 / 120


def user(name: str, *groups: str) -> User:
    return User(name, (*groups, "system:authenticated"))


def flow_control(seats: int, *, percent: int = 100, **changes: float) -> FlowControl:
    """Return a FlowControl with this many seats for workloads."""
    options = FlowControlOptions(requests_max=int(seats * _WORKLOADS_OF_ALL), flow_percent_max=percent, **changes)  # type: ignore[arg-type]
    control = FlowControl(options)
    assert control._levels["workloads"].seats == seats
    return control


async def acquire(control: FlowControl, user: User, attributes: Attributes) -> Flow | None:
    flow, _ = control.classify(user, attributes)
    await control.acquire(flow)
    return flow


def open_watch(control: FlowControl, user: User) -> None:
    control.open_watch(user, control.classify(user, READ).flow)


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
        flows.append(await acquire(control, user("a"), READ))
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
    flow = await acquire(control, user("flood"), READ)
    order: list[str] = []

    async def request(name: str, attributes: Attributes = READ) -> None:
        own = await acquire(control, user(name), attributes)
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
    flows = [await acquire(control, user("flood"), READ) for _ in range(4)]
    fifth = asyncio.create_task(acquire(control, user("flood"), READ))
    await settled()
    assert not fifth.done()
    others = [await acquire(control, user("flood"), WRITE), await acquire(control, user("b"), READ)]
    control.release(flows.pop())
    flows.append(await fifth)
    for flow in (*flows, *others):
        control.release(flow)
    assert is_idle(control)


async def test_priority_levels_are_independent_and_masters_never_queue() -> None:
    control = flow_control(1, wait_s_max=0)
    assert await acquire(control, user("a"), READ)
    with pytest.raises(TooManyRequests):
        await acquire(control, user("b"), READ)
    assert await acquire(control, user("system:kube-scheduler"), READ)
    assert await acquire(control, user("system:node:a", "system:nodes"), READ)
    for _ in range(10):
        assert await acquire(control, user("admin", "system:masters"), WRITE) is None


@pytest.mark.parametrize("limits", [{"level_waiting_max": 1}, {"flow_waiting_max": 1}])
async def test_a_full_queue_is_a_429_with_a_retry_time(limits: dict[str, int]) -> None:
    control = flow_control(1, **limits)
    before = sample_of("federation_server_requests_rejected_total", {"level": "workloads"}) or 0
    await acquire(control, user("a"), READ)
    waiting = asyncio.create_task(acquire(control, user("a"), READ))
    await settled()
    with pytest.raises(TooManyRequests) as caught:
        await acquire(control, user("a"), READ)
    assert caught.value.details == {"retryAfterSeconds": 1}
    assert sample_of("federation_server_requests_rejected_total", {"level": "workloads"}) == before + 1
    assert sample_of("federation_server_requests_waiting", {"level": "workloads"}) == 1
    assert sample_of("federation_server_requests_running", {"level": "workloads"}) == 1
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def test_a_cancelled_request_leaves_the_queue() -> None:
    control = flow_control(1)
    flow = await acquire(control, user("a"), READ)
    first = asyncio.create_task(acquire(control, user("a"), READ))
    second = asyncio.create_task(acquire(control, user("b"), READ))
    await settled()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    control.release(flow)
    control.release(await second)
    assert is_idle(control)


async def test_a_seat_granted_to_a_request_that_is_cancelled_goes_to_the_next() -> None:
    control = flow_control(1)
    flow = await acquire(control, user("a"), READ)
    first = asyncio.create_task(acquire(control, user("a"), READ))
    second = asyncio.create_task(acquire(control, user("a"), READ))
    await settled()
    control.release(flow)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    control.release(await asyncio.wait_for(second, 60))
    assert is_idle(control)


async def test_a_seat_is_not_granted_to_a_cancelled_request() -> None:
    control = flow_control(1)
    flow = await acquire(control, user("a"), READ)
    first = asyncio.create_task(acquire(control, user("a"), READ))
    second = asyncio.create_task(acquire(control, user("a"), READ))
    await settled()
    first.cancel()
    control.release(flow)
    control.release(await asyncio.wait_for(second, 60))
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
        level = control._levels["workloads"]
        tasks: list[asyncio.Task[Flow | None]] = []
        running: list[Flow | None] = []
        for name, is_write, step in steps:
            if step == "acquire":
                tasks.append(asyncio.create_task(acquire(control, user(name), WRITE if is_write else READ)))
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
    open_watch(control, user("a"))
    with pytest.raises(TooManyRequests):
        open_watch(control, user("a"))
    for _ in range(2):
        open_watch(control, user("admin", "system:masters"))
    with pytest.raises(TooManyRequests):
        open_watch(control, user("b"))
    control.close_watch(user("a"))
    open_watch(control, user("b"))
    assert control.watches == 3
    for name in ("admin", "admin", "b"):
        control.close_watch(user(name))
    assert control.watches == 0
    assert not control._user_watches


def a_level(name: str, shares: int, response: str = "Queue") -> Object:
    limited = {"nominalConcurrencyShares": shares, "limitResponse": {"type": response}}
    return {"metadata": {"name": name, "uid": f"uid-of-{name}"}, "spec": {"type": "Limited", "limited": limited}}


def a_schema(level: str) -> Object:
    subject = {"kind": "Group", "group": {"name": "*"}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    spec = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": 2,
        "rules": [{"subjects": [subject], "resourceRules": [everything]}],
    }
    return {"metadata": {"name": "mine", "uid": "uid-of-mine"}, "spec": spec}


async def test_new_objects_divide_the_seats_at_once() -> None:
    control = FlowControl(FlowControlOptions(requests_max=10, flow_percent_max=100))
    control.configure([a_schema("mine")], [a_level("mine", 5)])
    seats = {name: state.seats for name, state in control._levels.items()}
    assert seats == {"mine": 5, "catch-all": 5}
    assert sample_of("apiserver_flowcontrol_nominal_limit_seats", {"priority_level": "mine"}) == 5
    assert dict(control.classify(user("a"), READ).headers) == {
        b"x-kubernetes-pf-flowschema-uid": b"uid-of-mine",
        b"x-kubernetes-pf-prioritylevel-uid": b"uid-of-mine",
    }


async def test_queued_requests_get_the_seats_that_a_change_adds() -> None:
    control = FlowControl(FlowControlOptions(requests_max=10, flow_percent_max=100))
    control.configure([a_schema("mine")], [a_level("mine", 0)])
    waiting = asyncio.create_task(acquire(control, user("a"), READ))
    await settled()
    assert not waiting.done()
    control.configure([a_schema("mine")], [a_level("mine", 5)])
    control.release(await asyncio.wait_for(waiting, 60))
    assert is_idle(control)


async def test_a_removed_level_is_forgotten_after_its_last_request() -> None:
    control = FlowControl(FlowControlOptions())
    control.configure([a_schema("mine")], [a_level("mine", 5)])
    flow = await acquire(control, user("a"), READ)
    control.configure([], [])
    assert "mine" in control._levels
    control.release(flow)
    control.configure([], [])
    assert list(control._levels) == ["catch-all"]
    labels = {"priority_level": "mine"}
    assert sample_of("apiserver_flowcontrol_nominal_limit_seats", labels) is None


async def test_a_level_that_rejects_has_no_queue() -> None:
    control = FlowControl(FlowControlOptions(requests_max=2))
    control.configure([a_schema("mine")], [a_level("mine", 995, "Reject")])
    flows = [await acquire(control, user("a"), READ) for _ in range(2)]
    with pytest.raises(TooManyRequests):
        await acquire(control, user("b"), READ)
    for flow in flows:
        control.release(flow)
    assert is_idle(control)


def test_the_cache_of_classifications_is_bounded() -> None:
    control = FlowControl(FlowControlOptions())
    for number in range(5000):
        control.classify(user(f"user-{number}"), READ)
    assert len(control._classified) <= 4096
