"""Events do not stay: each is removed when its time since the last write has passed, as kube-apiserver's leases do.

Expiry times are kept in memory in the order of writes, so that a sweep looks only at what is due. After a restart an
Event's own last timestamp counts.
"""

from collections import deque
from datetime import datetime, timedelta

from federation.base.clock import from_rfc3339
from federation.base.errors import KeyNotFound, RevisionConflict
from federation.registry import encoding
from federation.registry.access import Access

_PREFIX = "/core/events/"


class EventExpiry:
    """Removes expired Events; one per registry."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._due: deque[tuple[datetime, str, int]] = deque()

    async def run(self) -> None:
        """Sweep every `event_sweep_interval_s`, until cancelled."""
        access = self._access
        page = await access.store.list(_PREFIX)
        ages = [(_last_seen(entry.value, access.clock.now()), entry.key, entry.revision) for entry in page.entries]
        self._due.extend(sorted(ages))
        since = page.revision
        del page, ages  # a loop that never ends must not hold on to old bytes
        while True:
            await access.clock.sleep(access.options.event_sweep_interval_s)
            since = await self._note_writes(since)
            await self.sweep()

    async def _note_writes(self, since: int) -> int:
        """Read what was written since the last sweep; its expiry counts from now, at most one interval late."""
        newest = await self._access.store.revision()
        if newest == since:
            return since
        now = self._access.clock.now()
        page = await self._access.store.list(_PREFIX)
        self._due.extend((now, entry.key, entry.revision) for entry in page.entries if entry.revision > since)
        return page.revision

    async def sweep(self) -> int:
        """Remove what is due and return how many Events that were."""
        access = self._access
        limit = access.clock.now() - timedelta(seconds=access.options.event_ttl_s)
        removed = 0
        while self._due and self._due[0][0] <= limit:
            _, key, revision = self._due.popleft()
            entry = await access.store.get(key)
            if entry is None or entry.revision != revision:
                continue
            try:
                await access.store.delete(key, encoding.split(entry.value), revision)
            except (KeyNotFound, RevisionConflict):
                continue
            removed += 1
        return removed


def _last_seen(value: bytes, now: datetime) -> datetime:
    event = encoding.decode(value)
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    try:
        return from_rfc3339(text) if text else now
    except ValueError:
        return now
