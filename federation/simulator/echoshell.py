"""The programs of simulated containers, for `kubectl exec`: echo, cat, hostname, true, false, and sh that runs these.

Sans I/O: it gets standard input and returns what is written where. `podconnections.py` moves the bytes.
"""

import shlex
from collections.abc import Sequence

STDOUT, STDERR = 1, 2
Output = list[tuple[int, bytes]]
_NOT_FOUND = 127
_LINE_BYTES_MAX = 4096


class EchoShell:
    """One running program. `code` is its exit code, None while it runs."""

    def __init__(self, argv: Sequence[str], *, hostname: str, is_tty: bool = False) -> None:
        self._hostname = hostname
        self._is_tty = is_tty
        self._line = b""
        self._last_code = 0
        self.code: int | None = None
        self._reads_lines = list(argv) in (["sh"], ["bash"], ["/bin/sh"], ["/bin/bash"])
        self._argv = list(argv)

    def start(self) -> Output:
        """Return what the program writes before it reads."""
        if self._reads_lines or self._argv == ["cat"]:
            return self._prompt()
        if len(self._argv) == 3 and self._argv[0].rpartition("/")[2] in ("sh", "bash") and self._argv[1] == "-c":
            output = self._run(self._argv[2])
        else:
            output = self._run(shlex.join(self._argv))
        self.code = self._last_code if self.code is None else self.code
        return output

    def feed(self, data: bytes) -> Output:
        """Return what the program writes for this standard input."""
        output: Output = []
        if self._is_tty:
            data = data.replace(b"\r", b"\n")
            output.append((STDOUT, data.replace(b"\x04", b"").replace(b"\n", b"\r\n")))
        if not self._reads_lines:
            output.append((STDOUT, data.replace(b"\x04", b"")))
        else:
            *lines, self._line = (self._line + data).split(b"\n")
            self._line = self._line[:_LINE_BYTES_MAX]
            for line in lines:
                if self.code is None:
                    output += self._run(line.decode(errors="replace")) + self._prompt()
        if self._is_tty and b"\x04" in data:
            output += self.end()
        return output

    def end(self) -> Output:
        """Return what the program writes at the end of standard input, which ends it."""
        output = self._run(self._line.decode(errors="replace")) if self._reads_lines and not self._is_tty else []
        self.code = self._last_code if self.code is None else self.code
        return output

    def _prompt(self) -> Output:
        return [(STDOUT, b"$ ")] if self._is_tty and self._reads_lines and self.code is None else []

    def _run(self, line: str) -> Output:
        try:
            words = shlex.split(line)
        except ValueError as problem:
            return self._fail(2, f"sh: {problem}")
        self._last_code = 0
        match words:
            case [] | ["true"]:
                return []
            case ["echo", *rest]:
                return self._write(" ".join(rest))
            case ["hostname"]:
                return self._write(self._hostname)
            case ["false"]:
                self._last_code = 1
                return []
            case ["exit", *rest]:
                self.code = int(rest[0]) % 256 if rest and rest[0].isascii() and rest[0].isdigit() else 0
                return []
            case _:
                return self._fail(_NOT_FOUND, f"sh: {words[0]}: not found")

    def _write(self, text: str) -> Output:
        return [(STDOUT, text.encode() + self._line_end)]

    def _fail(self, code: int, text: str) -> Output:
        self._last_code = code
        return [(STDOUT if self._is_tty else STDERR, text.encode() + self._line_end)]

    @property
    def _line_end(self) -> bytes:
        """A terminal's driver moves to the start of the line; both streams are one there."""
        return b"\r\n" if self._is_tty else b"\n"
