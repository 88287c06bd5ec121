"""No folder of the product imports itself through other folders, type-only imports included. A wing counts as one."""

import ast
from collections import defaultdict
from collections.abc import Container

import pytest
from tests.support.sources import product

pytestmark = pytest.mark.xdist_group("syntax trees")


def _folder(module: str, *, is_package: bool) -> str:
    folder = module if is_package else module.rpartition(".")[0]
    return ".".join(folder.split(".")[:3]) if folder.startswith("federation.features.") else folder


def _imports() -> dict[str, set[str]]:
    """Return, per folder, the other folders that its modules import."""
    modules = {}
    for source in product():
        parts = source.name.removeprefix("plugins/").removesuffix(".py").split("/")
        is_package = parts[-1] == "__init__"
        modules[".".join(parts[:-1] if is_package else parts)] = (source, is_package)
    edges: dict[str, set[str]] = defaultdict(set)
    for module, (source, is_package) in modules.items():
        here = _folder(module, is_package=is_package)
        for node in ast.walk(source.tree):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = _named(node, modules)
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            targets = [name for name in names if name in modules]
            edges[here] |= {_folder(name, is_package=modules[name][1]) for name in targets} - {here}
    return edges


def _named(node: ast.ImportFrom, modules: Container[str]) -> list[str]:
    """Return the modules that one `from … import …` names: submodules where there are any, else the module itself."""
    assert node.module is not None
    submodules = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in submodules if name in modules] or [node.module]


def _reaches(edges: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    todo = list(edges[start])
    while todo:
        folder = todo.pop()
        if folder not in seen:
            seen.add(folder)
            todo.extend(edges.get(folder, ()))
    return seen


def test_no_folder_imports_itself_through_others() -> None:
    edges = _imports()
    circles = sorted(folder for folder in list(edges) if folder in _reaches(edges, folder))
    assert len(edges) > 30
    assert not circles, f"these folders are part of a circle: {circles}"
