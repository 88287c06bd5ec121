"""The pages that SQLite may use: free ones in the file, held ones behind its end, and a reserve for deletions.

The reserve is rows of zeros in a table of their own. Their pages are inside the file, which no other program can take.
On a full disk only writes that replace or delete rows are accepted (`quota.py`), and each removes what it replaces in
the same transaction (`writer.py`): a deletion needs no page, an update no more than its object grows. For these, rows
of the reserve are released one by one. When pages are free again, the rows are written again, and after the last one
all writes are accepted.

`PRAGMA max_page_count` is what is held. So SQLite refuses a transaction that a checkpoint could not move into the file.
All functions run on the writer's connection, within its lock, and take microseconds.

Decision: docs/decisions/0213-room-for-deletions-is-in-the-files.md
"""

import sqlite3

from federation.apiserver.store.heldspace import PAGE_BYTES, HeldSpace

RESERVE = "store_reserve"
"""The table is no part of the schema: other databases and backups have none."""
_ROW_PAGES = 64
_ROW_BYTES = 62 * PAGE_BYTES
# One megabyte, or a sixteenth of a larger file: as much as the marks of many deletions need that begin at once.
_ROWS_MIN = 4
_ROWS_MAX = 128
_PAGES_PER_ROW_RESERVED = 16 * _ROW_PAGES
_HOLD_PAGES = 256
_HOLD_STEPS = (_HOLD_PAGES, 64, 16, 4)
# Pages that are free before creations are accepted again; else each deletion would begin and end the state. A small
# file on a disk that others fill can have no more than its objects give back: once no page was freed for so many looks,
# a half of it is enough.
_SPARE_PAGES = 256
_SPARE_PAGES_MIN = 16
_LOOKS_MAX = 20


class Room:
    """The pages of one database."""

    def __init__(self, held: HeldSpace) -> None:
        self._held = held
        self._rows = 0
        self._limit = 0
        self.pages = 0
        self.free = 0
        self._looks = self._seen = 0

    @property
    def used(self) -> int:
        """How many pages have content."""
        return self.pages - self.free - self._rows * _ROW_PAGES

    @property
    def spare(self) -> int:
        """How many pages transactions can take before more space is needed from the disk."""
        return max(0, self._limit - self.pages) + self.free

    @property
    def kept(self) -> int:
        """How many free pages are not returned to the file system, because the reserve will need them."""
        return max(0, self._rows_wanted - self._rows) * _ROW_PAGES + _SPARE_PAGES

    @property
    def is_due(self) -> bool:
        """Whether more pages should be held before the next transaction."""
        return self.spare < _HOLD_PAGES // 2

    @property
    def has_any(self) -> bool:
        return self._rows > 0

    @property
    def is_reserved(self) -> bool:
        return self._rows >= self._rows_wanted

    @property
    def _rows_wanted(self) -> int:
        return min(_ROWS_MAX, max(_ROWS_MIN, self.used // _PAGES_PER_ROW_RESERVED))

    def start(self, driver: sqlite3.Connection) -> None:
        """Take over an open database, which may have no tables yet."""
        self.measure(driver)
        self._rows = self._limit = 0
        self.hold_again(driver)

    def start_reserve(self, driver: sqlite3.Connection) -> None:
        """Count the rows of the reserve."""
        self.measure(driver)
        found = driver.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (RESERVE,)).fetchone()[0]
        self._rows = found and driver.execute("SELECT count(*) FROM store_reserve").fetchone()[0]

    def measure(self, driver: sqlite3.Connection) -> None:
        """Read the numbers of pages and of free pages; within a transaction it costs a few microseconds."""
        (self.pages,) = driver.execute("PRAGMA page_count").fetchone()
        (self.free,) = driver.execute("PRAGMA freelist_count").fetchone()

    def hold_again(self, driver: sqlite3.Connection) -> None:
        """Hold space behind the end of the file, which a checkpoint has released."""
        if not self._held.hold(max(self._limit, self.pages), is_again=True):
            self._held.pages = self.pages
        self._set_limit(driver)
        if self.spare < _HOLD_PAGES:
            self.grow(driver)

    def grow(self, driver: sqlite3.Connection, pages: int = 0) -> bool:
        """Hold more pages, at least `pages` or as many as the disk still has; return whether there are any."""
        for more in (pages,) if pages else _HOLD_STEPS:
            if self._held.hold(max(self._limit, self.pages) + more):
                self._set_limit(driver)
                return True
        return False

    def release_row(self, driver: sqlite3.Connection) -> bool:
        """Release a part of the reserve; return whether there was one."""
        if not self._rows:
            return False
        self._change(driver, "DELETE FROM store_reserve WHERE number = ?", (self._rows,))
        self._rows -= 1
        return True

    def reserve_row(self, driver: sqlite3.Connection) -> None:
        """Write a part of the reserve."""
        if not self._rows:
            driver.execute("CREATE TABLE IF NOT EXISTS store_reserve (number INTEGER PRIMARY KEY, zeros BLOB NOT NULL)")
        self._change(driver, "INSERT INTO store_reserve VALUES (?, zeroblob(?))", (self._rows + 1, _ROW_BYTES))
        self._rows += 1

    def _change(self, driver: sqlite3.Connection, statement: str, parameters: tuple[int, ...]) -> None:
        driver.execute("BEGIN IMMEDIATE")
        try:
            driver.execute(statement, parameters)
            self.measure(driver)
            driver.execute("COMMIT")
        except sqlite3.Error:
            if driver.in_transaction:  # SQLite itself has ended it after some errors
                driver.execute("ROLLBACK")
            raise

    def find(self, driver: sqlite3.Connection) -> bool:
        """Return whether there are pages for the whole reserve and for other writes, holding more if possible."""
        reserved = max(0, self._rows_wanted - self._rows) * _ROW_PAGES
        missing = reserved + _SPARE_PAGES - self.spare
        if missing <= 0 or self.grow(driver, missing):
            return True
        self._looks = self._looks + 1 if self.spare <= self._seen else 0
        self._seen = self.spare
        beside = self.pages - self._rows_wanted * _ROW_PAGES
        return self._looks > _LOOKS_MAX and self.spare >= reserved + max(_SPARE_PAGES_MIN, beside // 2)

    def look_again(self) -> None:
        """Wait for the spare pages of a large file first, because the disk is full since now."""
        self._looks = 0

    def has_superfluous_row(self) -> bool:
        return self._rows > 2 * self._rows_wanted

    def _set_limit(self, driver: sqlite3.Connection) -> None:
        if self._limit != self._held.pages:
            self._limit = self._held.pages
            driver.execute(f"PRAGMA max_page_count = {self._limit}").fetchone()
