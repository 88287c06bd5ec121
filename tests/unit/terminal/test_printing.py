"""Texts are printed literally: no emoji, no markup, no wrapped lines in a pipe."""

import io

import pytest
from rich.console import Console

from federation.terminal.printing import make_console, make_table, print_field, print_table, print_wrapped

SAID = "label a:key:b, image [bold]x[/bold], " + "and a long tail of words that goes on and on " * 6


def test_texts_are_printed_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_wrapped(make_console(), "", SAID)
    assert capsys.readouterr().out == f"{SAID.rstrip()}\n"


def test_cells_are_printed_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table = make_table()
    table.add_column("NAME")
    table.add_row("a:key:b")
    print_table(make_console(), table)
    assert capsys.readouterr().out == "NAME\na:key:b\n"


def test_wrapped_lines_are_indented_to_the_start_of_the_text() -> None:
    text = io.StringIO()
    print_field(Console(file=text, width=40), "reason", "one two three four five six seven eight nine")
    assert text.getvalue() == "  reason    one two three four five six\n            seven eight nine\n"
