"""The handlers of one informer, called in order and synchronously: prompt ones at once, late ones after the first list.

After a start, what a user creates waits for the first lists of the host. Handlers whose knowledge decisions need
are prompt: they have seen every object when the list is complete. Those that only queue the check of an existing object
are late: they get the objects of the first list afterwards, in turns with all other work, and each change from then on
at once. So a late handler may see a change of an object before it gets the object itself. They live as long as the
informer.

Decision: docs/decisions/0178-late-handlers-get-the-first-list-afterwards.md
"""

import asyncio
from collections.abc import Callable
from itertools import islice

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.runtime.indexer import Cache
from federation.runtime.replay import replay
from federation.runtime.timeslice import list_slice

Handler = Callable[[Object | None, Object | None], None]
"""Called with `(None, new)` for an add, `(old, new)` for an update, `(old, None)` for a delete with the last state."""

_PART = 10
"""Objects to replay before asking for time again: about a millisecond."""


class Handlers:
    """Calls the handlers. `on_failure` is called in the `except` block of one that raised: a bug of ours."""

    def __init__(self, cache: Cache, clock: Clock, on_failure: Callable[[], None]) -> None:
        self._cache = cache
        self._clock = clock
        self._on_failure = on_failure
        self._active: list[Handler] = []
        self._waiting: list[Handler] = []
        """Late handlers that have not got the objects of the first list."""
        self._is_open = False
        self._group: asyncio.TaskGroup | None = None

    def add(self, handler: Handler, *, is_replayed: bool, is_late: bool) -> Callable[[], None]:
        """Add a handler, and replay the cached objects to it if it is to have them; return a function to remove it."""
        if is_late:
            self._waiting.append(handler)
            self._replay_late()
        else:
            self._active.append(handler)
            with replay():
                for obj in self._cache.scan() if is_replayed else ():
                    self._call(handler, None, obj)
        return lambda: self._remove(handler)

    def call(self, old: Object | None, new: Object | None) -> None:
        """Call the handlers with one change."""
        for handler in self._active:
            try:
                handler(old, new)
            except Exception:  # noqa: BLE001  # a broken handler must not stop the others
                self._on_failure()

    def open(self) -> None:
        """Call late handlers from now on: the first list is complete."""
        if not self._is_open:
            self._is_open = True
            self._replay_late()

    def run_in(self, group: asyncio.TaskGroup | None) -> None:
        """Replay in the group from now on; None while the informer does not run."""
        self._group = group
        self._replay_late()

    def _replay_late(self) -> None:
        if not self._is_open or not self._waiting or self._group is None:
            return
        handlers, self._waiting = self._waiting, []
        self._active.extend(handler for handler in handlers if handler not in self._active)
        self._group.create_task(self._replay(handlers))

    async def _replay(self, handlers: list[Handler]) -> None:
        try:
            objects, is_complete = self._cache.scan(), False
            while not is_complete:
                await list_slice().turn(self._clock)
                called, is_complete = [handler for handler in handlers if handler in self._active], True
                with replay():
                    for obj in islice(objects, _PART):
                        is_complete = False
                        for handler in called:
                            self._call(handler, None, obj)
        except asyncio.CancelledError:
            self._waiting.extend(handler for handler in handlers if handler in self._active)  # for the next run
            raise

    def _remove(self, handler: Handler) -> None:
        for handlers in (self._active, self._waiting):
            if handler in handlers:
                handlers.remove(handler)

    def _call(self, handler: Handler, old: Object | None, new: Object | None) -> None:
        try:
            handler(old, new)
        except Exception:  # noqa: BLE001  # a broken handler must not stop the others
            self._on_failure()
