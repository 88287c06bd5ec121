"""Count the await points of sync, and stop the control plane at one of them.

`AwaitPoints` is a task factory: it wraps the coroutines of tasks and sees each suspension. Suspensions of sync's workers,
and of tasks that they start, count while it is armed.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Generator
from typing import Any

_WORKER = re.compile(r"sync-\d+")


class _Stepped(Coroutine[Any, Any, Any]):
    """A coroutine that reports each of its suspensions."""

    def __init__(self, inner: Coroutine[Any, Any, Any], report: Callable[["_Stepped"], None]) -> None:
        self.is_followed = False
        self._inner = inner
        self._report = report

    def send(self, value: Any) -> Any:
        awaited = self._inner.send(value)
        self._report(self)
        return awaited

    def throw(self, *error: Any) -> Any:
        awaited = self._inner.throw(*error)
        self._report(self)
        return awaited

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()


class AwaitPoints:
    """A task factory that counts the await points of sync.

    `on_reached` is called at the suspension with the number `stop_at`, before any other task runs.
    """

    def __init__(self) -> None:
        self.count = 0
        self.is_armed = False
        self.stop_at = 0
        self.on_reached: Callable[[], None] = lambda: None

    def __call__(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Future[Any]":
        if not isinstance(coroutine, Coroutine):
            return asyncio.Task(coroutine, loop=loop, **options)
        stepped = _Stepped(coroutine, self._suspended)
        stepped.is_followed = self.is_armed and _is_of_sync(asyncio.current_task(loop))
        return asyncio.Task(stepped, loop=loop, **options)

    def _suspended(self, stepped: _Stepped) -> None:
        if not self.is_armed or not (stepped.is_followed or _is_of_sync(asyncio.current_task())):
            return
        self.count += 1
        if self.count == self.stop_at:
            self.is_armed = False
            self.on_reached()


def _is_of_sync(task: "asyncio.Task[Any] | None") -> bool:
    if task is None:
        return False
    coroutine = task.get_coro()
    return bool(_WORKER.fullmatch(task.get_name())) or (isinstance(coroutine, _Stepped) and coroutine.is_followed)
