"""`fedctl encryption-key`: create the key file of `fedctl serve`, or put a new key first in it."""

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.auth.pki import write_private
from federation.apiserver.store.encryptionkeys import (
    KEY_BYTES,
    KEYS_MAX,
    EncryptionKey,
    format_keys,
    read_key_file,
)


def encryption_key_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The key file of `fedctl serve`.")],
    rotate: Annotated[bool, typer.Option("--rotate", help="Put a new key first in an existing file.")] = False,
) -> None:
    """Create the key that encrypts stored Secrets.

    After --rotate, restart `fedctl serve`. It encrypts all stored values again; remove old keys from the file when the
    metric federation_store_reencryption_pending is 0. Keep a copy of the file: without it, the values are lost.
    """
    create(file, SystemClock().now(), is_rotation=rotate)


def create(file: Path, now: datetime, *, is_rotation: bool) -> None:
    """Write the file and print the ID of the new key; ConfigurationError instead of replacing a file."""
    file = file.expanduser()
    key = EncryptionKey(f"{now:%Y%m%dT%H%M%SZ}-{os.urandom(3).hex()}", os.urandom(KEY_BYTES))
    if not is_rotation and file.exists():
        raise ConfigurationError(f"{file} exists; give --rotate to put a new key first in it, or name another file")
    older = read_key_file(file) if is_rotation else []
    if len(older) >= KEYS_MAX:
        raise ConfigurationError(f"{file} has {len(older)} keys already; remove the ones that are no longer needed")
    write_private(file, format_keys([key, *older]).encode())
    print(f"key {key.id} written to {file}")
