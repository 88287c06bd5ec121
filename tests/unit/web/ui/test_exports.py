"""Lists as files: no cell becomes a formula, nothing breaks a line, and both formats have the same values."""

import csv
import io

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from federation.web.ui.exports import Cell, Table, to_cell, to_csv, to_file, to_yaml

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1+1", '=HYPERLINK("http://x")']  # noqa: RUF001


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_looks_like_a_formula_stays_text(text: str) -> None:
    assert to_cell(text) == f"'{text}"
    assert to_cell([text, "b"]) == f"'{text}, b"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, ""),
        (True, "true"),
        (-3, "-3"),
        (-1.5, "-1.5"),
        (0, "0"),
        ("", ""),
        ("web-1", "web-1"),
        ("a=b", "a=b"),
        (("x", "y"), "x, y"),
        ((), ""),
    ],
)
def test_other_cells_are_written_as_they_are(cell: Cell, text: str) -> None:
    assert to_cell(cell) == text


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text(), st.integers(), st.lists(st.text(max_size=5), max_size=3)), max_size=5))
def test_every_row_is_read_again_with_all_its_cells(rows: list[tuple[str, int, list[str]]]) -> None:
    table = Table("t", ("a", "b", "c"), rows)
    read = list(csv.reader(io.StringIO(to_csv(table), newline="")))
    assert read == [["a", "b", "c"], *([to_cell(cell) for cell in row] for row in rows)]
    for row in read[1:]:
        assert not row[0].startswith(("=", "+", "-", "@"))


def test_yaml_keeps_numbers_lists_and_odd_texts() -> None:
    rows = [("yes", None, 3, ("a", "b")), ("- x: !!python/object:os.system", "\u2028", True, ())]
    read = yaml.safe_load(to_yaml(Table("t", ("a", "b", "c", "d"), rows)))
    assert read == [
        {"a": "yes", "b": None, "c": 3, "d": ["a", "b"]},
        {"a": "- x: !!python/object:os.system", "b": "\u2028", "c": True, "d": []},
    ]


def test_a_cut_file_says_so_in_its_name() -> None:
    assert Table("objects", ("a",), [["x"]]).file == "objects"
    assert Table("objects", ("a",), [["x"]], is_complete=False).file == "objects-first-1"
    assert to_file(Table("t", ("a",), [["x"]]), "csv") == b"a\r\nx\r\n"
