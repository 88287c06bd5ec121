"""Progress of commands that may take long: what a command is doing, if it has not ended after two seconds.

It is printed on standard error, so that output stays what it is; a quick command prints none. A thread prints it: the
work may be a transaction that lets no other code run.
"""

import sys
import threading
from types import TracebackType
from typing import Self

_INTERVAL_S = 2.0


class Progress:
    """Prints the latest report at most once in an interval, and never the same twice."""

    def __init__(self, interval_s: float = _INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._latest = self._printed = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print_reports, name="progress", daemon=True)

    def report(self, text: str) -> None:
        """Say what is being done now."""
        self._latest = text

    def print_latest(self) -> None:
        """Print the latest report unless it was the last printed."""
        if (text := self._latest) != self._printed:
            self._printed = text
            print(f"fedctl: {' '.join(text.split())} …", file=sys.stderr, flush=True)

    def _print_reports(self) -> None:
        while not self._ended.wait(self._interval_s):
            self.print_latest()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
