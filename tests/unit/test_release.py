"""`make release`: versions, the change log, and archives that are the same for the same files."""

import hashlib
import shutil
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
    sign,
    signing_key,
    split_changelog,
    to_python,
    version_key,
    with_version,
)

SHORT = "### In short\n\n- much\n\n### Upgrade notes\n\n- nothing to do\n\n"
LOG = f"# Changelog\n\n## [Unreleased]\n\n{SHORT}### Added\n\n- all\n\n## [0.1.0] - 2026-01-01\n\n- old\n"


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
    text, notes, changes = split_changelog(LOG, "1.0.0", "2026-02-03")
    assert notes == SHORT.strip()
    assert changes == "# Changes of 1.0.0\n\n### Added\n\n- all\n"
    assert (
        "## [Unreleased]\n\n### In short\n\n### Upgrade notes\n\n## [1.0.0] - 2026-02-03\n\n### In short\n\n- much"
        in text
    )
    assert "docs/changes/1.0.0.md" in text
    assert "- all" not in text, "a version is one screen; all of its changes are a page"
    assert text.endswith("\n\n## [0.1.0] - 2026-01-01\n\n- old\n")


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ("", "nothing below"),
        (LOG.replace("- nothing to do\n", ""), "Upgrade notes"),
        (LOG.replace("- much\n", "- much\n" * 50), "more than one screen"),
        (LOG.replace("0.1.0", "1.0.0"), "already"),
    ],
    ids=["empty", "no upgrade notes", "long", "twice"],
)
def test_a_change_log_that_says_too_little_or_too_much_is_refused(log: str, says: str) -> None:
    with pytest.raises(ReleaseError, match=says):
        split_changelog(log, "1.0.0", "2026-02-03")


def test_the_change_log_can_be_released() -> None:
    _, notes, changes = split_changelog((ROOT / "CHANGELOG.md").read_text(), "9999.0.0", "2026-02-03")
    assert notes.startswith("### In short")
    assert "### Added" in changes


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_a_release_is_signed_with_the_key_of_git_or_refused(tmp_path: Path) -> None:
    def run(*words: str, text: str = "") -> str:
        done = subprocess.run(words, cwd=tmp_path, input=text, capture_output=True, text=True, check=True)
        return done.stdout

    run("git", "init", "--quiet")
    run("git", "config", "user.signingkey", "")
    with pytest.raises(ReleaseError, match=r"user\.signingkey"):
        signing_key(tmp_path)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key")
    run("git", "config", "user.signingkey", str(tmp_path / "key"))
    run("git", "config", "gpg.format", "ssh")
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("00  a\n")
    signature = sign(sums, *signing_key(tmp_path))
    (tmp_path / "signers").write_text(f"releases {(tmp_path / 'key.pub').read_text()}")
    verify = ("ssh-keygen", "-Y", "verify", "-f", "signers", "-I", "releases", "-n", "file", "-s", signature.name)
    assert "Good" in run(*verify, text=sums.read_text())


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
