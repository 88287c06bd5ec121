"""The programs of simulated containers."""

import pytest

from federation.simulator.echoshell import STDERR, STDOUT, EchoShell


def run(*argv: str, stdin: bytes = b"", is_tty: bool = False) -> tuple[bytes, bytes, int | None]:
    """Return standard output, standard error and the exit code."""
    shell = EchoShell(argv, hostname="web-1", is_tty=is_tty)
    output = shell.start()
    if shell.code is None:
        output += shell.feed(stdin) if stdin else []
    if shell.code is None and not is_tty:
        output += shell.end()
    written = [b"".join(data for channel, data in output if channel == wanted) for wanted in (STDOUT, STDERR)]
    return written[0], written[1], shell.code


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["echo", "a b", "c"], (b"a b c\n", b"", 0)),
        (["echo", "$HOME;", "|"], (b"$HOME; |\n", b"", 0)),
        (["hostname"], (b"web-1\n", b"", 0)),
        (["true"], (b"", b"", 0)),
        (["false"], (b"", b"", 1)),
        (["sh", "-c", "exit 7"], (b"", b"", 7)),
        (["/bin/sh", "-c", "echo 'a  b'"], (b"a  b\n", b"", 0)),
        (["sh", "-c", "echo 'open"], (b"", b"sh: No closing quotation\n", 2)),
        (["nginx"], (b"", b"sh: nginx: not found\n", 127)),
        ([""], (b"", b"sh: : not found\n", 127)),
    ],
)
def test_a_command_that_does_not_read(argv: list[str], expected: tuple[bytes, bytes, int]) -> None:
    assert run(*argv) == expected


def test_cat_returns_what_it_reads() -> None:
    assert run("cat", stdin=b"\x00\xff\n") == (b"\x00\xff\n", b"", 0)


def test_a_shell_runs_lines_and_exits_with_the_last_code() -> None:
    assert run("sh", stdin=b"echo a\nfalse") == (b"a\n", b"", 1)


def test_a_shell_runs_nothing_after_exit() -> None:
    assert run("sh", stdin=b"exit 3\necho a\n") == (b"", b"", 3)


def test_a_terminal_shows_what_is_typed() -> None:
    assert run("sh", stdin=b"hostname\r\x04", is_tty=True) == (b"$ hostname\r\nweb-1\r\n$ ", b"", 0)
    assert run("sh", stdin=b"ls\r\x04", is_tty=True) == (b"$ ls\r\nsh: ls: not found\r\n$ ", b"", 127)
