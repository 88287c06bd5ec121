"""Writes of WorkloadSpread statuses, on which the admission of pods relies for its quotas.

The API server is the judge: every write carries a resourceVersion, and a conflict is decided again on the newest
object. A lock per WorkloadSpread keeps the writers of this process from conflicts with each other, and the changes that
wait for the lock share one write. The result of the last write is kept, because the informer lags behind it.

A write without an answer in time may have been made. It is decided again on the newest object, where decisions find
their own records by id. What a caller recorded that does not wait any more is removed: it answered without it.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, Conflict, FederationError, NotFound, RequestTimeout
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.features.workloadspread.rules.hub import to_hub
from federation.runtime.informer import Informer
from federation.runtime.workqueue import Jitter

Decide = Callable[[Object], tuple[Object | None, Any]]
"""Takes the newest WorkloadSpread; returns its new status, None for no change, and a result for the caller."""


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """Limits of the writes."""

    tries_max: int = 8
    """Tries per change, after conflicts and failures that may pass. With 4, three instances sometimes denied one of 50
    pods."""
    request_s_max: float = 2.5
    """How long one request may take; a review has time for three of them."""
    backoff_s_min: float = 0.01
    """Pause after the first conflict."""
    backoff_factor: float = 5.0
    """Growth of the pause per further conflict."""
    backoff_s_max: float = 0.1
    """Longest pause, without jitter: all tries must fit into the deadline of a review."""
    backoff_jitter: float = 1.0
    """Largest random share that is added to a pause. Instances that pause equally long meet again."""


class _Change:
    """One change that waits for a write."""

    __slots__ = ("decide", "error", "is_done", "is_read_first", "result", "tries")

    def __init__(self, decide: Decide, *, is_read_first: bool = False) -> None:
        self.decide = decide
        self.is_read_first = is_read_first
        """Whether the object may have been written unseen."""
        self.tries = 0
        self.is_done = False
        self.result: Any = None
        self.error: FederationError | None = None


@dataclass(slots=True)
class _Entry:
    """The state of one WorkloadSpread."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[_Change] = field(default_factory=list)
    written: Object | None = None
    """The object that the last write of this process returned."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set and replaced when a newer object is known."""


class StatusLedger:
    """Changes the statuses of the WorkloadSpreads of one cluster. It lives as long as the service."""

    def __init__(
        self,
        client: Client,
        spreads: Informer,
        clock: Clock,
        *,
        options: LedgerOptions | None = None,
        jitter: Jitter = random.random,
    ) -> None:
        self._client = client
        self._spreads = spreads
        self._clock = clock
        self._options = options or LedgerOptions()
        self._jitter = jitter
        self._entries: dict[str, _Entry] = {}
        self._undoing: set[asyncio.Future[None]] = set()

    async def change(self, spread: Object, decide: Decide, undo: Decide | None = None) -> Any:
        """Write the status that `decide` returns for the newest object, and return its result.

        `decide` is called again after a conflict; it must not keep state. Returns None if the object is gone. Conflict
        when all tries met another writer, ApiError or ClusterError when the API server refuses or does not answer.
        `undo` is the change to make if this one may have been written without a result for the caller.
        """
        try:
            return await self._share_write(spread, _Change(decide))
        except (asyncio.CancelledError, ApiError, ClusterError):
            if undo is not None:
                task = asyncio.ensure_future(self._undo(spread, undo))
                self._undoing.add(task)
                task.add_done_callback(self._undoing.discard)
            raise

    async def _undo(self, spread: Object, undo: Decide) -> None:
        with contextlib.suppress(FederationError):
            await self._share_write(spread, _Change(undo, is_read_first=True))

    async def wait_until(self, spread: Object, is_ready: Callable[[Object], bool], timeout_s: float) -> bool:
        """Return True once the newest known object is ready, False after the timeout."""
        deadline = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            while not is_ready(self.newest(spread)):
                changed = asyncio.ensure_future(self._entry(spread).changed.wait())
                await asyncio.wait((changed, deadline), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if deadline.done():
                    return False
            return True
        finally:
            deadline.cancel()

    def observe(self, spread: Object) -> None:
        """Note an object from the informer, for those that wait."""
        if (entry := self._entries.get(spread["metadata"]["uid"])) is not None:
            _wake(entry)

    async def _share_write(self, spread: Object, change: _Change) -> Any:
        entry = self._entry(spread)
        entry.waiting.append(change)
        try:
            async with entry.lock:
                if not change.is_done:
                    await self._write_until_done(entry, change, spread)
        finally:
            if not change.is_done:  # cancelled: the others that wait must not take this one along
                entry.waiting.remove(change)
        if change.error is not None:
            raise change.error
        return change.result

    def newest(self, spread: Object) -> Object:
        """Return the newest known state of an object from the informer."""
        metadata = spread["metadata"]
        cached = self._spreads.get(metadata["namespace"], metadata["name"])
        if cached is not None and cached["metadata"]["uid"] == metadata["uid"]:
            spread = max(spread, cached, key=revision_of)
        written = self._entry(spread).written
        return written if written is not None and revision_of(written) >= revision_of(spread) else spread

    def forget(self, spread: Object) -> None:
        """Drop what is kept for a deleted object."""
        self._entries.pop(spread["metadata"]["uid"], None)

    def _entry(self, spread: Object) -> _Entry:
        return self._entries.setdefault(spread["metadata"]["uid"], _Entry())

    async def _write_until_done(self, entry: _Entry, change: _Change, spread: Object) -> None:
        """Write all waiting changes together, again after a conflict, until this one is done; holds the lock."""
        current: Object | None = None if change.is_read_first else self.newest(spread)
        backoff_s = self._options.backoff_s_min
        while not change.is_done:
            batch = list(entry.waiting)
            for each in batch:
                each.tries += 1
            try:
                if current is None:
                    current = await self._read(spread)
                await self._write_batch(entry, current, batch)
            except NotFound:
                for each in batch:
                    each.result = None
                _finish(entry, batch)
                self.forget(spread)
            except (ApiError, ClusterError) as error:
                is_final = not (error.retryable or isinstance(error, Conflict))
                _finish(entry, [each for each in batch if is_final or each.tries >= self._options.tries_max], error)
                current = None
                if not change.is_done:
                    await self._clock.sleep(backoff_s * (1 + self._options.backoff_jitter * self._jitter()))
                    backoff_s = min(backoff_s * self._options.backoff_factor, self._options.backoff_s_max)

    async def _write_batch(self, entry: _Entry, current: Object, batch: list[_Change]) -> None:
        has_changed, decided = False, current
        for change in batch:
            try:
                status, change.result = change.decide(decided)
            except FederationError as error:  # of this object only; the others must not fail with it
                _finish(entry, [change], error)
                continue
            if status is not None:
                decided, has_changed = {**decided, "status": status}, True
        if has_changed:
            entry.written = await self._write(current, decided["status"])
            _wake(entry)
        _finish(entry, [change for change in batch if not change.is_done])

    async def _read(self, spread: Object) -> Object:
        metadata = spread["metadata"]
        request = self._client.get(WORKLOAD_SPREADS, metadata["name"], metadata["namespace"])
        found = to_hub(await self._answered(request))
        if found["metadata"]["uid"] != metadata["uid"]:
            raise NotFound(f"{metadata['name']}: another object has the name now")
        return found

    async def _write(self, current: Object, status: Object) -> Object:
        changed = {**current, "status": status}
        return to_hub(await self._answered(self._client.update(WORKLOAD_SPREADS, changed, subresource="status")))

    async def _answered(self, request: Coroutine[Any, Any, Object]) -> Object:
        """Return the answer to a request; RequestTimeout when there is none in time, as others wait for the lock."""
        asking = asyncio.ensure_future(request)
        deadline = asyncio.ensure_future(self._clock.sleep(self._options.request_s_max))
        try:
            await asyncio.wait((asking, deadline), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            raise RequestTimeout(f"the API server did not answer within {self._options.request_s_max:g} s")
        finally:
            deadline.cancel()
            asking.cancel()


def _wake(entry: _Entry) -> None:
    entry.changed.set()
    entry.changed = asyncio.Event()


def _finish(entry: _Entry, changes: list[_Change], error: FederationError | None = None) -> None:
    for change in changes:
        change.is_done, change.error = True, error
        if change in entry.waiting:  # not there any more if its caller was cancelled
            entry.waiting.remove(change)
