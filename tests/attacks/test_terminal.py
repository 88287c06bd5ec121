"""Attack: a member, plugin or tenant writes control characters that reach the terminal of an administrator."""

import pytest

from federation.cli.main import _fail
from federation.cli.terminal.printing import make_console, make_table, print_field, print_table

HOSTILE = "\x1b[2J\x1b]0;owned\x07ok\x9b31m\rspoofed\x7f"
SHOWN = "ok\\x9b31m"


def assert_harmless(text: str) -> None:
    assert SHOWN in text
    for character in ("\x07", "\x9b", "\r", "\x7f", "\x1b[2J", "\x1b]"):
        assert character not in text


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("kind", ["field", "line", "table"])
def test_printed_texts_show_control_characters(
    kind: str, is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    console = make_console()
    assert console.is_terminal is is_terminal
    if kind == "field":
        print_field(console, "reason", HOSTILE)
    elif kind == "line":
        console.print(HOSTILE)
    else:
        table = make_table()
        table.add_column("REASON")
        table.add_row(HOSTILE)
        print_table(console, table)
    assert_harmless(capsys.readouterr().out)


def test_errors_show_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        _fail(f"the member answered: {HOSTILE}")
    assert_harmless(capsys.readouterr().err)
