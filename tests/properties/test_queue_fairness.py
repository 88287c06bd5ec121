"""The work queue under urgent work without end: urgent keys first, and every key gets its turn."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.clock import ManualClock
from federation.runtime.workqueue import QueueOptions, WorkQueue

_FAIR_EVERY = 4


def a_queue() -> WorkQueue[int]:
    return WorkQueue("property", clock=ManualClock(), options=QueueOptions(fair_every=_FAIR_EVERY), jitter=lambda: 1.0)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.integers(1, 3))
def test_every_key_is_handed_out_in_bounded_time_however_many_urgent_ones_arrive(
    waiting: list[int], storm: int
) -> None:
    async def run() -> None:
        queue = a_queue()
        for key, priority in enumerate(waiting):
            queue.add(key, priority)
        left, number = set(range(len(waiting))), 1000
        for _ in range(_FAIR_EVERY * (len(waiting) + 1)):
            for _ in range(storm):
                queue.add(number := number + 1, -100)
            key = await queue.get()
            queue.done(key)
            left.discard(key)
        assert not left

    asyncio.run(run())


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3)), max_size=40))
def test_the_order_is_that_of_priorities_and_then_of_arrival_and_always_the_same(adds: list[tuple[int, int]]) -> None:
    async def run() -> list[int]:
        queue = WorkQueue[int]("property", clock=ManualClock(), options=QueueOptions(fair_every=10**6))
        for key, priority in adds:
            queue.add(key, priority)
        order = [await queue.get() for _ in range(len(queue))]
        assert len(queue) == 0
        return order

    order = asyncio.run(run())
    assert order == asyncio.run(run())
    most_urgent = {key: min(priority for other, priority in adds if other == key) for key, _ in adds}
    assert [most_urgent[key] for key in order] == sorted(most_urgent[key] for key in order)
    arrivals = [next(at for at, add in enumerate(adds) if add == (key, most_urgent[key])) for key in order]
    assert list(zip(order, arrivals, strict=True)) == sorted(
        zip(order, arrivals, strict=True), key=lambda entry: (most_urgent[entry[0]], entry[1])
    )
