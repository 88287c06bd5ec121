"""The keys that encrypt stored values: their options, their text format, and where the text comes from.

The text has one key per line, `ID BASE64`, where BASE64 is 32 random bytes; empty lines and lines that start with `#`
are ignored. The first key encrypts, every key decrypts: to rotate, put a new key first and keep the old one until all
values are encrypted again. The text is the content of a private file or the output of a command, which is run once per
start, so that a key management service needs no request per write. Read `encryption.py` next.
"""

import asyncio
import base64
import binascii
import os
import re
import shlex
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from federation.apimachinery.errors import ConfigurationError

KEY_BYTES = 32
KEYS_MAX = 100
_TEXT_BYTES_MAX = 64 * 1024
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class EncryptionOptions:
    """The encrypted resources, and the source of the keys; without a source nothing is encrypted."""

    key_file: Path | None = None
    """File with the keys; only its owner may have access to it."""

    key_command: str = ""
    """Command that prints the keys, split like a shell's words but run without a shell."""

    key_command_timeout_s: float = 10.0
    """Time for that command; a start must not wait for a key service for ever."""

    prefixes: tuple[str, ...] = ()
    """Prefixes of the names whose values are encrypted: store keys, and names that other tables give their values."""

    is_secret: Callable[[bytes], bool] = lambda _value: False
    """Tells which other values are encrypted, by their content."""

    writes_per_data_key_max: int = 1 << 24
    """Values encrypted with one data key; random nonces of 96 bits allow 2^32."""

    rows_per_transaction_max: int = 20
    """Rows that one transaction encrypts again after a rotation: under a millisecond at 3 kB each."""


class EncryptionKey(NamedTuple):
    """A key that encrypts data keys."""

    id: str
    secret: bytes


async def load_keys(options: EncryptionOptions) -> list[EncryptionKey]:
    """Return the keys, an empty list without a source; ConfigurationError names the source and the remedy."""
    if options.key_file is not None and options.key_command:
        raise ConfigurationError("encryption-key-file and encryption-key-command are both set; give only one of them")
    if options.key_file is not None:
        source = f"encryption-key-file {options.key_file}"
        return parse_keys(await asyncio.to_thread(_read_private, options.key_file, source), source)
    if options.key_command:
        source = "encryption-key-command"
        return parse_keys(await _run(options.key_command, options.key_command_timeout_s, source), source)
    return []


def parse_keys(text: str, source: str) -> list[EncryptionKey]:
    """Return the keys in the text; ConfigurationError names `source` and the line, and never quotes a key."""
    keys: list[EncryptionKey] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"{source}: line {number}"
        if len(words) != 2 or not _ID.fullmatch(words[0]):
            raise ConfigurationError(f"{where} is not `ID BASE64`, with an ID of 1 to 63 letters, digits, . _ or -")
        try:
            secret = base64.b64decode(words[1], validate=True)
        except binascii.Error:
            secret = b""
        if len(secret) != KEY_BYTES:
            raise ConfigurationError(f"{where}: key {words[0]} is not the base64 of {KEY_BYTES} bytes")
        if any(words[0] == key.id for key in keys):
            raise ConfigurationError(f"{where}: a second key has the ID {words[0]}; give every key its own")
        keys.append(EncryptionKey(words[0], secret))
    if not 1 <= len(keys) <= KEYS_MAX:
        raise ConfigurationError(f"{source} has {len(keys)} keys; 1 to {KEYS_MAX} are needed")
    return keys


def format_keys(keys: Sequence[EncryptionKey]) -> str:
    """Return the text of the keys."""
    return "".join(f"{key.id} {base64.b64encode(key.secret).decode()}\n" for key in keys)


def read_key_file(path: Path) -> list[EncryptionKey]:
    """Return the keys in a private file; ConfigurationError."""
    source = f"key file {path}"
    return parse_keys(_read_private(path, source), source)


def _read_private(path: Path, source: str) -> str:
    try:
        # Without O_NONBLOCK a named pipe would wait for its writer for ever.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ConfigurationError(
                    f"{source} is not a regular file; give the path of a file with lines `ID BASE64`"
                )
            if stat.S_IMODE(status.st_mode) & 0o077:
                raise ConfigurationError(f"{source} is accessible to other users; run: chmod 600 {path}")
            if status.st_uid not in (0, os.geteuid()):
                raise ConfigurationError(f"{source} belongs to uid {status.st_uid}; it must belong to {os.geteuid()}")
            return _decode(file.read(_TEXT_BYTES_MAX + 1), source)
    except OSError as error:
        raise ConfigurationError(f"{source}: {error.strerror}; create it with: fedctl encryption-key {path}") from error


async def _run(command: str, timeout_s: float, source: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigurationError(f"{source}: {error}") from error
    if not words:
        raise ConfigurationError(f"{source} is blank; give a program and its arguments")
    source = f"{source} {words[0]}"
    readable, writable = os.pipe()
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(readable, "rb")
    )
    try:
        process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.DEVNULL, stdout=writable)
    except OSError as error:
        transport.close()
        raise ConfigurationError(f"{source}: {error.strerror}; give the path of a program") from error
    finally:
        os.close(writable)
    try:
        async with asyncio.timeout(timeout_s):
            output = await _read_up_to(stream, _TEXT_BYTES_MAX + 1)
            if len(output) <= _TEXT_BYTES_MAX and await process.wait():
                raise ConfigurationError(
                    f"{source} failed with exit code {process.returncode}; its standard error says why"
                )
    except TimeoutError:
        raise ConfigurationError(f"{source} did not finish within {timeout_s:g} s; run it by hand") from None
    finally:
        transport.close()  # the pipe is ours: with asyncio's, wait() would not return while unread output is left
        if process.returncode is None:
            process.kill()
            await process.wait()
    return _decode(output, source)


async def _read_up_to(stream: asyncio.StreamReader, bytes_max: int) -> bytes:
    parts: list[bytes] = []
    missing = bytes_max
    while missing and (part := await stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _decode(data: bytes, source: str) -> str:
    if len(data) > _TEXT_BYTES_MAX:
        raise ConfigurationError(f"{source} gives more than {_TEXT_BYTES_MAX} bytes; it must give lines of `ID BASE64`")
    try:
        return data.decode("ascii")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{source} gives no text; it must give lines of `ID BASE64`") from None
