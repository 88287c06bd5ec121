"""Docstrings begin with a noun or a verb. The number of those that do not can only shrink."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.support.sources import Source, product

pytestmark = pytest.mark.xdist_group("syntax trees")

QUESTIONS_MAX = 100
"""Docstrings of the product that begin with What, Which or Who. Lower the number when you mend one, never raise it."""
PLAIN = ("federation/delivery/", "federation/scheduling/", "federation/runtime/", "federation/guard/")
"""Packages without such docstrings."""


def _docstrings(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, those of constants and fields included."""
    for node in ast.walk(source.tree):
        for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", None), list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value


def _questions() -> Iterator[str]:
    for source in product():
        for line, text in _docstrings(source):
            if re.match(r"\s*(What|Which|Whom?|Whose)\b", text):
                yield f"{source.name}:{line} {text.splitlines()[0]}"


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    found = list(_questions())
    assert len(found) <= QUESTIONS_MAX, "use a noun where a What-clause stands\n" + "\n".join(found)
    assert [place for place in found if place.startswith(PLAIN)] == []
