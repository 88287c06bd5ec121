"""CPU seconds that hold on any machine: what work takes here, divided by how much slower this machine is right now.

A busy, throttled or merely old machine takes several times as long for the same work. A limit in plain seconds then fails
although nothing is wrong, or is so generous that it misses what it was made to find. The garbage collector rests meanwhile:
a collection scans everything that the tests before have left, which takes seconds.

This is the only place where tests measure CPU time against a limit; `tests/architecture` looks for others.
"""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import orjson

_T = TypeVar("_T")

_REFERENCE_S = 0.020
"""What `_reference_work` takes on the machine that the limits were chosen on."""
_ATTEMPTS = 3


async def least_cpu_s(
    act: Callable[[], Awaitable[_T]], enough_s: float, *, is_compared: bool = False
) -> tuple[_T, float]:
    """Act until it takes less than `enough_s`, at most three times; return the first result and the shortest time.

    The time is that of the process, with all its threads; one that is compared with another one is not corrected.
    """
    results, shortest_s = [], float("inf")
    while shortest_s >= enough_s and len(results) < _ATTEMPTS:
        with _measured(time.process_time) as taken:
            results.append(await act())
        shortest_s = min(shortest_s, taken[0] if is_compared else _corrected(taken[0], enough_s))
    return results[0], shortest_s


def cpu_s(act: Callable[[], _T], enough_s: float) -> tuple[_T, float]:
    """Do as `least_cpu_s` does with a plain function; the time is that of this thread."""
    results, shortest_s = [], float("inf")
    while shortest_s >= enough_s and len(results) < _ATTEMPTS:
        with _measured(time.thread_time) as taken:
            results.append(act())
        shortest_s = min(shortest_s, _corrected(taken[0], enough_s))
    return results[0], shortest_s


@contextmanager
def _measured(read: Callable[[], float]) -> Iterator[list[float]]:
    """Append the seconds that the body takes to the list, also when it raises."""
    taken: list[float] = []
    collects = gc.isenabled()
    gc.disable()
    before_s = read()
    try:
        yield taken
    finally:
        taken.append(read() - before_s)
        if collects:
            gc.enable()


def _corrected(taken_s: float, enough_s: float) -> float:
    """Return the seconds on the machine that the limits were chosen on, if they matter."""
    return taken_s if taken_s < enough_s else taken_s / max(1.0, _slowness())


def _slowness() -> float:
    with _measured(time.thread_time) as taken:
        _reference_work()
    return taken[0] / _REFERENCE_S


def _reference_work() -> None:
    """Some of what a request does: parse, walk and serialise JSON."""
    document = {f"key-{index}": {"value": [index, str(index)]} for index in range(8_000)}
    for _ in range(2):
        document = orjson.loads(orjson.dumps(document))
    assert sum(value["value"][0] for value in document.values()) == 31_996_000
