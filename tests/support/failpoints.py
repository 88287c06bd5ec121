"""Failpoints at the steps of a commit on PostgreSQL: the process sends itself a signal there.

`python -m tests.support.failpoints FILE ARGUMENTS…` runs `fedctl ARGUMENTS…` with them. A test arms a failpoint by writing
`STEP SIGNAL` into FILE, for example `inserted SIGKILL` (`arm`); the next commit that reaches the step removes the file
first. The steps are seen through events of SQLAlchemy and the driver, so the product has no code for them.
"""

import os
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import event
from sqlalchemy.engine import Engine


class Step(StrEnum):
    """A moment of a commit, in their order."""

    BEGUN = "begun"
    """The transaction has begun, and its first statement was not sent."""
    GUARDED = "guarded"
    """The row of the revision is changed, and locked for other processes."""
    INSERTED = "inserted"
    COMMITTING = "committing"
    COMMITTED = "committed"
    """The commit is durable, and no client has its answer yet."""


def arm(file: Path, step: Step, number: signal.Signals) -> None:
    """Make the process with failpoints in this file send itself the signal in its next commit, at the step."""
    written = file.with_suffix(".new")
    written.write_text(f"{step} {number.name}")
    written.rename(file)


class Failpoints:
    """The failpoints of this process."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._has_inserted = False

    def install(self) -> None:
        """Observe all engines of SQLAlchemy and all connections of psycopg."""
        event.listen(Engine, "before_cursor_execute", self._before_statement)
        event.listen(Engine, "after_cursor_execute", self._after_statement)
        commit, reach = psycopg.AsyncConnection.commit, self._reach

        async def observed_commit(connection: Any) -> None:
            has_inserted, self._has_inserted = self._has_inserted, False
            if has_inserted:
                reach(Step.COMMITTING)
            await commit(connection)
            if has_inserted:
                reach(Step.COMMITTED)

        psycopg.AsyncConnection.commit = observed_commit  # type: ignore[method-assign]  # the driver has no event for it

    def _before_statement(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE store_state SET revision"):
            self._reach(Step.BEGUN)

    def _after_statement(self, _c: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("UPDATE store_state SET revision"):
            self._reach(Step.GUARDED)
        elif statement.startswith("INSERT INTO store_log"):
            self._has_inserted = True
            self._reach(Step.INSERTED)

    def _reach(self, step: Step) -> None:
        try:
            armed, _, name = self._file.read_text().partition(" ")
        except FileNotFoundError:
            return
        if armed == step:
            self._file.unlink()
            os.kill(os.getpid(), signal.Signals[name])


def main() -> None:
    """Run fedctl with failpoints in the file that is the first argument."""
    from federation.cli.entry import main as run

    Failpoints(Path(sys.argv.pop(1))).install()
    run()


if __name__ == "__main__":
    main()
