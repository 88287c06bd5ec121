"""Escape what could control a terminal, in everything that a command prints.

Messages of members, of other users' objects and of errors are printed. Control characters in them move the cursor, set
titles or clear lines, and bidirectional ones reorder text, so that a member could write the administrator's terminal.
`escaped_output` covers `print` while a command runs, `printing.py` covers rich, whose own colours pass, and
`apimachinery/logs.py` covers logs. Output of containers (`logs`, `exec`) is copied as bytes, as kubectl does.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from federation.apimachinery.controlcharacters import escape


class EscapingStream:
    """A text stream that escapes what is written; everything else is that of `raw`."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write the escaped text."""
        self.raw.write(escape(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the escaped lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw_output() -> TextIO:
    """Return standard output without escapes, for a console that escapes itself."""
    return sys.stdout.raw if isinstance(sys.stdout, EscapingStream) else sys.stdout


@contextmanager
def escaped_output() -> Iterator[None]:
    """Escape what is printed to standard output and standard error."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = EscapingStream(streams[0]), EscapingStream(streams[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
