"""The checklist of the OpenKruise features names every feature once, and tests that exist."""

import ast
import re
from functools import cache

import pytest
from tests.support.sources import ROOT

_PAGE = ROOT / "docs" / "reference" / "kruise-checklist.md"
_ROW = re.compile(r"^\| ([WUT]\d+) \| (.+?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
_TEST = re.compile(r"^`(tests/[\w/]+\.py)::(\w+)`$")
_NUMBERS = [
    f"{letter}{number}" for letter, count in (("W", 35), ("U", 23), ("T", 13)) for number in range(1, count + 1)
]
_OPEN = ("not yet", "-")
_ROWS: list[tuple[str, str, str, str]] = _ROW.findall(_PAGE.read_text(encoding="utf-8"))


@cache
def _tests_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(each.name for each in functions if each.name.startswith("test_"))


def test_each_feature_has_one_row_in_order() -> None:
    assert [number for number, *_ in _ROWS] == _NUMBERS


@pytest.mark.parametrize("row", _ROWS, ids=[row[0] for row in _ROWS])
def test_the_tests_of_a_feature_exist(row: tuple[str, str, str, str]) -> None:
    for cell in row[2:]:
        if cell in _OPEN:
            continue
        for name in cell.split("<br>"):
            found = _TEST.match(name)
            assert found is not None, f"{row[0]}: {name!r} is not the name of a test"
            file, test = found.groups()
            assert (ROOT / file).is_file(), f"{row[0]}: there is no file {file}"
            assert test in _tests_of(file), f"{row[0]}: {file} has no {test}"
