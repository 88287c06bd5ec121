"""Static tokens in a file."""

import os
import stat
from pathlib import Path

import pytest
import structlog

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.tokenfile import TokenFile


def test_tokens_are_stored_as_hashes(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token = TokenFile(path).add(user="ci", groups=["system:masters"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token not in path.read_text()
    user = TokenFile(path).find(token)
    assert user is not None
    assert (user.name, user.groups) == ("ci", ("system:masters", "system:authenticated"))
    assert TokenFile(path).find(token + "x") is None
    assert TokenFile(tmp_path / "none").find(token) is None


def test_a_removed_token_is_refused_without_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    file = TokenFile(path)
    token = file.add(user="ci")
    assert file.find(token) is not None
    path.unlink()
    assert file.find(token) is None


def test_a_damaged_file_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="is not a token file"):
        TokenFile(tmp_path / "tokens.json").load()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"{}",
        b"null",
        b'{"tokens": []}',
        b'{"tokens": {"a": 1}}',
        b'{"tokens": {"a": {"user": ""}}}',
        b'{"tokens": {"a": {"user": 5}}}',
        b'{"tokens": {"a": {"user": "x", "uid": 5}}}',
        b'{"tokens": {"a": {"user": "x", "groups": "system:masters"}}}',
        b'{"tokens": {"a": {"user": "x", "groups": [1]}}}',
        b'{"tokens": {"\xc3\xa9": {"user": "x"}}}',
    ],
)
def test_tokens_stay_valid_while_their_file_is_malformed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokens.json"
    file = TokenFile(path)
    token = file.add(user="ci")
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    with structlog.testing.capture_logs() as logs:
        assert file.find(token) is not None
        assert file.find("other") is None
    assert [entry["log_level"] for entry in logs] == ["error"]
    assert str(path) in logs[0]["reason"]
