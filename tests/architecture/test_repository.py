"""What is in the repository besides code: pins, texts that are the same on every machine, links that lead somewhere."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from urllib.parse import unquote

from tests.support.sources import ROOT, tracked

_TEXT = (".py", ".md", ".toml", ".yaml", ".yml", ".txt", ".ini", ".cfg", ".json", ".go", ".mako", "Makefile", ".sh", "")
_ITSELF = "tests/architecture/test_repository.py"


def _texts() -> Iterable[tuple[str, str]]:
    for name in tracked():
        if name != _ITSELF and PurePosixPath(name).suffix in _TEXT:
            yield name, (ROOT / name).read_text(encoding="utf-8")


def _none(found: Iterable[str]) -> None:
    listed = sorted(set(found))
    assert not listed, "\n" + "\n".join(listed)


def test_dependencies_are_pinned_by_name_and_version_only() -> None:
    """A constraints file with download addresses would tie everybody to one index."""
    pin = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!-]*$")
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    _none(f"constraints.txt: {line!r}" for line in lines if line and not line.startswith("#") and not pin.match(line))
    names = [re.split("==", line)[0].lower().replace("_", "-") for line in lines if pin.match(line)]
    assert len(names) == len(set(names)), "a name is pinned twice"


def test_every_direct_dependency_is_pinned() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    _none(
        f"{dependency} is not in constraints.txt"
        for dependency in wanted
        if re.split(r"[\[<>=~ ]", dependency)[0].lower().replace("_", "-") not in pinned
    )


def test_nothing_speaks_of_one_particular_machine() -> None:
    """Paths of a home or a workspace and private indexes mean nothing elsewhere."""
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


def test_targets_that_the_documents_name_exist() -> None:
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


def test_relative_links_lead_somewhere() -> None:
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


def test_files_that_the_documents_name_exist() -> None:
    """A path in backquotes that starts with one of our folders is a promise."""
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
    """What is generated belongs in a build, unless it is small enough to review."""
    limit = 1_000_000
    _none(f"{name} has {size} bytes" for name in tracked() if (size := (ROOT / name).stat().st_size) > limit)


def test_texts_end_with_a_newline_and_have_no_blanks_at_the_end_of_lines() -> None:
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
