"""Diffs of manifests: those of difflib while that is cheap, in linear time always."""

import difflib
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from federation.plans.diffs import object_diff


def a_map(data: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


_DATA = st.dictionaries(st.integers(0, 40).map(lambda number: f"k{number:02}"), st.sampled_from("abc"), max_size=30)


@given(_DATA, _DATA)
def test_small_manifests_have_the_diff_of_difflib(before: dict[str, str], after: dict[str, str]) -> None:
    texts = [yaml.safe_dump(a_map(data)).splitlines() for data in (before, after)]
    found = object_diff(a_map(before), a_map(after))
    assert [line for line in found if line[0] == "-"] == [
        line for line in list(difflib.unified_diff(*texts, lineterm=""))[2:] if line[0] == "-"
    ]
    for side, text in (("-", texts[0]), ("+", texts[1])):
        for at, line in _numbered(found, side):
            assert text[at - 1] == line


def _numbered(diff: list[str], side: str) -> list[tuple[int, str]]:
    """Return the lines of one side with the numbers that the headers give them."""
    found, number = [], 0
    for line in diff:
        if line.startswith("@@"):
            number = int(line.split(side)[1].split(",")[0].split()[0])
        elif line[0] in (" ", side):
            found.append((number, line[1:]))
            number += 1
    return found


def test_manifests_that_differ_everywhere_are_not_compared_line_by_line() -> None:
    before = {f"k{number:05}": "" for number in range(40_000)}
    after = {key: "x" if number % 2 else "" for number, key in enumerate(before)}
    found = object_diff(a_map(before), a_map(after))
    assert found[0].startswith("@@ 7")
    assert 0 < len(found) <= 2_001
