"""A store without a database: the same rules and conformance suite, lost when the process ends.

For tests and scenarios on a virtual clock. A write completes without a suspension, so that a seed always gives the
same run; there are no threads.
"""

from collections.abc import AsyncGenerator, Iterable, Sequence

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import StoreError, StoreUnavailable, WatchCanceled
from federation.apiserver.store.interface import Body, Entry, EventBatch, EventType, Page, WakeSignal
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.watchcache import WatchCache
from federation.apiserver.store.writes import Change, check_write, plan_change


class MemoryStore:
    """`Store` in memory, with a history of `options.history_rows_max` changes.

    It begins with the entries of `seed`. Stores with the same seed share its bytes.
    """

    def __init__(
        self, options: StoreOptions | None = None, *, clock: Clock | None = None, seed: Iterable[Entry] = ()
    ) -> None:
        self._options = options or StoreOptions()
        self._clock = clock or SystemClock()
        self._watch_cache = WatchCache(self._options, changes_max=self._options.history_rows_max, bytes_max=1 << 62)
        self._is_closed = False
        entries = list(seed)
        revision = max((entry.revision for entry in entries), default=0)
        self._watch_cache.load(entries, revision, compacted=revision)

    async def run(self) -> None:
        """Send progress to idle watchers until cancelled; reads and writes work without it."""
        await self._watch_cache.announce_progress(self._clock, self._options.progress_interval_s)

    async def ready(self) -> None:
        """Return at once, unless the store is closed."""
        self._check_open()

    async def create(self, key: str, body: Body) -> Entry:
        return self._write(EventType.CREATED, key, body, 0)

    async def update(self, key: str, body: Body, expected_revision: int, *, frees_space: bool = False) -> Entry:
        del frees_space  # memory has no quota
        return self._write(EventType.UPDATED, key, body, expected_revision)

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        return self._write(EventType.DELETED, key, body, expected_revision)

    async def get(self, key: str) -> Entry | None:
        self._check_open()
        return self._watch_cache.get(key)

    async def list(self, prefix: str, *, limit: int = 0, from_key: str = "", revision: int = 0) -> Page:
        self._check_open()
        return await self._watch_cache.list(prefix, limit, from_key, revision, None)

    def watch(self, prefix: str, since: int, wake_signal: WakeSignal | None = None) -> AsyncGenerator[EventBatch, None]:
        self._check_open()
        return self._watch_cache.watch(prefix, since, None, wake_signal)

    async def revision(self) -> int:
        self._check_open()
        return self._watch_cache.cache.revision

    async def check_writable(self) -> None:
        self._check_open()

    def warnings(self) -> Sequence[str]:
        return self._watch_cache.warnings()

    async def compact(self, revision: int) -> None:
        self._check_open()
        self._watch_cache.cache.compact(min(revision, self._watch_cache.cache.revision))

    async def close(self) -> None:
        self._is_closed = True
        self._watch_cache.fail_watches(WatchCanceled("the store is closed"))

    def _write(self, kind: EventType, key: str, body: Body, expected_revision: int) -> Entry:
        self._check_open()
        check_write(key, body)
        cache = self._watch_cache.cache
        outcome = plan_change(kind, key, body, expected_revision, current=cache.get(key), revision=cache.revision + 1)
        if isinstance(outcome, StoreError):
            raise outcome
        self._publish(outcome)
        return outcome.entry

    def _publish(self, change: Change) -> None:
        self._watch_cache.publish((change,))
        cache = self._watch_cache.cache
        cache.compacted = max(cache.compacted, cache.recent_after)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
