"""Attack: a member writes escape sequences and bidirectional controls into messages that administrators read."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Literal

import pytest
import structlog
from rich.markup import escape as escape_markup

from federation.apimachinery import logs
from federation.apimachinery.controlcharacters import escape
from federation.terminal import execution
from federation.terminal.decisionview import print_title
from federation.terminal.escaping import escaped_output
from federation.terminal.plaintext import print_document
from federation.terminal.printing import make_console, make_table, print_field, print_table

HOSTILE = "\x1b]0;title\x07\x1b[2J\x1b[8mhidden\x9b31m\rover\u202egnp.exe\u2066\u200f\x00\x7f\ud800"
UNSAFE = set(HOSTILE) - set("]0;title[2J8mhidden31overgnp.exe")


class Terminal(io.StringIO):
    """A standard output that says that it is a terminal."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@contextmanager
def printed(*, is_terminal: bool) -> Iterator[Terminal]:
    """Run a block as a command whose output is a terminal or a pipe. Pytest replaces the streams after fixtures."""
    terminal = Terminal(is_terminal=is_terminal)
    with redirect_stdout(terminal), redirect_stderr(terminal), escaped_output():
        yield terminal


ANYWHERE = pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "pipe"])


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def text_of(output: Terminal) -> str:
    """Return what was written without rich's own bold."""
    return output.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")


@ANYWHERE
def test_nothing_that_is_printed_controls_the_terminal(*, is_terminal: bool) -> None:
    with printed(is_terminal=is_terminal) as output:
        print(f"message: {HOSTILE}")
        print(HOSTILE, file=sys.stderr)
        sys.stdout.writelines([HOSTILE, "\n"])
        console = make_console()
        print_title(console, HOSTILE, HOSTILE, "placed")
        print_field(console, "reason", HOSTILE)
        table = make_table()
        table.add_column("MESSAGE")
        table.add_row(escape_markup(HOSTILE))
        print_table(console, table)
        written = text_of(output)
        assert "over\\u202egnp.exe" in written
        assert not UNSAFE & set(written)


@ANYWHERE
def test_a_failure_is_one_safe_line(*, is_terminal: bool) -> None:
    with printed(is_terminal=is_terminal) as output:
        with pytest.raises(SystemExit):
            execution.fail(f"the member said {HOSTILE}")
        assert not UNSAFE & set(output.getvalue())


@ANYWHERE
def test_documents_are_safe_on_a_terminal_and_unchanged_for_programs(*, is_terminal: bool) -> None:
    with printed(is_terminal=is_terminal) as output:
        document = {"message": "a\u202eb\x1b"}
        print_document(document, "json")
        print_document(document, "yaml")
        written = output.getvalue()
        assert "\x1b" not in written
        assert ("\u202e" in written) is not output.isatty()


@ANYWHERE
def test_colours_of_our_own_remain_on_a_terminal(*, is_terminal: bool) -> None:
    with printed(is_terminal=is_terminal) as output:
        print_title(make_console(), "web", "", "placed")
        assert ("\x1b[1m" in output.getvalue()) is output.isatty()


def test_texts_in_all_languages_are_unchanged() -> None:
    for text in ("plain", "Grüße, 世界", "line\n\ttab", "עברית", "👩\u200d🚀"):
        assert escape(text) == text


@pytest.mark.parametrize("form", ["text", "json"])
def test_logs_are_escaped(form: Literal["text", "json"]) -> None:
    before = structlog.get_config()
    structlog.reset_defaults()
    try:
        with redirect_stderr(io.StringIO()) as written:
            logs.configure(form)
            log = structlog.get_logger("attack")
            log.info("member answered", message=HOSTILE, more=[HOSTILE])
            try:
                raise ValueError(HOSTILE)
            except ValueError:
                log.exception("failed", url=HOSTILE)
    finally:
        structlog.configure(**before)
    assert "hidden" in written.getvalue()
    assert not UNSAFE & set(written.getvalue())
