"""Charge computing time to the user whose request it is for: on the event loop, and in threads, which share the GIL.

The server says who pays (`paid_by`). Tasks that a request starts have the same payer. `apiserver/http/looptime.py` has
the accounts; work without a payer is the server's own and free.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from time import perf_counter, thread_time
from typing import ClassVar, Protocol, TypeVar

T = TypeVar("T")


class Payer(Protocol):
    """Has an account of computing time."""

    def charge(self, seconds: float) -> None:
        """Count time that was used."""
        ...

    async def rest(self) -> None:
        """Return when the owner of the account may go on computing; TooManyRequests if that takes long."""
        ...


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


@contextmanager
def paid_by(payer: Payer) -> Iterator[None]:
    """Charge what is computed during the block, and in tasks that it starts, to `payer`."""
    token = _payer.set(payer)
    try:
        yield
    finally:
        _payer.reset(token)


class Stretch:
    """Measures a stretch of computing on the event loop, less the stretches inside it, which are measured apart.

    Only the thread of the event loop may measure so.
    """

    __slots__ = ("_began_s", "_now_s", "_outer_s")
    _inner_s: ClassVar[float] = 0.0
    """The time measured inside the present stretch."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._outer_s, Stretch._inner_s = Stretch._inner_s, 0.0
        self._began_s = now_s()

    def end(self) -> float:
        """End the stretch and return its seconds."""
        took_s = self._now_s() - self._began_s
        own_s = took_s - Stretch._inner_s
        Stretch._inner_s = self._outer_s + took_s
        return own_s


@contextmanager
def charged() -> Iterator[None]:
    """Charge a block that awaits nothing, however short it is."""
    payer = _payer.get()
    if payer is None:
        yield
        return
    stretch = Stretch(perf_counter)
    try:
        yield
    finally:
        payer.charge(stretch.end())


async def rest() -> None:
    """Wait until the payer may go on computing; TooManyRequests if that takes long.

    Call it only where nothing is held that others need, such as a lock.
    """
    if (payer := _payer.get()) is not None:
        await payer.rest()


async def in_thread(work: Callable[[], T], executor: Executor | None = None) -> T:
    """Return the result of `work` in a thread, and charge the CPU time that it takes, even if it is cancelled."""
    payer, loop = _payer.get(), asyncio.get_running_loop()

    def measured() -> T:
        began_s = thread_time()
        try:
            return work()
        finally:
            if payer is not None:
                with suppress(RuntimeError):  # the event loop has been closed
                    loop.call_soon_threadsafe(payer.charge, thread_time() - began_s)

    return await loop.run_in_executor(executor, copy_context().run, measured)
