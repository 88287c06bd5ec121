"""What is printed is what was said: no emoji out of colons, no markup out of brackets, no line broken in a pipe."""

import io

import pytest
from rich.console import Console

from federation.cli.printing import a_table, print_field, print_table, print_wrapped, to_amount, to_console

SAID = "label a:key:b, image [bold]x[/bold], " + "and a long tail of words that goes on and on " * 6


def test_texts_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_wrapped(to_console(), "", SAID)
    assert capsys.readouterr().out == f"{SAID.rstrip()}\n"


def test_cells_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    table = a_table()
    table.add_column("NAME")
    table.add_row("a:key:b")
    print_table(to_console(), table)
    assert capsys.readouterr().out == "NAME\na:key:b\n"


def test_a_narrow_terminal_wraps_under_the_beginning_of_the_text() -> None:
    text = io.StringIO()
    print_field(Console(file=text, width=40), "reason", "one two three four five six seven eight nine")
    assert text.getvalue() == "  reason    one two three four five six\n            seven eight nine\n"


@pytest.mark.parametrize(
    ("resource", "value", "text"),
    [
        ("cpu", 47_500, "47.5"),
        ("memory", 206 * 10**9, "191.9Gi"),
        ("memory", -(2**30), "-1Gi"),
        ("memory", 10 * 2**40, "10Ti"),
        ("pods", 1200, "1200"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_are_read_at_a_glance(resource: str, value: int, text: str) -> None:
    assert to_amount(resource, value) == text
