"""The space quota of a store: above it creates and updates are refused, deletions go on. A full disk does the same.

The size is that of the database without its free pages, so space that deletions and compaction release counts at once
on SQLite. Read `writer.py` for the refusal, `compaction.py` for the shorter history above the quota.
"""

from federation.apimachinery.errors import StoreFull
from federation.apiserver.store.database import Database
from federation.apiserver.store.options import MEBIBYTE, StoreOptions


class SpaceQuota:
    """`StoreOptions.bytes_max` compared with the database's size."""

    def __init__(self, database: Database, options: StoreOptions) -> None:
        self._database = database
        self._bytes_max = options.bytes_max

    @property
    def is_exceeded(self) -> bool:
        """Whether writes that need space are refused."""
        return self._database.is_full or 0 < self._bytes_max < self._database.bytes_used

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
