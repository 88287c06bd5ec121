"""Removal of Events some time after their last write, like the TTL leases of kube-apiserver.

Keys are queued in the order of their last writes, so a sweep reads only expired Events. After a restart an Event's
own last timestamp counts.
"""

from collections import deque
from datetime import datetime, timedelta
from functools import partial

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.errors import KeyNotFound, RevisionConflict, ValueDamaged
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.requestoptions import DeleteOptions

_PREFIX = "/core/events/"
_OWN = DeleteOptions()


class EventExpiry:
    """Removes expired Events; one per registry."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context
        self._info = context.kinds.lookup("", "v1", "events")
        self._due: deque[tuple[datetime, str, int]] = deque()

    async def run(self) -> None:
        """Sweep every `event_sweep_interval_s`, until cancelled."""
        context = self._context
        page = await context.store.list(_PREFIX)
        ages = [(_last_seen(entry.value, context.clock.now()), entry.key, entry.revision) for entry in page.entries]
        self._due.extend(sorted(ages))
        since = page.revision
        del page, ages  # this loop never ends and must not keep these bytes in memory
        while True:
            await context.clock.sleep(context.options.event_sweep_interval_s)
            since = await self._queue_new(since)
            await self.sweep()

    async def _queue_new(self, since: int) -> int:
        """Queue the Events written since the last sweep; their age counts from now, at most one interval late."""
        newest = await self._context.store.revision()
        if newest == since:
            return since
        now = self._context.clock.now()
        page = await self._context.store.list(_PREFIX)
        self._due.extend((now, entry.key, entry.revision) for entry in page.entries if entry.revision > since)
        return page.revision

    async def sweep(self) -> int:
        """Remove expired Events and return their number."""
        context = self._context
        limit = context.clock.now() - timedelta(seconds=context.options.event_ttl_s)
        removed = 0
        while self._due and self._due[0][0] <= limit:
            _, key, revision = self._due.popleft()
            try:
                entry = await context.store.get(key)
                if entry is None or entry.revision != revision:
                    continue
                remove = partial(context.store.delete, key, encoding.to_body(entry.value), revision)
                event = encoding.decode(entry.value)
                await context.store_charged(self._info, None, event, -len(entry.value), _OWN, remove)
            except (KeyNotFound, RevisionConflict, ValueDamaged):
                continue
            removed += 1
        return removed


def _last_seen(value: bytes, now: datetime) -> datetime:
    event = encoding.decode(value)
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    try:
        # An Event from the future would keep its place in the queue, and with it all after it.
        return min(from_rfc3339(text), now) if text else now
    except ValueError:
        return now
