"""The commands `fedctl db check|upgrade|downgrade`, `backup` and `restore`: work on the database of a control plane.

They need the directory or the database itself, not a running control plane.
"""

from pathlib import Path
from typing import Annotated

import typer

from federation.terminal import flags

app = typer.Typer(
    help="Check the database of a control plane, and change the version of its schema.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Replace = Annotated[bool, typer.Option("--replace", help="Discard the objects that the database has.")]
_BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


@app.command("check")
def check_command(directory: flags.Dir) -> None:
    """Read the whole database and report its schema and damaged objects.

    A control plane may run meanwhile. Exit code 0: nothing to do; 1: an upgrade is due, or something is damaged.
    """
    from federation.cli import databases

    if code := databases.check(databases.settings_of(directory)):
        raise typer.Exit(code)


@app.command("upgrade")
def upgrade_command(directory: flags.Dir) -> None:
    """Migrate the database to this version's schema.

    `fedctl serve` does the same at its start; this command does it before.
    """
    from federation.cli import databases

    databases.change_schema(databases.settings_of(directory), None)


@app.command("downgrade")
def downgrade_command(
    directory: flags.Dir,
    to: Annotated[int, typer.Option("--to", metavar="SCHEMA", help="Schema of the version to go back to.")],
) -> None:
    """Migrate the database back, before an older version is installed.

    Run it with the newer version, while no control plane runs. What only newer schemas store is discarded.
    """
    from federation.cli import databases

    databases.change_schema(databases.settings_of(directory), to)


@app.command("accept")
def accept_command(directory: flags.Dir) -> None:
    """Take the database as it is, after it was restored by other means than `fedctl restore`.

    The start of a control plane refuses a database that is older than it has seen, or another one. This command marks
    it as restored: what was created in members since then stays there and is listed by `fedctl leftovers`; later
    changes of objects that the database has are reverted. Run it while no control plane runs.
    """
    from federation.cli import databases

    databases.accept(databases.settings_of(directory))


def backup_command(file: _BackupFile, directory: flags.Dir) -> None:
    """Back up objects, decisions and keys into one file, while the control plane runs.

    The file is as secret as DIR/pki. A key file for encryption is not in it: keep a copy of that elsewhere.
    """
    from federation.cli import databases

    databases.backup(databases.settings_of(directory), file.expanduser())


def restore_command(file: _BackupFile, directory: flags.Dir, replace: _Replace = False) -> None:
    """Restore a backup into an empty directory or database, while no control plane runs.

    What was created in members since the backup stays there and is listed by `fedctl leftovers`.
    """
    from federation.cli import databases

    databases.restore(databases.settings_of(directory), file.expanduser(), is_replacement=replace)


def encryption_key_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The key file of `fedctl serve`.")],
    rotate: Annotated[bool, typer.Option("--rotate", help="Put a new key first in an existing file.")] = False,
) -> None:
    """Create the key that encrypts stored Secrets.

    After --rotate, restart `fedctl serve`. It encrypts all stored values again; remove old keys from the file when the
    metric federation_store_reencryption_pending is 0. Keep a copy of the file: without it, the values are lost.
    """
    from federation.apimachinery.clock import SystemClock
    from federation.cli import encryptionkey

    encryptionkey.create(file, SystemClock().now(), is_rotation=rotate)
