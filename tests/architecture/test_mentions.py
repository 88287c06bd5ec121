"""Modules that docstrings, comments and pages name by their path exist: a move leaves no reader behind."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.sources import ROOT, product, tracked

_PATH = re.compile(r"`((?:[a-z][a-z0-9_]*/)+[a-z0-9_]+\.py)`")
_HISTORY = ("CHANGELOG.md", "docs/decisions/")
"""They name what was there at their time."""


def _texts() -> Iterator[tuple[str, str]]:
    for source in product():
        yield source.name, source.text
    for name in tracked():
        if name.endswith(".md") and not name.startswith(_HISTORY):
            yield name, (ROOT / name).read_text(encoding="utf-8")


def _exists(path: str, name: str) -> bool:
    """Return whether the path exists from the root, from `federation`, or from a folder above the file."""
    folders = [ROOT, ROOT / "federation", ROOT / "plugins", *(ROOT / name).parents]
    return any((folder / path).is_file() for folder in folders if folder.is_relative_to(ROOT))


def test_modules_that_are_named_exist() -> None:
    gone = [f"{name}: `{path}`" for name, text in _texts() for path in _PATH.findall(text) if not _exists(path, name)]
    assert not gone, "\n" + "\n".join(sorted(set(gone)))


def test_a_path_is_looked_up_from_where_it_is_named() -> None:
    assert _exists("semantics/kinds/builtin.py", "federation/apiserver/verbs/reads.py")
    assert not _exists("semantics/kinds/builtin.py", "docs/architecture.md")
    assert Path(ROOT / "federation" / "wiring.py").is_file()
