"""Writes of WorkloadSpread statuses, on which the admission of pods relies for its quotas.

The API server is the judge: every write carries a resourceVersion, and a conflict is decided again on the newest
object. A lock per WorkloadSpread keeps the writers of this process from conflicts with each other, and the changes that
wait for the lock share one write. The result of the last write is kept, because the informer lags behind it.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from federation.api.resources import WORKLOAD_SPREADS
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError, Conflict, FederationError, NotFound
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.features.workloadspread.rules.hub import to_hub
from federation.runtime.indexer import revision_of
from federation.runtime.informer import Informer
from federation.runtime.workqueue import Jitter

Decide = Callable[[Object], tuple[Object | None, Any]]
"""Takes the newest WorkloadSpread; returns its new status, None for no change, and a result for the caller."""


@dataclass(frozen=True, slots=True)
class LedgerOptions:
    """Limits of the writes."""

    tries_max: int = 8
    """Tries per change; only conflicts are tried again. With 4, three instances sometimes denied one of 50 pods."""
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

    __slots__ = ("decide", "error", "is_done", "result", "since", "tries")

    def __init__(self, decide: Decide, since: int = -1) -> None:
        self.decide = decide
        self.since = since
        """The change fails if another process has written after this revision; -1 to allow that."""
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
    own_since: int = 0
    """The revision after which all writes, up to `written`, are writes of this process."""


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

    async def change(self, spread: Object, decide: Decide) -> Any:
        """Write the status that `decide` returns for the newest object, and return its result.

        `decide` is called again after a conflict; it must not keep state. Returns None if the object is gone. Conflict
        when all tries met another writer, ApiError or ClusterError when the API server refuses or does not answer.
        """
        return await self._share_write(spread, _Change(decide))

    async def replace(self, spread: Object, decide: Decide) -> Any:
        """Like `change`, for a status that is computed from more than the object, such as its pods.

        Writes of this process since `spread` are allowed: `decide` gets them. Conflict when another process has written
        since, because it may have seen newer pods.
        """
        return await self._share_write(spread, _Change(decide, revision_of(spread)))

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
        written = self._entry(spread).written
        return written if written is not None and revision_of(written) >= revision_of(spread) else spread

    def forget(self, spread: Object) -> None:
        """Drop what is kept for a deleted object."""
        self._entries.pop(spread["metadata"]["uid"], None)

    def _entry(self, spread: Object) -> _Entry:
        return self._entries.setdefault(spread["metadata"]["uid"], _Entry())

    async def _write_until_done(self, entry: _Entry, change: _Change, spread: Object) -> None:
        """Write all waiting changes together, again after a conflict, until this one is done; holds the lock."""
        current: Object | None = self.newest(spread)
        backoff_s = self._options.backoff_s_min
        while not change.is_done:
            batch = list(entry.waiting)
            try:
                if current is None:
                    current = await self._read(spread)
                await self._write_batch(entry, current, batch)
            except Conflict as error:
                exhausted = [each for each in batch if each.tries >= self._options.tries_max]
                _finish(entry, exhausted, error)
                current = None
                if not change.is_done:
                    await self._clock.sleep(backoff_s * (1 + self._options.backoff_jitter * self._jitter()))
                    backoff_s = min(backoff_s * self._options.backoff_factor, self._options.backoff_s_max)
            except NotFound:
                for each in batch:
                    each.result = None
                _finish(entry, batch)
                self.forget(spread)
            except (ApiError, ClusterError) as error:
                _finish(entry, batch, error)

    async def _write_batch(self, entry: _Entry, current: Object, batch: list[_Change]) -> None:
        has_changed, decided = False, current
        if current is not entry.written:
            entry.own_since = revision_of(current)
        for change in batch:
            change.tries += 1
            try:
                if 0 <= change.since < entry.own_since:
                    raise Conflict("another process has written the status")
                status, change.result = change.decide(decided)
            except FederationError as error:  # of this object only; the others must not fail with it
                _finish(entry, [change], error)
                continue
            if status is not None:
                decided, has_changed = {**decided, "status": status}, True
        if has_changed:
            entry.written = await self._write(current, decided["status"])
        _finish(entry, [change for change in batch if not change.is_done])

    async def _read(self, spread: Object) -> Object:
        metadata = spread["metadata"]
        found = to_hub(await self._client.get(WORKLOAD_SPREADS, metadata["name"], metadata["namespace"]))
        if found["metadata"]["uid"] != metadata["uid"]:
            raise NotFound(f"{metadata['name']}: another object has the name now")
        return found

    async def _write(self, current: Object, status: Object) -> Object:
        written = await self._client.update(WORKLOAD_SPREADS, {**current, "status": status}, subresource="status")
        return to_hub(written)


def _finish(entry: _Entry, changes: list[_Change], error: FederationError | None = None) -> None:
    for change in changes:
        change.is_done, change.error = True, error
        if change in entry.waiting:  # not there any more if its caller was cancelled
            entry.waiting.remove(change)
