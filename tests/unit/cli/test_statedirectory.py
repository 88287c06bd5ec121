"""The state directory: private, locked by one process, rejected when a newer version wrote it."""

import json
from pathlib import Path

import pytest

from federation.apimachinery.errors import ConfigurationError
from federation.cli.statedirectory import FORMAT, StateDirectory


def test_the_directory_is_created_private_with_a_version_file(tmp_path: Path) -> None:
    directory = StateDirectory.open(tmp_path / "a" / "b")
    directory.close()

    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert json.loads((tmp_path / "a" / "b" / "version.json").read_text())["format"] == FORMAT


def test_a_second_process_is_rejected_until_the_first_releases_the_lock(tmp_path: Path) -> None:
    first = StateDirectory.open(tmp_path)
    with pytest.raises(ConfigurationError, match=r"another fedctl \(pid \d+\) uses it"):
        StateDirectory.open(tmp_path)
    first.close()
    StateDirectory.open(tmp_path).close()


def test_a_directory_of_a_newer_version_is_rejected_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "version.json"
    file.write_text(json.dumps({"format": FORMAT + 1, "writtenBy": "99.0"}))

    with pytest.raises(ConfigurationError, match=r"newer version \(99.0"):
        StateDirectory.open(tmp_path)

    assert json.loads(file.read_text())["writtenBy"] == "99.0"
    file.unlink()
    StateDirectory.open(tmp_path).close()  # the refusal has released the lock


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "x"}', "{}"])
def test_an_unreadable_version_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "version.json").write_text(text)
    with pytest.raises(ConfigurationError, match=r"version\.json: does not parse"):
        StateDirectory.open(tmp_path)


def test_a_path_that_is_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        StateDirectory.open(tmp_path / "file")
