"""At most one leader, and a next one soon."""

import asyncio

import pytest
from tests.unit.runtime.conftest import FaultyClient

from federation.apimachinery.errors import ClusterUnreachable
from federation.apimachinery.resources import LEASES
from federation.runtime.leaderelection import LeaderElector, LeaderOptions, LeadershipLost


class Candidate:
    """An elector with its own way to the server, and a record of when it led."""

    def __init__(self, server, clock, identity: str) -> None:
        self.problem = ""
        self.client = FaultyClient(server)
        self.clock = clock
        self.led: list[tuple[float, float | None]] = []
        self.elector = LeaderElector(
            self.client,
            namespace="kube-system",
            name="federation",
            identity=identity,
            clock=clock,
            options=LeaderOptions(),
            jitter=lambda: 0.0,
            find_problem=self.find_problem,
        )

    async def find_problem(self) -> str:
        return self.problem

    async def lead(self) -> None:
        self.led.append((self.clock.monotonic(), None))
        try:
            await asyncio.Event().wait()
        finally:
            self.led[-1] = (self.led[-1][0], self.clock.monotonic())

    async def lead_until_lost(self) -> None:
        with pytest.raises(LeadershipLost):
            await self.elector.run(self.lead, is_final=True)

    @property
    def is_leading(self) -> bool:
        return bool(self.led) and self.led[-1][1] is None


class Slow:
    """A transport whose server answers late, and has done what it was asked for at half of that time."""

    def __init__(self, transport, clock, delay_s: float) -> None:
        self.transport, self.clock, self.delay_s = transport, clock, delay_s

    async def request(self, request):
        # Cancelling a request does not cancel what the server does.
        done = asyncio.ensure_future(self._done(request))
        await self.clock.sleep(self.delay_s)
        return await done

    async def _done(self, request):
        await self.clock.sleep(self.delay_s / 2)
        return await self.transport.request(request)


class Hangs:
    """The way to a server that can hang for everybody: requests wait, and are answered when it goes on."""

    def __init__(self, transport, is_open: asyncio.Event) -> None:
        self.transport, self.is_open = transport, is_open

    async def request(self, request):
        await self.is_open.wait()
        return await self.transport.request(request)


@pytest.fixture
def one(server, clock) -> Candidate:
    return Candidate(server, clock, "one")


@pytest.fixture
def two(server, clock) -> Candidate:
    return Candidate(server, clock, "two")


async def holder(server) -> tuple[str, int]:
    spec = (await server.get(LEASES, "federation", "kube-system"))["spec"]
    return spec["holderIdentity"], spec["leaseTransitions"]


async def test_the_first_one_leads_and_the_other_waits(one, two, server, clock, start, settle) -> None:
    start(one.elector.run(one.lead))
    await settle()
    start(two.elector.run(two.lead))
    await settle()
    await clock.advance(120)
    assert one.is_leading
    assert one.elector.is_leader
    assert two.led == []
    assert await holder(server) == ("one", 0)


async def test_a_stopping_leader_releases_the_lease(one, two, server, clock, start, settle) -> None:
    task = start(one.elector.run(one.lead))
    await settle()
    start(two.elector.run(two.lead))
    await settle()
    task.cancel()
    await settle()
    assert not one.is_leading
    assert not one.elector.is_leader
    await clock.advance(3)
    assert two.is_leading
    assert await holder(server) == ("two", 1)


async def test_a_renewal_that_takes_effect_late_does_not_keep_the_lease(one, server, clock, start, settle) -> None:
    task = start(one.elector.run(one.lead))
    await settle()
    get, reads = one.client.get, []

    async def get_before_a_renewal(*arguments):
        lease = await get(*arguments)
        if not reads:
            await server.update(
                LEASES, {**lease, "spec": {**lease["spec"], "renewTime": "2026-01-01T00:00:09.000000Z"}}
            )
        reads.append(lease)
        return lease

    one.client.get = get_before_a_renewal
    task.cancel()
    await settle()
    assert len(reads) == 2
    assert (await holder(server))[0] == ""


async def test_a_leader_without_its_server_may_not_act_before_another_leads(one, two, clock, start, settle) -> None:
    start(one.elector.run(one.lead))
    await settle()
    start(two.elector.run(two.lead))
    await clock.advance(20)
    one.client.fail(ClusterUnreachable("no route"))
    await settle()
    while not two.is_leading:
        await clock.advance(1)
        assert not (one.elector.may_act and two.elector.may_act)
    assert not one.elector.may_act
    one.client.fail(None)
    await clock.advance(60)
    assert two.is_leading
    assert not one.is_leading


async def test_a_short_outage_changes_nothing(one, clock, start, settle) -> None:
    start(one.elector.run(one.lead))
    await settle()
    one.client.fail(ClusterUnreachable("no route"))
    await clock.advance(7)
    one.client.fail(None)
    await clock.advance(60)
    assert one.led == [(0, None)]


async def test_while_a_renewal_hangs_the_leader_may_not_act(one, clock, start, settle) -> None:
    start(one.elector.run(one.lead))
    await settle()
    transport, hanging = one.client.transport.transport, asyncio.Event()

    class Hanging:
        async def request(self, request) -> None:
            await hanging.wait()

    one.client.replace(Hanging())
    await clock.advance(10.5)
    assert one.is_leading
    assert not one.elector.may_act
    one.client.replace(transport)
    await clock.advance(30)
    assert one.elector.may_act, "the request that hangs was given up"


async def test_a_lease_taken_by_force_ends_leadership(one, server, clock, start, settle) -> None:
    start(one.elector.run(one.lead))
    await settle()
    lease = await server.get(LEASES, "federation", "kube-system")
    await server.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}})
    await clock.advance(3)
    assert not one.is_leading


async def test_an_own_lease_is_acquired_at_once_after_a_crash(one, server, clock, start, settle) -> None:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 4}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
    await server.create(LEASES, {**lease, "metadata": {"name": "federation", "namespace": "kube-system"}})
    start(one.elector.run(one.lead))
    await settle()
    assert one.is_leading
    assert await holder(server) == ("one", 4)


async def test_the_end_of_the_work_ends_the_run_and_releases_the_lease(one, server, clock, start, settle) -> None:
    async def brief() -> None:
        await clock.sleep(1)

    task = start(one.elector.run(brief))
    await settle()
    await clock.advance(2)
    assert task.done()
    assert (await holder(server))[0] == ""


async def test_an_error_of_the_work_is_raised(one, clock, settle) -> None:
    async def broken() -> None:
        raise KeyError("oops")

    with pytest.raises(KeyError):
        await one.elector.run(broken)
    assert not one.elector.is_leader


async def test_a_leader_that_waits_for_its_server_writes_nothing_meanwhile(one, server, clock, start, settle) -> None:
    start(one.elector.run(one.lead, is_final=True))
    await settle()
    one.client.fail(ClusterUnreachable("no route"))
    await clock.advance(60)
    assert one.led == [(0, None)], "its work goes on"
    assert not one.elector.may_act, "but it may not write"
    one.client.fail(None)
    await clock.advance(12)
    assert one.led == [(0, None)]
    assert one.elector.may_act
    assert await holder(server) == ("one", 0)


async def test_a_leader_that_waits_for_its_server_loses_to_another_candidate(one, two, clock, start, settle) -> None:
    leading = start(one.lead_until_lost())
    await settle()
    one.client.fail(ClusterUnreachable("no route"))
    await clock.advance(12)
    start(two.elector.run(two.lead))
    await clock.advance(30)
    assert two.is_leading
    assert not one.elector.may_act
    one.client.fail(None)
    await clock.advance(12)
    assert leading.done()
    assert two.is_leading


async def test_a_lease_that_was_released_meanwhile_is_lost(one, two, clock, start, settle) -> None:
    leading = start(one.lead_until_lost())
    await settle()
    one.client.fail(ClusterUnreachable("no route"))
    await clock.advance(12)
    other = start(two.elector.run(two.lead))
    await clock.advance(30)
    other.cancel()
    await settle()
    one.client.fail(None)
    await clock.advance(12)
    assert leading.done()


@pytest.mark.parametrize(("delay_s", "acted_s_min"), [(1.0, 590), (4.0, 550), (8.0, 550), (20.0, 200)])
async def test_a_slow_server_neither_ends_leadership_nor_makes_two_leaders(
    one, two, clock, start, settle, delay_s, acted_s_min
) -> None:
    leading = start(one.lead_until_lost())
    await settle()
    start(two.elector.run(two.lead))
    await clock.advance(20)
    fast = one.client.transport.transport
    for candidate in (one, two):
        candidate.client.replace(Slow(fast, clock, delay_s))
    acted_s = 0
    for second in range(1200):
        await clock.advance(1)
        assert not (one.elector.may_act and two.elector.may_act)
        acted_s += second >= 600 and (one.elector.may_act or two.elector.may_act)
    for candidate in (one, two):
        candidate.client.replace(fast)
    assert leading.done() is two.is_leading
    assert acted_s > acted_s_min, "in time, the pace of the server is known"
    assert len(one.led) + len(two.led) <= 2, "the Lease does not go back and forth"


async def test_after_a_slow_time_a_dead_leader_is_followed_as_soon_as_before(
    one, two, server, clock, start, settle
) -> None:
    start(one.elector.run(one.lead))
    await settle()
    slow = Slow(one.client.transport.transport, clock, 5.0)
    one.client.replace(slow)
    await clock.advance(200)
    lease = await server.get(LEASES, "federation", "kube-system")
    assert lease["spec"]["leaseDurationSeconds"] > 15
    one.client.replace(slow.transport)
    await clock.advance(60)
    start(two.elector.run(two.lead))
    await clock.advance(5)
    one.client.fail(ClusterUnreachable("no route"))
    await clock.advance(20)
    assert two.is_leading


@pytest.mark.parametrize("hang_s", [16, 40, 300])
@pytest.mark.parametrize("is_follower_first", [True, False])
async def test_a_server_that_hangs_for_everybody_ends_no_leadership(
    one, two, clock, start, settle, hang_s, is_follower_first
) -> None:
    candidates = [two, one] if is_follower_first else [one, two]
    leading = start(one.lead_until_lost())
    await settle()
    start(two.elector.run(two.lead))
    await clock.advance(20.3)
    server = one.client.transport.transport
    for _ in range(3):
        gates = [asyncio.Event() for _ in candidates]
        for candidate, gate in zip(candidates, gates, strict=True):
            candidate.client.replace(Hangs(server, gate))
        await clock.advance(hang_s)
        assert not two.is_leading
        for gate in gates:
            gate.set()
            await settle()
        await clock.advance(10)
        assert one.elector.may_act
    assert not leading.done()
    assert two.led == []


async def test_a_dead_leader_is_followed_although_the_server_hangs_now_and_then(one, two, clock, start, settle) -> None:
    task = start(one.elector.run(one.lead))
    await settle()
    start(two.elector.run(two.lead))
    await clock.advance(20)
    one.client.fail(ClusterUnreachable("no route"))
    task.cancel()
    fast = two.client.transport.transport
    for _ in range(4):
        gate = asyncio.Event()
        two.client.replace(Hangs(fast, gate))
        await clock.advance(30)
        gate.set()
        await clock.advance(3)
    assert two.is_leading


@pytest.mark.parametrize("pace_s", [0, 0.01, 0.5, 2, 5, 12, 20])
def test_a_duration_covers_two_renewals(pace_s) -> None:
    for options in (LeaderOptions(), LeaderOptions(8, 5, 1), LeaderOptions(5, 4, 0.5)):
        duration_s = options.duration_s(pace_s)
        assert options.lease_duration_s <= duration_s <= options.lease_duration_s_max
        assert options.deadline_s(duration_s) >= 2 * pace_s + options.retry_period_s
        assert pace_s > 1 or duration_s == options.lease_duration_s


async def test_a_candidate_with_a_problem_never_leads(one, two, clock, start, settle) -> None:
    one.problem = "its clock is wrong"
    start(one.elector.run(one.lead))
    await clock.advance(60)
    assert not one.led, "not even while nobody else leads"
    start(two.elector.run(two.lead))
    await clock.advance(10)
    assert two.is_leading
    one.problem, two.problem = "", "its clock is wrong"
    await clock.advance(60)
    assert one.is_leading, "the leader has released the Lease"


async def test_the_end_of_a_leader_with_a_problem_names_it(one, clock, settle) -> None:
    running = asyncio.ensure_future(one.elector.run(one.lead, is_final=True))
    await settle()
    one.problem = "its clock is wrong"
    with pytest.raises(LeadershipLost, match="its clock is wrong"):
        await asyncio.gather(running, clock.advance(60))
