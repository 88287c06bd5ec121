"""Rules for the repository's files: dependency pins, machine-independent texts, links that resolve."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.sources import ROOT, sources, tracked

pytestmark = pytest.mark.xdist_group("syntax trees")

_TEXT = (".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".ini", ".cfg", ".json", ".go", ".mako", "Makefile", ".sh", "")
_ITSELF = "tests/architecture/test_repository.py"


def _texts() -> Iterable[tuple[str, str]]:
    for name in tracked():
        if name != _ITSELF and PurePosixPath(name).suffix in _TEXT:
            yield name, (ROOT / name).read_text(encoding="utf-8")


def _none(found: Iterable[str]) -> None:
    listed = sorted(set(found))
    assert not listed, "\n" + "\n".join(listed)


def test_dependencies_are_pinned_by_name_version_and_hashes_only() -> None:
    """A constraints file with download addresses would tie every user to one index."""
    entry = re.compile(
        r"# [a-z]+(?:, [a-z]+)*\n[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.+!-]+(?: ; [^\\\n/]+)?"
        r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    )
    text = (ROOT / "constraints.txt").read_text().partition("\n")[2]
    assert entry.sub("", text) == ""
    names = [canonicalize_name(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)]
    assert len(names) == len(set(names)) > 100, "a name is pinned twice"


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def _pins() -> dict[str, str]:
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def _installed(requirements: Iterable[str]) -> dict[str, str]:
    """Return name and version of every installed distribution that the requirements need, directly or indirectly."""
    todo = [Requirement(text) for text in requirements]
    found: dict[str, str] = {}
    done: set[str] = set()
    while todo:
        requirement = todo.pop()
        if str(requirement) in done:
            continue
        done.add(str(requirement))
        name = canonicalize_name(requirement.name)
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # a development tool that this environment does not have
        found[name] = distribution.version
        todo += _requirements_of(distribution, requirement.extras)
    return found


def _requirements_of(distribution: metadata.Distribution, extras: set[str]) -> Iterator[Requirement]:
    for requirement in map(Requirement, distribution.requires or ()):
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in extras or {""}):
            yield requirement


def test_every_direct_dependency_is_pinned() -> None:
    project, pins = _project(), _pins()
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    _none(
        f"{dependency} is not in constraints.txt"
        for dependency in wanted
        if canonicalize_name(Requirement(dependency).name) not in pins
    )


def test_installed_dependencies_match_their_pins() -> None:
    project, pins = _project(), _pins()
    installed = _installed([*project["dependencies"], *project["optional-dependencies"]["test"]])
    assert len(installed) > 50
    _none(
        f"{name} {version} is installed, constraints.txt pins {pins.get(name, 'nothing')}"
        for name, version in installed.items()
        if pins.get(name) != version
    )


def test_every_dependency_is_imported() -> None:
    """A runtime dependency without an import is dead weight, unless a library loads it by itself."""
    loaded_by_name = {"greenlet": "SQLAlchemy's asyncio"}
    loaded_by_name |= {"httptools": "uvicorn", "wsproto": "uvicorn"}
    imported = {
        name.partition(".")[0]
        for source in sources("federation", "plugins/federation_plugins", "migrations")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }
    distributions = metadata.packages_distributions()
    provided = {canonicalize_name(name) for module in imported for name in distributions.get(module, ())}
    _none(
        dependency
        for dependency in _project()["dependencies"]
        if (name := canonicalize_name(Requirement(dependency).name)) not in provided and name not in loaded_by_name
    )


def test_no_text_names_a_particular_machine() -> None:
    """Home directories, workspaces and private indexes exist on one machine only."""
    private = re.compile(
        r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+|mnt|workspace)/[\w.]|(?:--index-url|--extra-index-url|find-links)"
        r"|\b(?:artifactory|nexus|jfrog|devpi)\b",
        re.IGNORECASE,
    )
    _none(
        f"{name}:{number} {found.group(0)!r}"
        for name, text in _texts()
        for number, line in enumerate(text.splitlines(), 1)
        if (found := private.search(line)) and "~/" not in found.group(0)
    )


def test_make_targets_in_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    documents = [
        (name, text) for name, text in _texts() if name.endswith(".md") and not name.startswith("benchmarks/results")
    ]
    _none(
        f"{name}: make {target}"
        for name, text in documents
        for target in re.findall(r"(?:`|\$ )make ([a-z-]+)", text)
        if target not in targets
    )


def test_relative_links_resolve() -> None:
    def broken() -> Iterable[str]:
        for name, text in _texts():
            if not name.endswith(".md"):
                continue
            folder = (ROOT / name).parent
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                path = unquote(target.partition("#")[0])
                if path and "://" not in target and not target.startswith("mailto:") and not (folder / path).exists():
                    yield f"{name}: {target}"

    _none(broken())


def test_every_picture_is_in_a_document() -> None:
    """A picture that no page shows is not looked at, and grows old."""
    pages = "".join(text for name, text in _texts() if name.startswith(("docs/", "README")) and name.endswith(".md"))
    pictures = [name for name in tracked() if name.startswith("docs/") and name.endswith((".png", ".svg"))]
    _none(name for name in pictures if f"({name.removeprefix('docs/')})" not in pages and f"({name})" not in pages)


def test_file_paths_in_documents_exist() -> None:
    """A path in backquotes that starts with one of our folders must exist."""
    folders = (
        "federation/",
        "plugins/",
        "tests/",
        "docs/",
        "examples/",
        "benchmarks/",
        "charts/",
        "migrations/",
        "tools/",
    )

    def missing() -> Iterable[str]:
        for name, text in _texts():
            if not name.endswith(".md"):
                continue
            for path in re.findall(r"`([\w./-]+)`", text):
                is_path = path.startswith(folders) and path.endswith((".py", ".md", ".yaml", ".json", "/"))
                if is_path and not (ROOT / path).exists():
                    yield f"{name}: {path}"

    _none(missing())


def test_no_file_is_huge() -> None:
    """Generated files belong in a build, unless they are small enough to review."""
    limit = 1_000_000
    _none(f"{name} has {size} bytes" for name in tracked() if (size := (ROOT / name).stat().st_size) > limit)


def test_texts_end_with_a_newline_and_lines_without_blanks() -> None:
    def untidy() -> Iterable[str]:
        for name, text in _texts():
            if name.endswith(".json") or "testdata" in name:
                continue
            if text and not text.endswith("\n"):
                yield f"{name} does not end with a newline"
            for number, line in enumerate(text.splitlines(), 1):
                if line.endswith((" ", "\t")):
                    yield f"{name}:{number} ends with a blank"

    _none(untidy())
