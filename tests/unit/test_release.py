"""`make release`: versions, the change log, and archives that are the same for the same files."""

import hashlib
import subprocess
import tarfile
from pathlib import Path

import pytest
from tests.support.vectors import ROOT
from tools.release import (
    CHARTS,
    ReleaseError,
    check_unchanged,
    checksums,
    pack_chart,
    split_changelog,
    to_python,
    version_key,
    with_version,
)

LOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- all\n\n## [0.1.0] - 2026-01-01\n\n- old\n"


def test_versions_are_ordered_and_release_candidates_come_first() -> None:
    ordered = ["0.9.10", "1.0.0-rc.1", "1.0.0-rc.10", "1.0.0", "1.0.1", "1.10.0", "10.0.0"]
    assert sorted(sorted(ordered), key=version_key) == ordered
    assert to_python("1.0.0-rc.2") == "1.0.0rc2"


@pytest.mark.parametrize("bad", ["", "1", "1.0", "v1.0.0", "1.0.0-beta", "01.0.0", "1.0.0-rc.0", "1.0.0 ", "1.0.0\n"])
def test_other_texts_are_no_versions(bad: str) -> None:
    with pytest.raises(ReleaseError, match=r"write X\.Y\.Z"):
        version_key(bad)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pyproject.toml", 'version = "2.3.4rc1"'),
        ("federation/__init__.py", '__version__ = "2.3.4rc1"'),
        *((f"charts/{chart}/Chart.yaml", "\nappVersion: 2.3.4-rc.1\n") for chart in CHARTS),
        ("docs/install.md", "docker build -t federation:2.3.4-rc.1 ."),
    ],
)
def test_each_file_that_names_the_version_gets_it(name: str, expected: str) -> None:
    assert expected in with_version(name, (ROOT / name).read_text(), "2.3.4-rc.1")
    with pytest.raises(ReleaseError, match="names no version"):
        with_version(name, "nothing", "2.3.4")


def test_the_unreleased_changes_become_those_of_the_version() -> None:
    text, notes = split_changelog(LOG, "1.0.0", "2026-02-03")
    assert notes == "### Added\n\n- all"
    assert "## [Unreleased]\n\n## [1.0.0] - 2026-02-03\n\n### Added" in text
    assert text.endswith("- old\n")
    for wrong, says in ((text, "nothing below"), (LOG.replace("0.1.0", "1.0.0"), "already"), ("", "nothing below")):
        with pytest.raises(ReleaseError, match=says):
            split_changelog(wrong, "1.0.0", "2026-02-03")


def test_what_was_edited_or_committed_during_the_build_is_not_released(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        options = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *options, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "--quiet")
    (tmp_path / "file").write_text("built")
    git("add", "file")
    git("commit", "--quiet", "--message=first")
    built = git("rev-parse", "HEAD")
    check_unchanged(built, tmp_path)
    (tmp_path / "file").write_text("edited")
    with pytest.raises(ReleaseError, match="has changes"):
        check_unchanged(built, tmp_path)
    git("commit", "--all", "--quiet", "--message=second")
    with pytest.raises(ReleaseError, match="another commit"):
        check_unchanged(built, tmp_path)


def test_archives_of_charts_have_the_same_bytes_each_time_and_sums_that_fit(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("a.tgz", "b.tgz"))
    for archive in (first, second):
        pack_chart(ROOT / "charts" / "federation", archive, 1_700_000_000)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as packed:
        assert "federation/Chart.yaml" in packed.getnames()
        assert {entry.mtime for entry in packed} == {1_700_000_000}
    digest = hashlib.sha256(first.read_bytes()).hexdigest()
    assert checksums(tmp_path).splitlines() == [f"{digest}  a.tgz", f"{digest}  b.tgz"]
