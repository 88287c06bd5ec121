"""The repository's source for the architecture tests: modules, syntax trees and comments, read once."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Source:
    """One Python file; `name` is its path from the root, with slashes."""

    name: str

    @cached_property
    def text(self) -> str:
        return (ROOT / self.name).read_text(encoding="utf-8")

    @property
    def tree(self) -> ast.Module:
        return _tree(self.name)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def has(self, pattern: str) -> bool:
        """Return whether the text matches anywhere; a quick look before the comments or the tree are read."""
        return re.search(pattern, self.text) is not None

    def comments(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the text of every comment."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string

    def strings(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the value of every string literal that is not a docstring."""
        docstrings = {id(node.body[0].value) for node in self._documented() if ast.get_docstring(node) is not None}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield node.lineno, node.value

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield every function and method."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def calls(self) -> Iterator[tuple[int, str]]:
        """Yield the line and the dotted name of every call by name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield node.lineno, ast.unparse(node.func)

    def _documented(self) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
                node.body and isinstance(node.body[0], ast.Expr)
            ):
                yield node


@cache
def tracked() -> tuple[str, ...]:
    """Return the path of every file of the project: tracked, or untracked and not ignored."""
    found = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:  # an unpacked source archive
        return tuple(sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if _is_ours(path)))
    return tuple(sorted(name for name in found.stdout.split("\0") if name and (ROOT / name).is_file()))


def _is_ours(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.relative_to(ROOT).parts)
    return path.is_file() and not hidden


@cache
def sources(*folders: str) -> tuple[Source, ...]:
    """Return the Python files under the folders."""
    prefixes = tuple(f"{folder}/" for folder in folders)
    return tuple(_source(name) for name in tracked() if name.endswith(".py") and name.startswith(prefixes))


@cache
def _source(name: str) -> Source:
    return Source(name)


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(_source(name).text, name)


def forget_trees() -> None:
    """Release the syntax trees: hundreds of megabytes that each later collection of garbage would scan."""
    _tree.cache_clear()


def product() -> tuple[Source, ...]:
    """Return the shipped modules: the core and the plugins."""
    return sources("federation", "plugins")


def suite() -> tuple[Source, ...]:
    """Return the tests and their support modules."""
    return sources("tests")
