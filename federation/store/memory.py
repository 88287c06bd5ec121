"""A store without a database: the same rules and the same conformance suite, nothing kept after the process ends.

For tests, scenarios on a virtual clock and anything that may forget. A write is done when the call returns, without a
pause, so that a seed gives the same run every time; it needs no thread and runs on any event loop.
"""

from collections.abc import AsyncIterator

from federation.base.clock import Clock, SystemClock
from federation.base.errors import StoreError, StoreUnavailable
from federation.store.interface import Body, Entry, EventBatch, EventType, Nudge, Page
from federation.store.options import StoreOptions
from federation.store.view import View
from federation.store.writes import Change, check_write, plan_change


class MemoryStore:
    """`Store` in memory; history is kept up to `options.history_rows_max` changes."""

    def __init__(self, options: StoreOptions | None = None, *, clock: Clock | None = None) -> None:
        self._options = options or StoreOptions()
        self._clock = clock or SystemClock()
        self._view = View(self._options, changes_max=self._options.history_rows_max, bytes_max=1 << 62)
        self._is_closed = False

    async def run(self) -> None:
        """Announce progress to idle watchers until cancelled; reads and writes are served without it."""
        await self._view.announce_progress(self._clock, self._options.progress_interval_s)

    async def ready(self) -> None:
        """Return: a store in memory is always ready."""
        self._check_open()

    async def create(self, key: str, body: Body) -> Entry:
        return self._write(EventType.CREATED, key, body, 0)

    async def update(self, key: str, body: Body, expected_revision: int) -> Entry:
        return self._write(EventType.UPDATED, key, body, expected_revision)

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        return self._write(EventType.DELETED, key, body, expected_revision)

    async def get(self, key: str) -> Entry | None:
        self._check_open()
        return self._view.cache.get(key)

    async def list(self, prefix: str, *, limit: int = 0, from_key: str = "", revision: int = 0) -> Page:
        self._check_open()
        return await self._view.list(prefix, limit, from_key, revision, None)

    def watch(self, prefix: str, since: int, nudge: Nudge | None = None) -> AsyncIterator[EventBatch]:
        self._check_open()
        return self._view.watch(prefix, since, None, nudge)

    async def revision(self) -> int:
        self._check_open()
        return self._view.cache.revision

    async def compact(self, revision: int) -> None:
        self._check_open()
        self._view.cache.forget(min(revision, self._view.cache.revision))

    async def close(self) -> None:
        self._is_closed = True
        self._view.fail_watches(StoreError("the store is closed"))

    def _write(self, kind: EventType, key: str, body: Body, expected_revision: int) -> Entry:
        self._check_open()
        check_write(key, body)
        cache = self._view.cache
        outcome = plan_change(kind, key, body, expected_revision, current=cache.get(key), revision=cache.revision + 1)
        if isinstance(outcome, StoreError):
            raise outcome
        self._publish(outcome)
        return outcome.entry

    def _publish(self, change: Change) -> None:
        self._view.publish((change,))
        cache = self._view.cache
        cache.compacted = max(cache.compacted, cache.recent_after)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
