"""`fedctl encryption-key`: creation, rotation, and no lost key."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.encryptionkeys import read_key_file
from federation.cli.main import app


def test_a_new_file_is_private_and_a_rotation_keeps_the_old_key(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    created = CliRunner().invoke(app, ["encryption-key", str(file)])
    assert created.exit_code == 0, created.output
    (first,) = read_key_file(file)
    assert first.id in created.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert CliRunner().invoke(app, ["encryption-key", str(file), "--rotate"]).exit_code == 0
    new, old = read_key_file(file)
    assert old == first
    assert new.id != old.id


def test_an_existing_file_is_never_replaced(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("something")
    result = CliRunner().invoke(app, ["encryption-key", str(file)])
    assert isinstance(result.exception, ConfigurationError)
    assert "give --rotate" in str(result.exception)
    assert file.read_text() == "something"


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_a_rotation_needs_a_usable_file(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.touch(0o600)
        file.write_text(content)
    result = CliRunner().invoke(app, ["encryption-key", str(file), "--rotate"])
    assert isinstance(result.exception, ConfigurationError)
