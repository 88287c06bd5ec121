"""The space quota of a store: above it creates and updates are refused, deletions go on. A full disk does the same.

The size is that of the database without its free pages, so space that deletions and compaction release counts at once
on SQLite. While space is short the history ends at the newest revision: `compaction.py` removes the older one at once,
and `writer.py` refuses writes that need space and removes with each accepted one what it replaces.
"""

import asyncio

from federation.apimachinery.errors import StoreFull
from federation.apiserver.store.database import Database
from federation.apiserver.store.options import MEBIBYTE, StoreOptions


class SpaceQuota:
    """`StoreOptions.bytes_max` compared with the database's size."""

    def __init__(self, database: Database, options: StoreOptions) -> None:
        self._database = database
        self._bytes_max = options.bytes_max
        self.became_short = asyncio.Event()
        """Set when space becomes short, for a compaction at once."""
        self._was_exceeded = False

    @property
    def is_exceeded(self) -> bool:
        """Whether writes that need space are refused."""
        return self._database.is_full or 0 < self._bytes_max < self._database.bytes_used

    @property
    def keeps_no_history(self) -> bool:
        """Whether an accepted write removes what it replaces.

        Other processes on the database cannot follow such writes and load everything again, so that they do it only on
        a full disk.
        """
        return self._database.is_full or (not self._database.is_shared and self.is_exceeded)

    def check(self) -> bool:
        """Return whether writes that need space are refused, and wake the compaction when that begins."""
        if (is_exceeded := self.is_exceeded) and not self._was_exceeded:
            self.became_short.set()
        self._was_exceeded = is_exceeded
        return is_exceeded

    def describe(self) -> str:
        """Return the reason of the refusal with the remedy."""
        if self._database.is_full:
            return f"{self._database.name}: the disk is full; free space on it, or delete objects"
        used, limit = self._database.bytes_used / MEBIBYTE, self._bytes_max / MEBIBYTE
        return (
            f"database space exceeded: {used:.1f} MiB are used, --store-bytes-max allows {limit:.1f} MiB; delete"
            f" objects, which frees space within a minute, or raise --store-bytes-max"
        )

    def refusal(self) -> StoreFull:
        """Return the error of a refused write."""
        return StoreFull(self.describe())
