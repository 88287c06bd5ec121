"""Each decision note is in the index by subject, and the code that it explains names it."""

import re

from tests.support.sources import ROOT, sources

FOLDER = ROOT / "docs" / "decisions"
NOTES = {path.name for path in FOLDER.glob("[0-9]*.md")}
CODE = ("federation", "plugins", "tests", "tools", "benchmarks", "migrations")


def test_the_index_lists_every_note_once() -> None:
    listed = re.findall(r"\]\((\d[^)]+\.md)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(NOTES)


def test_no_two_notes_have_the_same_number() -> None:
    numbers = [name[:4] for name in NOTES]
    assert sorted(numbers) == sorted(set(numbers))


def test_every_note_is_named_by_the_code_that_it_explains() -> None:
    named = set()
    for source in sources(*CODE):
        named.update(re.findall(r"decisions?/(\d{4})", source.text))
    unnamed = sorted(name for name in NOTES if name[:4] not in named)
    assert not unnamed, (
        f"add a line `Decision: docs/decisions/…` to the docstring of the module that each explains: {unnamed}"
    )
