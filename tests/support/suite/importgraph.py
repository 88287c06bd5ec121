"""Which file needs which: the import graph of product, plugins and tests, read from the syntax trees.

An edge is an import, a string that is the name of a module (`python -m federation.cli.main`, entry points) or ends in a
file's path (a page or manifest that a test reads), or a path that is built from the root (`ROOT / "docs"`: all of `docs`).
Tests of the architecture read every file. The edges of a file are cached by its size and time of change, because
parsing all files takes longer than most tests.
"""

import ast
import json
import os
import re
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.sources import ROOT, tracked

_CACHE = ROOT / ".pytest_cache" / "importgraph.json"
_PATH_LIKE = re.compile(r"[\w./-]*\.[a-z]{2,5}$|[\w-]+(/[\w.-]+)+/?$")
_NAME_CHARS_MAX = 200
_FIXTURES = {"shared_federation": "tests.support.shared"}
"""Fixtures of `tests/conftest.py`, and the module that each imports when a test uses it."""
_MODULE_LIKE = re.compile(r"(federation|federation_plugins|tests)(\.\w+)+(:\w+|\.)?$")
READS_EVERYTHING = ("tests/architecture/", "tests/unit/api/test_crds.py")
"""A change of any file reaches the tests below these: they read the sources, or the kinds of all features."""


class ImportGraph:
    """The files of the repository and what each needs; `distances` asks the other way round."""

    def __init__(self, names: Iterable[str] | None = None) -> None:
        self._files = tuple(names if names is not None else tracked())
        self._modules = {_module_of(name): name for name in self._files if name.endswith(".py")}
        self._by_base: dict[str, list[str]] = {}
        for name in self._files:
            self._by_base.setdefault(name.rpartition("/")[2], []).append(name)
        self._needed_by: dict[str, set[str]] = {}
        for name, texts in _read(self._files).items():
            for needed in self._resolve(name, texts):
                self._needed_by.setdefault(needed, set()).add(name)

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """Return every file that a change of `changed` can reach, with the number of steps to the closest of them."""
        found = dict.fromkeys(changed, 0)
        todo = deque(found)
        if found:
            found = {name: 1 for name in self._files if name.startswith(READS_EVERYTHING)} | found
        while todo:
            name = todo.popleft()
            for user in self._users(name):
                if user not in found:
                    found[user] = found[name] + 1
                    todo.append(user)
        return found

    def _users(self, name: str) -> Iterator[str]:
        yield from self._needed_by.get(name, ())
        folder, _, base = name.rpartition("/")
        if base in ("conftest.py", "__init__.py"):  # loaded before everything below
            yield from (other for other in self._files if other.startswith(f"{folder}/") and other.endswith(".py"))
        elif not name.endswith(".py"):  # a template or generated file belongs to the modules beside it
            yield from (other for other in self._files if other.rpartition("/")[0] == folder and other.endswith(".py"))

    def _resolve(self, user: str, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if text.endswith("."):  # the beginning of a name: any module of the package
                yield from (name for module, name in self._modules.items() if module.startswith(text) and name != user)
                continue
            module = text.partition(":")[0]
            while module:
                if (name := self._modules.get(module)) is not None:
                    if name != user:
                        yield name
                    break
                module = module.rpartition(".")[0]
            if text.startswith("/"):
                yield from self._built(text.strip("/"))
            elif "/" in text or text.endswith((".md", ".yaml", ".json", ".html", ".toml", ".txt")):
                yield from self._named(text.strip("/"))

    def _built(self, path: str) -> Iterator[str]:
        """Yield a file, or what is in a folder; without modules where it is a whole part of the repository."""
        for name in self._files:
            if name == path or (name.startswith(f"{path}/") and ("/" in path or not name.endswith(".py"))):
                yield name

    def _named(self, text: str) -> Iterator[str]:
        for name in self._by_base.get(text.rpartition("/")[2], ()):
            if name == text or name.endswith(f"/{text}"):
                yield name
        if "/" in text:  # a folder: everything in it
            yield from (name for name in self._files if name.startswith(f"{text}/") and not name.endswith(".py"))


def _module_of(name: str) -> str:
    path = name.removeprefix("plugins/").removesuffix(".py").removesuffix("/__init__")
    return path.replace("/", ".")


def _read(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of modules and files in each Python file, from the cache where the file has not changed."""
    cached = json.loads(_CACHE.read_text()) if _CACHE.exists() else {}
    reader = Path(__file__).stat().st_mtime_ns  # another version of this module finds other names
    found: dict[str, tuple[list[int], list[str]]] = {}
    for name in names:
        path = ROOT / name
        if not name.endswith(".py") or not path.is_file():
            continue
        stamp = [reader, path.stat().st_mtime_ns, path.stat().st_size]
        old = cached.get(name)
        found[name] = (stamp, old[1] if old and old[0] == stamp else sorted(set(_texts(path))))
    _CACHE.parent.mkdir(exist_ok=True)
    part = _CACHE.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(found))
    part.replace(_CACHE)  # another process never reads half of it
    texts = {name: entry[1] for name, entry in found.items()}
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    plugins = [module for group in entry_points.values() for module in group.values()]
    registry = "federation/scheduling/framework/registry.py"
    texts[registry] = [*texts.get(registry, ()), *plugins]
    return texts


def _texts(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    # What a fixture of a conftest imports when it runs is needed by the tests that use it, not by all of the folder.
    for node in tree.body if path.name == "conftest.py" else ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                yield from (f"{module}.{alias.name}" for alias in aliases)
            case ast.Constant(value=str(text)) if len(text) < _NAME_CHARS_MAX and (
                _MODULE_LIKE.match(text) or _PATH_LIKE.match(text)
            ):
                yield text
    inner = set[ast.expr]()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) if name in _FIXTURES:
                yield _FIXTURES[name]
            case ast.BinOp(op=ast.Div(), left=left) if node not in inner:
                while isinstance(left, ast.BinOp):
                    inner.add(left)
                    left = left.left
                if built := _built(node):
                    yield f"/{built}"


def _built(path: ast.expr) -> str:
    """Return what the code says of the path `ROOT / "folder" / "file"`, "" for one that starts elsewhere.

    `ROOT / "docs" / page` is not all of `docs`: the pages stand elsewhere in the module.
    """
    parts: list[str] = []
    is_whole = True
    while isinstance(path, ast.BinOp):
        if isinstance(path.right, ast.Constant):
            parts.insert(0, str(path.right.value))
        else:
            parts.clear()
            is_whole = False
        path = path.left
    is_ours = isinstance(path, ast.Name) and path.id == "ROOT" and (is_whole or len(parts) > 1)
    return "/".join(parts) if is_ours else ""
