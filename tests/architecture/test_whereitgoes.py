"""The table "Where does it go?" and the vocabulary of docs/architecture.md name places that exist."""

import re

import pytest
from tests.support.sources import ROOT

from federation.features.catalogue import FEATURES

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOTS = (ROOT, ROOT / "federation")
OWN = (
    "model.py",
    "rules.py",
    "controller.py",
    "reconcile.py",
    "admission.py",
    "names.py",
    "command.py",
    "view.py",
    "screens.py",
)
"""Files of a wing, which the table names without a folder."""


def rows(heading: str) -> list[str]:
    """Return the rows of the table below a heading."""
    _, _, below = TEXT.partition(f"## {heading}\n")
    section = below.partition("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][1:]


def places(row: str) -> list[str]:
    """Return the paths of a row."""
    found = re.findall(r"`([a-z][\w/]*(?:/|\.(?:py|toml)|/[\w/]+))`", row)
    return [place for place in found if place not in OWN and place != "rules/"]


@pytest.mark.parametrize("heading", ["Where does it go?", "One word for one thing"])
def test_places_exist(heading: str) -> None:
    named = [place for row in rows(heading) for place in places(row)]
    assert len(named) > 10
    missing = [place for place in named if not any((root / place).exists() for root in ROOTS)]
    assert not missing


def test_the_drawing_names_every_wing() -> None:
    _, _, below = TEXT.partition("   features/")
    assert below.partition("\n   ──")[0].replace("·", " ").split() == sorted(feature.name for feature in FEATURES)
