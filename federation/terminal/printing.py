"""Print tables and labelled lines with rich.

On a terminal, text is wrapped to its width. Into a file or a pipe nothing is wrapped, so that `grep` and `diff` see
whole lines.
"""

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment, Segments
from rich.table import Table

from federation.apimachinery.controlcharacters import escape as escape_controls
from federation.terminal.escaping import raw_output
from federation.terminal.plaintext import print_document, to_name

_PIPE_WIDTH = 4096
_TEXT_WIDTH_MIN = 20


class EscapingConsole(Console):
    """A console that escapes texts before it adds its own colours."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable with escaped texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(escape_controls(segment.text), segment.style)


def make_console() -> Console:
    """Return a console as wide as the terminal, or wide enough for every table when the output is not a terminal."""
    output = raw_output()
    console = EscapingConsole(file=output, highlight=False, emoji=False)
    if console.is_terminal:
        return console
    return EscapingConsole(file=output, highlight=False, emoji=False, width=_PIPE_WIDTH)


def make_table() -> Table:
    """Return a table in kubectl's style: no lines, two spaces between columns."""
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))


def print_table(console: Console, table: Table) -> None:
    """Print a table without trailing spaces."""
    for line in console.render_lines(table, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style, line[-1].control)
        console.print(Segments([*line, Segment.line()]), end="")


def print_rows(
    items: Sequence[Any], output: str, empty: str, rows: Iterable[Sequence[str]], headings: str, folded: str
) -> None:
    """Print `items` as json or yaml, as names, or as a table of `rows`; `empty` if there are none.

    `headings` are separated by ", "; only `folded` columns wrap.
    """
    if output in ("json", "yaml"):
        print_document(items, output)
    elif output == "name":
        for item in items:
            print(to_name(item))
    elif not items:
        print(empty)
    else:
        table = make_table()
        for heading in headings.split(", "):
            table.add_column(heading, no_wrap=True)
        for heading in filter(None, folded.split(", ")):
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*map(escape, row))
        print_table(make_console(), table)


def print_field(console: Console, label: str, text: str, *, width: int = 10) -> None:
    """Print a label and a text; further lines of the text are indented to its start."""
    print_wrapped(console, f"  {label:<{width - 1}} ", text)


def print_wrapped(console: Console, head: str, text: str) -> None:
    """Print `head` and a text, wrapped at words on a terminal."""
    lines = [text]
    if console.width < _PIPE_WIDTH:
        width = max(console.width - len(head), _TEXT_WIDTH_MIN)
        lines = textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        before = head if number == 0 else " " * len(head)
        console.print(f"{before}{line}".rstrip(), markup=False, soft_wrap=True)
