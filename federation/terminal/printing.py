"""Print tables, labelled lines and documents.

On a terminal, text is wrapped to its width. Into a file or a pipe nothing is wrapped, so that `grep` and `diff` see
whole lines.
"""

import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import orjson
import yaml
from rich.console import Console
from rich.markup import escape
from rich.segment import Segment, Segments
from rich.table import Table

from federation.apimachinery.resources import Object
from federation.terminal.escaping import EscapingConsole, raw_output

_PIPE_WIDTH = 4096
_TEXT_WIDTH_MIN = 20


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


def print_columns(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> list[int]:
    """Print aligned columns as kubectl does, however wide they are, and return their widths."""
    widths = [max(map(len, column)) for column in zip(headings, *lines, strict=True)]
    for line in (headings, *lines):
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
    return widths


def to_name(obj: Object) -> str:
    """Return the name of an object as kubectl prints and reads it: deployment.apps/nginx."""
    group = str(obj["apiVersion"]).rpartition("/")[0]
    return f"{str(obj['kind']).lower()}{'.' if group else ''}{group}/{obj['metadata']['name']}"


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


def print_document(value: object, form: str) -> None:
    """Print a value as `json` or `yaml`."""
    # A program reads the data as they are.
    output = sys.stdout if sys.stdout.isatty() else raw_output()
    if form == "json":
        print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode(), file=output)
    else:
        # PyYAML does not know the subclasses of str and int that orjson serialises as plain values.
        text = yaml.safe_dump(orjson.loads(orjson.dumps(value)), sort_keys=False, allow_unicode=True)
        print(text, end="", file=output)


def to_age(now: datetime, then: datetime) -> str:
    """Return an age as kubectl prints it: 5s, 3m, 4h, 2d."""
    seconds = max(0, int((now - then).total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size or (unit != "m" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
