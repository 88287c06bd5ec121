"""Supervised background tasks: the owner of asyncio tasks that outlive a single call.

A `Supervisor` runs named coroutines until it is cancelled. A coroutine that fails is logged, counted and restarted
after a growing pause, so that one broken loop neither ends the process nor stops unnoticed.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import Counter

from federation.apimachinery.clock import Clock, SystemClock

_log = structlog.get_logger(__name__)
_restarts = Counter(
    "federation_base_task_restarts_total", "Background tasks that failed and were started again", ["task"]
)


class Supervisor:
    """Runs coroutine functions and restarts each after a failure, with a pause from 0.1 s doubling to 30 s."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entries: list[tuple[str, Callable[[], Awaitable[None]]]] = []

    def add(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Add a loop; `run` is called again after a failure, but not after it returns."""
        self._entries.append((name, run))

    async def run(self) -> None:
        """Run all added loops until cancelled, or until all have returned."""
        async with asyncio.TaskGroup() as group:
            for name, loop in self._entries:
                group.create_task(self._run_forever(name, loop), name=name)

    async def _run_forever(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        pause_s = 0.1
        while True:
            try:
                await run()
            except Exception:  # noqa: BLE001  # a loop that failed is logged, counted and restarted
                _restarts.labels(name).inc()
                _log.exception("task failed", task=name, restart_in_s=pause_s)
                await self._clock.sleep(pause_s)
                pause_s = min(pause_s * 2, 30.0)
            else:
                return
