"""Pages of pods share a few slots, and a member that does not answer holds none of them for long."""

import asyncio
from dataclasses import dataclass, field

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterUnreachable
from federation.client.client import ObjectPage
from federation.runtime.pageslots import PageSlot, PageSlots

PAGE = ObjectPage([], "1")


@dataclass
class Member:
    """A member that answers when the test says so."""

    slot: PageSlot
    requests: int = 0
    opened: int = 0
    answer: "asyncio.Future[ObjectPage]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    processed: asyncio.Event = field(default_factory=asyncio.Event)

    async def fetch(self) -> ObjectPage:
        self.requests += 1
        return await asyncio.shield(self.answer)

    async def read(self) -> None:
        async with self.slot.hold(self.fetch):
            self.opened += 1
            await self.processed.wait()


def members(clock: ManualClock, count: int) -> list[Member]:
    """Return members that share two slots."""
    slots = PageSlots(clock, slots=2, patience_s=2.0)
    return [Member(PageSlot(slots)) for _ in range(count)]


async def fail(member: Member, read: "asyncio.Future[None]") -> None:
    member.answer.set_exception(ClusterUnreachable("gone"))
    with pytest.raises(ClusterUnreachable):
        await read


async def test_a_page_is_requested_when_it_has_a_slot_and_keeps_it_while_it_is_read(clock, start, settle) -> None:
    three = members(clock, 3)
    for each in three:
        start(each.read())
    await settle()
    assert [each.requests for each in three] == [1, 1, 0]
    for each in three:
        each.answer.set_result(PAGE)
    await settle()
    await clock.advance(60)
    assert [each.opened for each in three] == [1, 1, 0]
    three[0].processed.set()
    await settle()
    assert [each.opened for each in three] == [1, 1, 1]


async def test_members_that_do_not_answer_return_their_slots_and_take_no_more(clock, start, settle) -> None:
    first, second, *good = members(clock, 4)
    reads = [asyncio.ensure_future(each.read()) for each in (first, second)]
    await settle()
    start(good[0].read())
    await settle()
    assert good[0].requests == 0
    await clock.advance(2.0)
    await settle()
    assert good[0].requests == 1
    for each, read in zip((first, second), reads, strict=True):
        await fail(each, read)
        each.answer = asyncio.get_running_loop().create_future()
        start(each.read())
    await settle()
    assert [each.requests for each in (first, second)] == [2, 2]
    start(good[1].read())
    await settle()
    assert [each.requests for each in good] == [1, 1], "the next requests of the silent members hold a slot"


async def test_a_late_page_is_read_in_a_slot(clock, start, settle) -> None:
    late, *others = members(clock, 3)
    start(late.read())
    await settle()
    await clock.advance(2.0)
    for each in others:
        each.answer.set_result(PAGE)
        start(each.read())
    await settle()
    late.answer.set_result(PAGE)
    await settle()
    assert [late.opened, *(each.opened for each in others)] == [0, 1, 1]
    others[0].processed.set()
    await settle()
    assert late.opened == 1


async def test_a_member_that_answers_fast_again_waits_for_slots_again(clock, start, settle) -> None:
    late, *others = members(clock, 3)
    late.processed.set()
    start(late.read())
    await settle()
    await clock.advance(2.0)
    late.answer.set_result(PAGE)
    await settle()
    start(late.read())
    await settle()
    assert late.opened == 2
    for each in others:
        start(each.read())
    start(late.read())
    await settle()
    assert (late.requests, late.opened) == (2, 2)


@pytest.mark.parametrize("wait_s", [0.0, 2.0], ids=["at once", "late"])
async def test_a_failed_request_is_raised_and_frees_its_slot(clock, start, settle, wait_s: float) -> None:
    bad, *others = members(clock, 3)
    read = asyncio.ensure_future(bad.read())
    await settle()
    await clock.advance(wait_s)
    await fail(bad, read)
    for each in others:
        start(each.read())
    await settle()
    assert [each.requests for each in others] == [1, 1]


@pytest.mark.parametrize("step", ["waiting", "requesting", "reading"])
async def test_a_cancelled_reader_frees_its_slot(clock, start, settle, step: str) -> None:
    one, two, three, four = members(clock, 4)
    if step == "reading":
        one.answer.set_result(PAGE)
    tasks = {each.slot: start(each.read()) for each in (one, two, three)}
    await settle()
    cancelled = three if step == "waiting" else one
    tasks[cancelled.slot].cancel()
    await settle()
    assert three.requests == (0 if step == "waiting" else 1)
    tasks[two.slot].cancel()
    start(four.read())
    await settle()
    assert four.requests == 1
