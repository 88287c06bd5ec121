"""The ledger's writes: shared by waiting changes, repeated after conflicts, and never lost."""

import asyncio
from typing import Any

import pytest
from tests.support.simulatedmember import an_object

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import Conflict, InvalidInput
from federation.apimachinery.resources import Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client, Request
from federation.client.local import LocalClient, LocalTransport
from federation.features.workloadspread.incluster.configurations import definitions
from federation.features.workloadspread.incluster.statusledger import Decide, StatusLedger
from federation.runtime.informer import Informer


class Rival(LocalTransport):
    """Another writer comes first `wins` times; `writes` counts the attempts to write the status."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self.wins = 0
        self.hangs = 0
        """How many writes do not arrive and are not answered."""
        self.holds_answers = False
        self.writes = 0
        self.has_written = asyncio.Event()

    async def request(self, request: Request) -> Object:
        if request.subresource == "status":
            self.writes += 1
            self.has_written.set()
            await asyncio.sleep(0)  # as over a network, other tasks run meanwhile
            if self.wins:
                self.wins -= 1
                raise Conflict("another writer was faster")
            if self.hangs:
                self.hangs -= 1
                await asyncio.get_running_loop().create_future()
        answer = await super().request(request)
        if self.holds_answers and request.subresource == "status":
            await asyncio.get_running_loop().create_future()
        return answer


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = Registry(MemoryStore(clock=self.clock), clock=self.clock)
        self.transport = Rival(self.registry)
        self.client = Client(self.transport)
        self.user = LocalClient(self.registry)
        self.ledger = self.a_ledger()

    def a_ledger(self) -> StatusLedger:
        informer = Informer(self.client, WORKLOAD_SPREADS, clock=self.clock)
        return StatusLedger(self.client, informer, self.clock, jitter=lambda: 0.0)

    async def create(self) -> Object:
        await self.registry.install_crds(definitions())
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"targetRef": target, "subsets": [{"name": "a"}]}
        return await self.user.create(WORKLOAD_SPREADS, an_object(WORKLOAD_SPREADS, "web", spec=spec))

    async def count(self) -> int:
        """Return the number that the changes have counted up."""
        status = (await self.user.get(WORKLOAD_SPREADS, "web", "default")).get("status") or {}
        found: int = status.get("observedGeneration") or 0
        return found

    async def finish(self, *changes: Any) -> list[Any]:
        """Run the changes at the same time, with time passing."""
        running = asyncio.gather(*changes, return_exceptions=True)
        while not running.done():
            await self.clock.advance(0.05)
        return running.result()


def one_more() -> Decide:
    """Return a change that counts up by one and returns the new number."""

    def decide(newest: Object) -> tuple[Object, int]:
        number = ((newest.get("status") or {}).get("observedGeneration") or 0) + 1
        return {"observedGeneration": number}, number

    return decide


@pytest.fixture
def world() -> World:
    return World()


async def test_changes_that_wait_share_a_write(world: World) -> None:
    spread = await world.create()
    results = await world.finish(*(world.ledger.change(spread, one_more()) for _ in range(20)))
    assert sorted(results) == list(range(1, 21))
    assert await world.count() == 20
    assert world.transport.writes <= 2


async def test_several_ledgers_never_lose_a_change(world: World) -> None:
    spread = await world.create()
    ledgers = [world.ledger, world.a_ledger(), world.a_ledger()]
    changes = [ledger.change(spread, one_more()) for _ in range(10) for ledger in ledgers]
    assert sorted(await world.finish(*changes)) == list(range(1, 31))
    assert await world.count() == 30


@pytest.mark.parametrize(("wins", "expected"), [(7, 1), (8, Conflict)])
async def test_a_change_is_tried_eight_times(world: World, wins: int, expected: Any) -> None:
    spread = await world.create()
    world.transport.wins = wins
    (result,) = await world.finish(world.ledger.change(spread, one_more()))
    assert result == expected if isinstance(expected, int) else isinstance(result, expected)
    assert world.transport.writes == 8
    assert await world.count() == (expected == 1)


async def test_a_change_that_comes_late_has_all_its_tries(world: World) -> None:
    spread = await world.create()
    world.transport.wins = 9
    first = asyncio.ensure_future(world.ledger.change(spread, one_more()))
    while world.transport.writes < 3:
        await world.clock.advance(0.005)
    assert world.transport.writes == 3
    results = await world.finish(first, world.ledger.change(spread, one_more()))
    assert isinstance(results[0], Conflict)
    assert results[1] == 1


async def test_a_change_without_an_effect_writes_nothing(world: World) -> None:
    spread = await world.create()
    assert await world.ledger.change(spread, lambda _: (None, "same")) == "same"
    assert world.transport.writes == 0


async def test_a_change_that_fails_does_not_fail_the_others(world: World) -> None:
    def fail(_: Object) -> tuple[None, None]:
        raise InvalidInput("no number")

    spread = await world.create()
    results = await world.finish(*(world.ledger.change(spread, each) for each in (one_more(), fail, one_more())))
    assert [results[0], results[2]] == [1, 2]
    assert isinstance(results[1], InvalidInput)


async def test_a_cancelled_change_leaves_the_waiting_ones_to_the_next_holder_of_the_lock(world: World) -> None:
    spread = await world.create()
    world.transport.wins = 1
    first = asyncio.ensure_future(world.ledger.change(spread, one_more()))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(world.ledger.change(spread, one_more()))
    await world.transport.has_written.wait()
    first.cancel()
    assert await world.finish(second) == [1]
    assert await world.count() == 1


async def test_a_deleted_object_gives_no_result(world: World) -> None:
    spread = await world.create()
    await world.user.delete(WORKLOAD_SPREADS, "web", "default")
    assert await world.ledger.change(spread, one_more()) is None


async def test_a_new_object_with_the_same_name_is_not_changed(world: World) -> None:
    spread = await world.create()
    await world.user.delete(WORKLOAD_SPREADS, "web", "default")
    await world.create()
    assert await world.finish(world.ledger.change(spread, one_more())) == [None]
    assert await world.count() == 0


async def test_the_newest_object_is_that_of_the_last_write_until_it_is_forgotten(world: World) -> None:
    spread = await world.create()
    await world.ledger.change(spread, one_more())
    assert world.ledger.newest(spread)["status"]["observedGeneration"] == 1
    world.ledger.forget(spread)
    assert world.ledger.newest(spread) is spread


async def test_a_write_without_an_answer_in_time_is_decided_again(world: World) -> None:
    spread = await world.create()
    world.transport.hangs = 1
    (result,) = await world.finish(world.ledger.change(spread, one_more()))
    assert (result, await world.count()) == (1, 1)
    assert world.transport.writes == 2


async def test_what_was_written_for_a_caller_that_gave_up_is_undone(world: World) -> None:
    spread = await world.create()
    world.transport.holds_answers = True
    first = asyncio.ensure_future(world.ledger.change(spread, one_more(), lambda _: ({"observedGeneration": 7}, None)))
    while not await world.count():
        await world.clock.advance(0.01)
    first.cancel()
    world.transport.holds_answers = False
    while await world.count() == 1:
        await world.clock.advance(0.05)
    assert await world.count() == 7


async def test_a_caller_waits_until_a_write_or_an_event_makes_the_object_ready(world: World) -> None:
    spread = await world.create()
    waiting = asyncio.ensure_future(world.ledger.wait_until(spread, lambda newest: bool(newest.get("status")), 5))
    await world.clock.advance(1)
    world.ledger.observe(spread)
    await world.clock.advance(1)
    assert not waiting.done()
    await world.ledger.change(spread, one_more())
    assert await waiting is True


async def test_a_caller_waits_no_longer_than_its_timeout(world: World) -> None:
    spread = await world.create()
    (result,) = await world.finish(world.ledger.wait_until(spread, lambda newest: bool(newest.get("status")), 5))
    assert result is False
