"""No file and no folder of the product imports itself through others, type-only imports included."""

import ast
from collections import defaultdict
from collections.abc import Container, Mapping
from functools import cache

import pytest
from tests.support.sources import product

pytestmark = pytest.mark.xdist_group("syntax trees")


@cache
def _files() -> Mapping[str, frozenset[str]]:
    """Return, per module, the other modules that it imports."""
    modules = {}
    for source in product():
        parts = source.name.removeprefix("plugins/").removesuffix(".py").split("/")
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = source
    edges = {}
    for module, source in modules.items():
        targets: set[str] = set()
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                targets.update(_named(node, modules))
            elif isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
        edges[module] = frozenset(targets & modules.keys()) - {module}
    return edges


def _named(node: ast.ImportFrom, modules: Container[str]) -> list[str]:
    """Return the modules that one `from … import …` names: submodules where there are any, else the module itself."""
    assert node.module is not None
    submodules = [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in submodules if name in modules] or [node.module]


def _folders() -> Mapping[str, set[str]]:
    files = _files()
    packages = {source.name.removeprefix("plugins/").rpartition("/")[0].replace("/", ".") for source in product()}
    edges: dict[str, set[str]] = defaultdict(set)
    for module, targets in files.items():
        here = _folder(module, packages)
        edges[here] |= {_folder(target, packages) for target in targets} - {here}
    return edges


def _folder(module: str, packages: Container[str]) -> str:
    """Return the folder of a module. A wing is one room: its rules use its names, and its reconcile uses its rules."""
    folder = module if module in packages else module.rpartition(".")[0]
    return ".".join(folder.split(".")[:3]) if folder.startswith("federation.features.") else folder


def _circles(edges: Mapping[str, frozenset[str] | set[str]]) -> list[str]:
    """Return the nodes that reach themselves: what is left after all nodes without open imports are taken away."""
    left = {node: {target for target in targets if target in edges} for node, targets in edges.items()}
    for _ in range(2):  # from both ends: what leads into a circle, and what a circle leads to, is not part of one
        while done := [node for node, targets in left.items() if not targets]:
            for node in done:
                del left[node]
            for targets in left.values():
                targets.difference_update(done)
        left = {node: {other for other, targets in left.items() if node in targets} for node in left}
    return sorted(left)


def test_no_file_imports_itself_through_others() -> None:
    files = _files()
    assert len(files) > 1000
    assert not _circles(files), "these files are part of a circle"


def test_no_folder_imports_itself_through_others() -> None:
    folders = _folders()
    assert len(folders) > 30
    assert not _circles(folders), "these folders are part of a circle"
