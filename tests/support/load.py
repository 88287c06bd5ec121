"""Writes from a thread while a test does something else to the server.

Tests wait for writes and never assume that some were made in time. An exception of a write is raised in the test, by a
wait or at the end of the block, so a load that broke cannot look like a quiet one.
"""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.support.federation import PATIENCE_S


class Load:
    """Calls `write` with 0, 1, 2, … one after the other during the block."""

    def __init__(self, write: Callable[[int], object]) -> None:
        self._write = write
        self._changed = threading.Condition()
        self._begun = 0
        self._is_over = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.acknowledged = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._thread.join(PATIENCE_S)
        if error is None:
            assert not self._thread.is_alive(), f"write {self._begun - 1} does not end"
            self._raise_failure()

    def wait_for_more(self, count: int) -> None:
        """Return once `count` writes that begin after this call are acknowledged."""
        with self._changed:
            wanted = self._begun + count
            is_done = self._changed.wait_for(
                lambda: self.acknowledged >= wanted or self._failure is not None, timeout=PATIENCE_S
            )
            self._raise_failure()
            assert is_done, f"{self.acknowledged} of {wanted} writes were acknowledged within {PATIENCE_S} s"

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise AssertionError(f"write {self._begun - 1} failed: {self._failure}") from self._failure

    def _run(self) -> None:
        while not self._is_over:
            with self._changed:
                index, self._begun = self._begun, self._begun + 1
            try:
                self._write(index)
            except Exception as failure:  # noqa: BLE001 - whatever it is, the test raises it
                with self._changed:
                    self._failure = failure
                    self._changed.notify_all()
                return
            with self._changed:
                self.acknowledged += 1
                self._changed.notify_all()
