"""The envelope, and the keys' text, file and command."""

import os
from pathlib import Path

import pytest
from tests.support.encryption import PREFIXES, a_key, write_keys

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.encryptionkeys import EncryptionOptions, format_keys, load_keys, parse_keys

NAME = "/core/secrets/default/db"
GOOD = format_keys([a_key("a")])


async def a_cipher(path: Path, *names: str, **fields: int) -> ValueCipher:
    options = write_keys(path, *names)
    cipher = ValueCipher(EncryptionOptions(options.key_file, prefixes=PREFIXES, **fields))  # type: ignore[arg-type]
    await cipher.open()
    return cipher


async def test_a_value_survives_a_round_trip_and_a_restart(tmp_path: Path) -> None:
    stored = (await a_cipher(tmp_path / "keys", "a")).encrypt(NAME, b"value")
    assert b"value" not in stored
    assert (await a_cipher(tmp_path / "keys", "a")).decrypt(NAME, stored) == b"value"


async def test_a_plain_value_is_read_as_it_is(tmp_path: Path) -> None:
    assert (await a_cipher(tmp_path / "keys", "a")).decrypt(NAME, b"{}") == b"{}"


async def test_a_data_key_is_replaced_after_its_number_of_writes(tmp_path: Path) -> None:
    cipher = await a_cipher(tmp_path / "keys", "a", writes_per_data_key_max=2)
    stored = [cipher.encrypt(NAME, b"value") for _ in range(3)]
    assert stored[0][:60] == stored[1][:60] != stored[2][:60]
    assert {cipher.decrypt(NAME, value) for value in stored} == {b"value"}


async def test_values_are_current_if_the_first_key_encrypted_them(tmp_path: Path) -> None:
    stored = (await a_cipher(tmp_path / "keys", "a")).encrypt(NAME, b"value")
    rotated = await a_cipher(tmp_path / "keys", "b", "a")
    assert not rotated.is_current(NAME, stored)
    assert not rotated.is_current(NAME, b"{}")
    assert rotated.is_current("/core/configmaps/default/db", b"{}")
    assert rotated.is_current(NAME, rotated.encrypt(NAME, rotated.decrypt(NAME, stored)))


@pytest.mark.parametrize("length", range(0, 120, 7))
async def test_a_truncated_value_is_unavailable(tmp_path: Path, length: int) -> None:
    cipher = await a_cipher(tmp_path / "keys", "a")
    stored = cipher.encrypt(NAME, b"value")[: max(length, 5)]
    if len(stored) < 5 + 2 + 60 + 12 + 5 + 16:
        with pytest.raises(StoreUnavailable, match=NAME):
            cipher.decrypt(NAME, stored)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 0 keys"),
        ("# none\n\n", "has 0 keys"),
        ("a\n", "line 1 is not `ID BASE64`"),
        ("-a " + GOOD.split()[1], "line 1 is not `ID BASE64`"),
        ("a AAAA\n", "line 1: key a is not the base64 of 32 bytes"),
        ("a not*base64\n", "line 1: key a is not the base64 of 32 bytes"),
        (GOOD + "# second\n" + GOOD, "line 3: a second key has the ID a"),
        ("".join(format_keys([a_key(f"k{n}")]) for n in range(101)), "has 101 keys"),
    ],
    ids=["empty", "comments only", "no key", "bad id", "short key", "no base64", "an id twice", "too many"],
)
def test_malformed_keys_are_refused_without_quoting_them(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        parse_keys(text, "the file")
    assert str(caught.value).startswith("the file")
    assert GOOD.split()[1] not in str(caught.value)


async def test_a_command_prints_the_keys(tmp_path: Path) -> None:
    write_keys(tmp_path / "keys", "a", "b")
    keys = await load_keys(EncryptionOptions(key_command=f"cat '{tmp_path}/keys'"))
    assert [key.id for key in keys] == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("false", "encryption-key-command false failed with exit code 1"),
        ("/nonexistent/program", "No such file or directory"),
        ("'unbalanced", "No closing quotation"),
        (" ", "is blank"),
        ("head -c 70000 /dev/zero", "more than 65536 bytes"),
        ("yes", "more than 65536 bytes"),
        ("sleep 60", "did not finish within 0.2 s"),
        ("printf '\\377'", "gives no text"),
        ("true", "has 0 keys"),
    ],
)
async def test_a_failing_command_is_one_line(command: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        await load_keys(EncryptionOptions(key_command=command, key_command_timeout_s=0.2 if "sleep" in command else 60))
    assert "\n" not in str(caught.value)


async def test_the_key_file_must_exist_and_be_the_only_source(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"No such file.*fedctl encryption-key"):
        await load_keys(EncryptionOptions(key_file=tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match="are both set"):
        await load_keys(EncryptionOptions(key_file=tmp_path / "missing", key_command="true"))
    assert await load_keys(EncryptionOptions()) == []


async def test_a_named_pipe_is_no_key_file_and_does_not_stop_the_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "keys", 0o600)
    with pytest.raises(ConfigurationError, match="is not a regular file"):
        await load_keys(EncryptionOptions(key_file=tmp_path / "keys"))


async def test_a_key_file_belongs_to_us_or_to_root_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(GOOD)
    file.chmod(0o600)
    await load_keys(EncryptionOptions(key_file=file))
    file.chmod(0o640)
    with pytest.raises(ConfigurationError, match="run: chmod 600"):
        await load_keys(EncryptionOptions(key_file=file))
    if os.geteuid() == 0:
        file.chmod(0o600)
        os.chown(file, 1, -1)
        with pytest.raises(ConfigurationError, match="belongs to uid 1; it must belong to 0"):
            await load_keys(EncryptionOptions(key_file=file))
