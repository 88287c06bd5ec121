"""The drawing in apimachinery/errors.py shows every exception class of the product below its parent."""

import ast
import builtins
import re

import pytest
from tests.support.sources import product

pytestmark = pytest.mark.xdist_group("syntax trees")

_TREE = "federation/apimachinery/errors.py"


def _drawn() -> dict[str, str]:
    """Return parent by class, as drawn: four columns per level, siblings separated by commas, comments after a colon."""
    source = next(source for source in product() if source.name == _TREE)
    parents: dict[str, str] = {}
    open_levels = ["FederationError"]
    for line in (ast.get_docstring(source.tree) or "").splitlines():
        entry = re.match(r"([ │]*)[├└]── ([^:]+)", line)
        if entry is None:
            continue
        level = len(entry[1]) // 4
        siblings = [name.removesuffix("*").strip() for name in entry[2].split(",")]
        del open_levels[level:]
        for name in siblings:
            parents[name] = open_levels[-1]
        open_levels.append(siblings[-1])
    return parents


def _defined() -> dict[str, str]:
    """Return parent by class for every exception class below the product's root."""
    bases: dict[str, list[str]] = {}
    for source in product():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
    parents: dict[str, str] = {}

    def is_exception(name: str) -> bool:
        found = getattr(builtins, name, None)
        if isinstance(found, type):
            return issubclass(found, BaseException)
        return any(is_exception(base) for base in bases.get(name, ()))

    for name, above in bases.items():
        if name != "FederationError" and is_exception(name):
            parents[name] = above[0]
    return parents


def test_every_exception_is_drawn_below_its_parent() -> None:
    drawn, defined = _drawn(), _defined()
    assert len(defined) > 40
    missing = {f"{name}({parent})" for name, parent in defined.items() if drawn.get(name) != parent}
    assert not missing, f"not drawn below their parent in {_TREE}: {sorted(missing)}"
    assert not drawn.keys() - defined.keys(), f"drawn and not defined: {sorted(drawn.keys() - defined.keys())}"
