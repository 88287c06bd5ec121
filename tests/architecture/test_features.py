"""The comparison with KubeAdmiral, Karmada and KubeFed is complete row by row, and names what exists."""

import re
from pathlib import Path

import pytest
from tests.support.sources import ROOT
from typer.main import get_command

from federation.cli.main import app

PAGE = ROOT / "docs" / "reference" / "features.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| feature", "|---"))
]


def headings(page: Path) -> set[str]:
    """Return the anchors of the page's headings."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.strip().lower()).replace(" ", "-") for line in lines}


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_says_who_has_the_feature_and_what_is_here(row: list[str]) -> None:
    assert len(row) == 4
    _, who, here, difference = row
    assert re.fullmatch(r"-|A?( ?K)?( ?F)?", who)
    assert here, "an empty cell"
    assert difference, "an empty cell"
    assert here != "none" or who != "-", "nobody has it, so it is no feature"


def test_sections_that_are_linked_exist() -> None:
    for target in re.findall(r"\]\(([^)\s]+#[^)\s]+)\)", TEXT):
        path, _, anchor = target.partition("#")
        assert anchor in headings((PAGE.parent / path).resolve()), target


def test_commands_that_are_named_exist() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    named = set(re.findall(r"`fedctl ([a-z-]+)", TEXT))
    assert named
    assert named <= set(commands)
