"""Late handlers: they get everything that exists after the first list, and lose nothing."""

import asyncio

import pytest

from federation.apimachinery.clock import ManualClock
from federation.runtime.handlers import Handlers
from federation.runtime.indexer import Cache
from federation.runtime.replay import priority_offset

COUNT = 700
"""More objects than a handler gets in one iteration of the event loop."""


def an_object(number: int, color: str = "blue"):
    return {"metadata": {"namespace": "default", "name": f"c{number}", "resourceVersion": "1"}, "color": color}


class World:
    """Handlers over a cache that is full when `open` is called."""

    def __init__(self, clock: ManualClock) -> None:
        self.cache = Cache()
        self.failures: list[int] = []
        self.handlers = Handlers(self.cache, clock, lambda: self.failures.append(1))
        self.heard: list[tuple[str, str, str, bool]] = []
        self.has_begun = asyncio.Event()

    def handle(self, old, new) -> None:
        what = "add" if old is None else "delete" if new is None else "update"
        obj = new or old
        self.has_begun.set()
        self.heard.append((what, obj["metadata"]["name"], obj["color"], priority_offset() > 0))

    def fill(self) -> None:
        for number in range(COUNT):
            obj = an_object(number)
            self.cache.put(("default", f"c{number}"), obj)
            self.handlers.call(None, obj)

    def change(self, number: int) -> None:
        new = an_object(number, "red")
        self.cache.put(("default", f"c{number}"), new)
        self.handlers.call(an_object(number), new)

    def remove(self, number: int) -> None:
        self.cache.remove(("default", f"c{number}"))
        self.handlers.call(an_object(number), None)


@pytest.fixture
def world(clock: ManualClock) -> World:
    return World(clock)


def all_added(color: str = "blue") -> list[tuple[str, str, str, bool]]:
    return [("add", f"c{number}", color, True) for number in range(COUNT)]


async def test_a_late_handler_gets_the_first_list_when_it_is_complete(world: World) -> None:
    world.handlers.add(world.handle, is_replayed=True, is_late=True)
    async with asyncio.TaskGroup() as group:
        world.handlers.run_in(group)
        world.fill()
        await asyncio.sleep(0)
        assert world.heard == []
        world.handlers.open()
        world.handlers.open()  # later lists change nothing
    assert world.heard == all_added()


async def test_a_late_handler_hears_of_changes_at_once_and_not_of_what_is_gone(world: World) -> None:
    world.handlers.add(world.handle, is_replayed=True, is_late=True)
    async with asyncio.TaskGroup() as group:
        world.handlers.run_in(group)
        world.fill()
        world.handlers.open()
        world.change(COUNT - 1)
        world.remove(COUNT - 2)
    first = [("update", f"c{COUNT - 1}", "red", False), ("delete", f"c{COUNT - 2}", "blue", False)]
    assert world.heard == [*first, *all_added()[:-2], ("add", f"c{COUNT - 1}", "red", True)]


async def test_a_late_handler_that_comes_after_the_list_gets_what_is_cached(world: World) -> None:
    async with asyncio.TaskGroup() as group:
        world.handlers.run_in(group)
        world.fill()
        world.handlers.open()
        world.handlers.add(world.handle, is_replayed=True, is_late=True)
        assert world.heard == []
    assert world.heard == all_added()


async def test_a_replay_that_is_cut_off_is_made_again_at_the_next_run(world: World) -> None:
    world.handlers.add(world.handle, is_replayed=True, is_late=True)
    world.fill()
    world.handlers.open()

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            world.handlers.run_in(group)
            await world.has_begun.wait()
            raise ConnectionError

    with pytest.raises(ExceptionGroup):
        await run()
    world.handlers.run_in(None)
    assert 0 < len(world.heard) < COUNT
    world.heard.clear()
    async with asyncio.TaskGroup() as group:
        world.handlers.run_in(group)
    assert world.heard == all_added()
    world.change(0)
    assert world.heard[COUNT:] == [("update", "c0", "red", False)]


async def test_a_late_handler_that_fails_or_is_removed_stops_no_other(world: World) -> None:
    def fail(old, new) -> None:
        del old, new
        raise KeyError

    removed: list[object] = []
    world.handlers.add(fail, is_replayed=True, is_late=True)
    world.handlers.add(world.handle, is_replayed=True, is_late=True)
    remove = world.handlers.add(lambda old, new: removed.append((old, new)), is_replayed=True, is_late=True)
    world.fill()
    async with asyncio.TaskGroup() as group:
        world.handlers.run_in(group)
        world.handlers.open()
        remove()
    assert world.heard == all_added()
    assert len(world.failures) == COUNT
    assert removed == []
