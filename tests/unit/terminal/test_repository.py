"""The files of a change come from Git as they were committed, and Git runs nothing that a repository names."""

import re
import subprocess
from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.terminal.repository import read_commits, read_directories

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.com")


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *arguments],
        cwd=directory,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.yaml").write_text("old")
    (tmp_path / "gone.yml").write_text("gone")
    (tmp_path / "same.yaml").write_text("same")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "checkout", "-qb", "change")
    (tmp_path / "a.yaml").write_text("new")
    (tmp_path / "gone.yml").unlink()
    (tmp_path / "dir with space").mkdir()
    (tmp_path / "dir with space" / "ü.json").write_text("added")
    (tmp_path / "notes.txt").write_text("no manifest")
    (tmp_path / "link.yaml").symlink_to("/etc/passwd")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "two")
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_files_of_both_sides_are_read_from_the_commits(repository: Path) -> None:
    git(repository, "checkout", "-q", "main")
    (repository / "same.yaml").write_text("the branch goes on")
    git(repository, "commit", "-qam", "three")
    (repository / "a.yaml").write_text("not committed")
    found = await read_commits("main", "change", [])
    assert found.before == {"a.yaml": "old", "gone.yml": "gone"}
    assert found.after == {"a.yaml": "new", "dir with space/ü.json": "added"}
    assert found.commit == git(repository, "rev-parse", "change")
    assert (await read_commits("main", "change", ["dir with space"])).after == {"dir with space/ü.json": "added"}
    assert (await read_commits("change", "change", [])).after == {}


async def test_a_path_without_manifests_is_refused_because_a_review_of_nothing_must_not_pass(repository: Path) -> None:
    (repository / "deploy").mkdir()
    (repository / "deploy" / "README").write_text("later")
    (repository / "text").write_text("no manifest")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "three")
    for path, says in (
        ("deplo/", "deplo/: neither commit has such a path; did you mean deploy?"),
        ("xyz", "xyz: neither commit has such a path; name a path that one of them has"),
        ("deploy", "deploy has no manifests (.yaml, .yml, .json)"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(says)):
            await read_commits("main", "change", [path])
    assert (await read_commits("main", "change", ["same.yaml"])).after == {}, "nothing changes there"
    assert (await read_commits("main", "change", ["gone.yml"])).before == {"gone.yml": "gone"}


async def test_a_repository_without_manifests_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="the repository has no manifests"):
        await read_commits("main", "main", [])


def test_directories_without_manifests_are_refused(tmp_path: Path) -> None:
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    with pytest.raises(ConfigurationError, match="have no manifests"):
        read_directories(tmp_path / "before", tmp_path / "after")


async def test_drivers_of_the_repository_do_not_run(repository: Path) -> None:
    (repository / ".gitattributes").write_text("*.yaml diff=evil filter=evil\n")
    git(repository, "config", "diff.evil.textconv", "touch ran; cat")
    git(repository, "config", "diff.evil.command", "touch ran; true")
    (repository / "a.yaml").write_text("newer")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "three")
    assert (await read_commits("main", "HEAD", [])).after["a.yaml"] == "newer"
    assert not (repository / "ran").exists()


@pytest.mark.parametrize(
    ("base", "says"),
    [("nowhere", "no such commit here"), ("--output=x", "name a commit"), ("", "name a commit")],
)
async def test_an_unknown_commit_is_named(repository: Path, base: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        await read_commits(base, "HEAD", [])
    assert not (repository / "x").exists()


async def test_histories_without_a_common_commit_are_refused(repository: Path) -> None:
    git(repository, "checkout", "-q", "--orphan", "other")
    git(repository, "commit", "-qm", "alone")
    with pytest.raises(ConfigurationError, match="fetch-depth"):
        await read_commits("main", "other", [])


async def test_without_a_repository_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(ConfigurationError, match="not a git repository"):
        await read_commits("main", "HEAD", [])


def test_directories_are_compared_with_those_below_them(tmp_path: Path) -> None:
    for side, text in (("old", "1"), ("new", "2")):
        (tmp_path / side / "sub").mkdir(parents=True)
        (tmp_path / side / "sub" / "a.yaml").write_text(text)
        (tmp_path / side / "same.yaml").write_text("same")
        (tmp_path / side / "link.yaml").symlink_to("/etc/passwd")
    found = read_directories(tmp_path / "old", tmp_path / "new")
    assert (found.before, found.after) == ({"sub/a.yaml": "1"}, {"sub/a.yaml": "2"})
    with pytest.raises(ConfigurationError, match="no such directory"):
        read_directories(tmp_path / "old", tmp_path / "missing")
    (tmp_path / "new" / "bad.yaml").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_directories(tmp_path / "old", tmp_path / "new")
