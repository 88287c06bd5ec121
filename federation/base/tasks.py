"""Supervised background tasks: the one owner of asyncio tasks that must outlive a single call.

A `Supervisor` runs named coroutines until it is cancelled. A coroutine that fails is logged, counted and started again
after a growing pause, so that one broken loop never takes the process down and never disappears silently.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog
from prometheus_client import Counter

from federation.base.clock import Clock, SystemClock

_log = structlog.get_logger(__name__)
_restarts = Counter(
    "federation_base_task_restarts_total", "Background tasks that failed and were started again", ["task"]
)


class Supervisor:
    """Runs each added coroutine function for ever, restarting it after a failure (pause 0.1 s doubling to 30 s)."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._entries: list[tuple[str, Callable[[], Awaitable[None]]]] = []

    def add(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Add a loop to run; `run` is called again after each failure and not after it returns."""
        self._entries.append((name, run))

    async def run(self) -> None:
        """Run all added loops until cancelled, or until all have returned."""
        async with asyncio.TaskGroup() as group:
            for name, loop in self._entries:
                group.create_task(self._keep(name, loop), name=name)

    async def _keep(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        pause_s = 0.1
        while True:
            try:
                await run()
            except Exception:  # noqa: BLE001  # one of the two places that may (STYLE 22): logs, counts, decides
                _restarts.labels(name).inc()
                _log.exception("task failed", task=name, restart_in_s=pause_s)
                await self._clock.sleep(pause_s)
                pause_s = min(pause_s * 2, 30.0)
            else:
                return
