"""Lists as files: CSV for spreadsheets, YAML for programs. Pure.

Spreadsheets run a cell that begins with `=`, `+`, `-` or `@` as a formula, and names and messages are texts that other
users chose. Such a cell gets an apostrophe in front, which spreadsheets show as text. Characters that reorder text are
shown as their codes, as on pages. Numbers of ours stay numbers.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from federation.apimachinery.controlcharacters import escape_direction

Cell = str | int | float | bool | None | Sequence[str]
ROWS_MAX = 5_000
"""Rows of one file."""
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001  # wide forms count, too
TYPES = {"csv": "text/csv; charset=utf-8", "yaml": "application/yaml"}


@dataclass(frozen=True, slots=True)
class Table:
    """A list: its name, its columns, and its rows with a cell per column; `is_complete` is False if it was cut."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_complete: bool = True

    @property
    def file(self) -> str:
        """The name of the file without its ending."""
        return self.name if self.is_complete else f"{self.name}-first-{len(self.rows)}"


def to_file(table: Table, format_: str) -> bytes:
    """Return a table in one of the formats of `TYPES`."""
    return (to_csv(table) if format_ == "csv" else to_yaml(table)).encode()


def to_csv(table: Table) -> str:
    """Return a table as RFC 4180 says, with a line of titles."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    writer.writerows([to_cell(cell) for cell in row] for row in table.rows)
    return out.getvalue()


def to_cell(cell: Cell) -> str:
    """Return a cell as text that no spreadsheet runs."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, int | float):
        return str(cell)
    text = escape_direction(cell if isinstance(cell, str) else ", ".join(cell))
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULAS) else text


def to_yaml(table: Table) -> str:
    """Return a table as a list of mappings from column to value."""
    rows = [
        {
            column: list(cell) if isinstance(cell, Sequence) and not isinstance(cell, str) else cell
            for column, cell in zip(table.columns, row, strict=True)
        }
        for row in table.rows
    ]
    text = _dump(rows, is_plain=True)
    # YAML's own escapes keep the value, which programs read.
    return text if escape_direction(text) == text else _dump(rows, is_plain=False)


def _dump(rows: Sequence[Mapping[str, object]], *, is_plain: bool) -> str:
    return str(yaml.dump(rows, Dumper=yaml.CSafeDumper, sort_keys=False, width=120, allow_unicode=is_plain))
