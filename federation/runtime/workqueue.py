"""The queue of a controller: deduplicated keys with priorities, delays and back-off.

It guarantees that a key is queued at most once, that no two workers process a key at the same time (a key that is added
during its processing is queued again afterwards), and that a delayed key is queued once, at its earliest deadline. A
queue lives as long as its controller; `run()` serves the delays. Read `controller.py` next, which handles failures.
"""

import asyncio
import bisect
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from prometheus_client import Counter, Gauge, Histogram

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.metrics import LATENCY_BUCKETS_S, show
from federation.runtime.replay import REPLAYED, is_replayed

K = TypeVar("K", bound=Hashable)
Jitter = Callable[[], float]
"""Returns numbers in [0, 1); `random.random` in production, a constant in tests."""

_adds = Counter("federation_runtime_queue_adds_total", "Keys that were added, duplicates left out", ["queue"])
_retries = Counter("federation_runtime_queue_retries_total", "Keys that were added again after a failure", ["queue"])
_overflows = Counter("federation_runtime_queue_overflows_total", "Keys refused by a full queue", ["queue"])
_depth = Gauge("federation_runtime_queue_depth", "Keys that wait for a worker", ["queue"])
_delayed = Gauge("federation_runtime_queue_delayed", "Keys that wait for their deadline", ["queue"])
_oldest = Gauge("federation_runtime_queue_oldest_seconds", "Age of the key that waits longest", ["queue"])
_waits = Histogram(
    "federation_runtime_queue_wait_seconds", "Time from add to hand-out", ["queue"], buckets=LATENCY_BUCKETS_S
)

_EARLY_S = 0.001
"""Timers of an event loop fire up to a millisecond early; a key due within that is due."""


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Limits of one queue."""

    backoff_s_min: float = 0.005
    """The first delay after a failure; it doubles with each further one."""
    backoff_s_max: float = 60.0
    """The longest delay after a failure: a repaired cause takes effect within a minute."""
    depth_max: int = 1_000_000
    """Distinct waiting keys. A full queue refuses keys and sets `overflowed`."""
    fair_every: int = 8
    """Each n-th `get` returns the key that waited longest, whatever its priority, so that low priorities do not starve:
    a key waits for at most n times as many gets as keys were queued before it."""


_Entry = tuple[float, K, int, int]
"""Arrival time, key, priority and sequence number; arrival times may be equal, sequence numbers are not."""


class WorkQueue(Generic[K]):
    """Keys by priority (lower number first), first in first out within one."""

    def __init__(
        self,
        name: str = "queue",
        *,
        clock: Clock | None = None,
        options: QueueOptions | None = None,
        jitter: Jitter = random.random,
        ends_delays: bool = False,
    ) -> None:
        """`ends_delays`: a key that is handed out loses its deadline, because its owner then sets the next one."""
        self.name = name
        self._ends_delays = ends_delays
        self.overflowed = False
        """Whether a key was refused since the owner last cleared this; the owner must enqueue all keys again."""
        self._clock = clock or SystemClock()
        self._options = options or QueueOptions()
        self._jitter = jitter
        self._levels: dict[int, deque[_Entry[K]]] = {}
        self._order: list[int] = []
        self._waiting: dict[K, _Entry[K]] = {}
        self._processing: set[K] = set()
        self._again: dict[K, int] = {}
        self._failures: dict[K, int] = {}
        self._handed_out = 0
        self._replayed = 0
        """Waiting keys of a replay."""
        self._getters: deque[asyncio.Future[None]] = deque()
        self._urgent_getters: deque[asyncio.Future[None]] = deque()
        """Of the workers that take no keys of a replay."""
        self._idle: list[asyncio.Future[None]] = []
        self._deadlines: dict[K, tuple[float, int]] = {}
        self._timers: list[tuple[float, int, K]] = []
        self._sequence = itertools.count()
        self._timer_wake = asyncio.Event()
        self._sleeper: asyncio.Future[None] | None = None
        self._adds, self._retries = _adds.labels(name), _retries.labels(name)
        self._overflows, self._waits = _overflows.labels(name), _waits.labels(name)
        show(_depth.labels(name), self, len)
        show(_oldest.labels(name), self, attrgetter("oldest_s"))
        show(_delayed.labels(name), self, attrgetter("delayed"))

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker, without delayed and running ones."""
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether no key is queued or running; delayed keys may exist."""
        return not self._waiting and not self._processing

    @property
    def oldest_s(self) -> float:
        """How long the key that waits longest has waited, 0 without one."""
        # Keys stay where they were inserted, also when their priority rises, so the first one is the oldest.
        first = next(iter(self._waiting.values()), None)
        return 0.0 if first is None else self._clock.monotonic() - first[0]

    @property
    def delayed(self) -> int:
        """The number of keys that wait for a deadline."""
        return len(self._deadlines)

    def add(self, key: K, priority: int = 0) -> None:
        """Queue the key unless it waits already; a more urgent priority moves it forward."""
        if key in self._processing:
            self._again[key] = min(priority, self._again.get(key, priority))
            return
        entry = self._waiting.get(key)
        if entry is not None and entry[2] <= priority:
            return
        if entry is None:
            if len(self._waiting) >= self._options.depth_max:
                self.overflowed = True
                self._overflows.inc()
                return
            self._adds.inc()
        # An entry whose priority rose stays in its old level and is skipped there, because it is no longer the one in
        # `_waiting`: removing it from the middle of a deque would cost more.
        arrived_s, number = (self._clock.monotonic(), next(self._sequence)) if entry is None else (entry[0], entry[3])
        self._replayed += is_replayed(priority) - (entry is not None and is_replayed(entry[2]))
        entry = (arrived_s, key, priority, number)
        self._waiting[key] = entry
        self._level(priority).append(entry)
        self._wake_one(is_urgent=not is_replayed(priority))

    def add_after(self, key: K, delay_s: float, priority: int = 0, *, postpones: bool = False) -> None:
        """Queue the key in `delay_s` seconds, or earlier when an earlier deadline is set for it already.

        With `postpones` the deadline replaces an earlier one: the owner knows when the key is due.
        """
        if delay_s <= 0:
            self.add(key, priority)
            return
        deadline = self._clock.monotonic() + delay_s
        known = self._deadlines.get(key)
        if known is not None and known[0] <= deadline:
            if postpones:
                self._deadlines[key] = (deadline, priority)  # The timer that is set looks again.
            return
        is_first = not self._timers or deadline < self._timers[0][0]
        self._deadlines[key] = (deadline, priority)
        heapq.heappush(self._timers, (deadline, next(self._sequence), key))
        if is_first:
            self._timer_wake.set()
            if self._sleeper is not None:
                self._sleeper.cancel()

    def add_rate_limited(
        self, key: K, *, delay_s_min: float = 0.0, delay_s_max: float | None = None, priority: int = 0
    ) -> float:
        """Queue the key after its back-off (doubling per failure, up to a fifth of jitter) and return the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        longest_s = self._options.backoff_s_max if delay_s_max is None else delay_s_max
        delay_s = min(self._options.backoff_s_min * 2.0 ** min(failures, 40), longest_s)
        delay_s = max(delay_s * (0.8 + 0.2 * self._jitter()), delay_s_min)
        self._retries.inc()
        self.add_after(key, delay_s, priority)
        return delay_s

    def failures(self, key: K) -> int:
        """Return how often the key failed since it was last forgotten."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Reset the key's back-off: it succeeded."""
        if self._failures:
            self._failures.pop(key, None)

    async def get(self) -> K:
        """Wait for a key and return it; the caller must call `done` for it."""
        await self.wait_ready()
        return self.pop(replayed=self.prefers_replayed())

    async def wait_ready(self, *, is_urgent: bool = False) -> None:
        """Wait until a key can be popped, with `is_urgent` a key of no replay. No await may come between."""
        while not (self.has_urgent if is_urgent else self._waiting):
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            (self._urgent_getters if is_urgent else self._getters).append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake_one(is_urgent=self.has_urgent)  # Its key is still queued: wake the next waiter.
                raise

    @property
    def has_urgent(self) -> bool:
        """Whether a key waits that is not of a replay."""
        return len(self._waiting) > self._replayed

    def prefers_replayed(self) -> bool:
        """Return whether a key of a replay is next for a worker that takes both kinds."""
        is_fair = self._handed_out % self._options.fair_every == self._options.fair_every - 1
        return self._replayed > 0 and (is_fair or not self.has_urgent)

    def claim(self, key: K) -> bool:
        """Take a key out of its turn; return False if it waits or is processed. The caller must call `done` for it."""
        if key in self._processing or key in self._waiting:
            return False
        self._processing.add(key)
        return True

    def done(self, key: K) -> None:
        """Mark the key as finished; it is queued again if it was added during its processing."""
        self._processing.discard(key)
        if self._again and (priority := self._again.pop(key, None)) is not None:
            self.add(key, priority)
        elif self._idle and self.is_idle:
            for waiter in self._idle:
                if not waiter.done():
                    waiter.set_result(None)
            self._idle.clear()

    async def wait_idle(self) -> None:
        """Wait until no key is queued or running; delayed keys do not count."""
        while not self.is_idle:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._idle.append(waiter)
            await waiter

    async def run(self) -> None:
        """Queue delayed keys at their deadlines until cancelled."""
        while True:
            self._timer_wake.clear()
            delay_s = self._release_due()
            if delay_s is None:
                await self._timer_wake.wait()
                continue
            # The sleeper is a task of its own so that an earlier deadline can end the sleep; `wait` does not raise when
            # only the sleeper was cancelled.
            self._sleeper = asyncio.ensure_future(self._clock.sleep(delay_s))
            try:
                await asyncio.wait((self._sleeper,))
            finally:
                self._sleeper.cancel()
                self._sleeper = None

    def _level(self, priority: int) -> deque[_Entry[K]]:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = deque()
            bisect.insort(self._order, priority)
        return level

    def _drop_empty(self, priority: int) -> None:
        """Remove an empty level: there may be as many priorities as policies."""
        if not self._levels[priority]:
            del self._levels[priority]
            del self._order[bisect.bisect_left(self._order, priority)]

    def pop(self, *, replayed: bool = False) -> K:
        """Return the next key of this kind, of which one must wait; the caller must call `done` for it."""
        self._handed_out += 1
        border = bisect.bisect_left(self._order, REPLAYED)
        order = self._order[border:] if replayed else self._order[:border]
        fair = len(order) > 1 and self._handed_out % self._options.fair_every == 0
        entry = self._oldest(order) if fair else self._most_urgent(order)
        self._replayed -= replayed
        key = entry[1]
        del self._waiting[key]
        self._processing.add(key)
        if self._ends_delays:
            self._deadlines.pop(key, None)  # Its timer finds no deadline then.
        self._waits.observe(self._clock.monotonic() - entry[0])
        return key

    def _most_urgent(self, order: list[int]) -> _Entry[K]:
        return self._take(next(head for priority in order if (head := self._head(priority)) is not None))

    def _oldest(self, order: list[int]) -> _Entry[K]:
        heads = [head for priority in order if (head := self._head(priority)) is not None]
        return self._take(min(heads, key=lambda entry: entry[3]))

    def _head(self, priority: int) -> _Entry[K] | None:
        """Return the first valid entry of a level; without one, remove the level and return None."""
        level = self._levels[priority]
        while level and self._waiting.get(level[0][1]) is not level[0]:
            level.popleft()
        if level:
            return level[0]
        self._drop_empty(priority)
        return None

    def _take(self, entry: _Entry[K]) -> _Entry[K]:
        self._levels[entry[2]].popleft()
        self._drop_empty(entry[2])
        return entry

    def _wake_one(self, *, is_urgent: bool) -> None:
        for getters in (self._urgent_getters, self._getters) if is_urgent else (self._getters,):
            while getters:
                getter = getters.popleft()
                if not getter.done():
                    getter.set_result(None)
                    return

    def _release_due(self) -> float | None:
        """Queue due keys and return the seconds until the next deadline, None without one."""
        now = self._clock.monotonic()
        while self._timers:
            deadline, _, key = self._timers[0]
            known = self._deadlines.get(key)
            if known is None or known[0] < deadline:
                heapq.heappop(self._timers)  # an earlier deadline of the same key was set later
            elif known[0] > deadline:
                heapq.heapreplace(self._timers, (known[0], next(self._sequence), key))  # it was postponed
            elif deadline <= now + _EARLY_S:
                heapq.heappop(self._timers)
                del self._deadlines[key]
                self.add(key, known[1])
            else:
                return deadline - now
        return None
