"""The work of `fedctl db`, `backup` and `restore`: settings in, lines out; the store's modules do the rest."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer

from federation import __version__
from federation.api import names
from federation.apimachinery.amounts import to_count
from federation.apimachinery.clock import SystemClock, to_rfc3339
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import NAMESPACES
from federation.apiserver.auth import sharedkeys
from federation.apiserver.auth.pki import write_private
from federation.apiserver.store import backup as backups
from federation.apiserver.store import maintenance, seenrevisions
from federation.apiserver.store.history import read_state
from federation.apiserver.store.schema import SCHEMA_VERSION
from federation.cli.downgrading import withdraw
from federation.cli.statedirectory import StateDirectory
from federation.planning.leftovers.restoration import Restoration
from federation.settings import Settings, from_environment
from federation.terminal import flags
from federation.terminal.progress import Progress

_KEY_FILES = (*sharedkeys.FILES.values(), "tokens.json")
_SYSTEM_NAMESPACE = f"/core/{NAMESPACES.plural}/{names.SYSTEM_NAMESPACE}"
db_command = typer.Typer(
    help="Check the database of a control plane, and change the version of its schema.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Replace = Annotated[bool, typer.Option("--replace", help="Discard the objects that the database has.")]
_BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


@db_command.command("check")
def check_command(directory: flags.Dir) -> None:
    """Read the whole database and report its schema and damaged objects.

    A control plane may run meanwhile. Exit code 0: nothing to do; 1: an upgrade is due, or something is damaged.
    """
    if code := check(settings_of(directory)):
        raise typer.Exit(code)


@db_command.command("upgrade")
def upgrade_command(directory: flags.Dir) -> None:
    """Migrate the database to this version's schema.

    `fedctl serve` does the same at its start; this command does it before.
    """
    change_schema(settings_of(directory), None)


@db_command.command("downgrade")
def downgrade_command(
    directory: flags.Dir,
    to: Annotated[int, typer.Option("--to", metavar="SCHEMA", help="Schema of the version to go back to.")],
) -> None:
    """Migrate the database back, before an older version is installed.

    Run it with the newer version, while no control plane runs. What only newer schemas store is discarded.
    """
    change_schema(settings_of(directory), to)


@db_command.command("accept")
def accept_command(directory: flags.Dir) -> None:
    """Take the database as it is, after it was restored by other means than `fedctl restore`.

    The start of a control plane refuses a database that is older than it has seen, or another one. This command marks
    it as restored: what was created in members since then stays there and is listed by `fedctl leftovers`; later
    changes of objects that the database has are reverted. Run it while no control plane runs.
    """
    accept(settings_of(directory))


def backup_command(file: _BackupFile, directory: flags.Dir) -> None:
    """Back up objects, decisions and keys into one file, while the control plane runs.

    The file is as secret as DIR/pki. A key file for encryption is not in it: keep a copy of that elsewhere.
    """
    backup(settings_of(directory), file.expanduser())


def restore_command(file: _BackupFile, directory: flags.Dir, replace: _Replace = False) -> None:
    """Restore a backup into an empty directory or database, while no control plane runs.

    What was created in members since the backup stays there and is listed by `fedctl leftovers`.
    """
    restore(settings_of(directory), file.expanduser(), is_replacement=replace)


def settings_of(directory: Path) -> Settings:
    """Return the settings of the control plane in the directory."""
    return from_environment({"directory": directory.expanduser()})


def check(settings: Settings) -> int:
    """Print what is in the database; return 1 when something has to be done."""
    with Progress() as progress:
        report = maintenance.check(settings.database_url, progress.report)
    print(maintenance.name_of(settings.database_url))
    upgrade = f"; this version uses {SCHEMA_VERSION}: fedctl db upgrade --dir {settings.directory}"
    print(f"  schema    {report.version}{upgrade if report.is_upgrade_due else ''}")
    print(f"  objects   {report.objects}, {report.bytes / 1e6:.1f} MB, revision {report.revision}")
    print(f"  damage    {len(report.damaged) or 'none'}")
    for line in report.damaged:
        print(f"            {line}")
    if report.damaged:
        print("restore a backup, or delete the damaged objects through the API and create them again")
    return 1 if report.damaged or report.is_upgrade_due else 0


def change_schema(settings: Settings, target: int | None) -> None:
    """Migrate up to this version's schema, or to `target`, and print the result."""
    withdrawn = [] if target is None else withdraw(settings, target)
    with Progress() as progress:
        progress.report("changing the schema")
        before, after = maintenance.change_schema(settings.database_url, SCHEMA_VERSION if target is None else target)
    name = maintenance.name_of(settings.database_url)
    print(f"{name}: schema {before} -> {after}" if before != after else f"{name}: schema {after}, nothing to do")
    if withdrawn:
        print(f"FederatedTypeConfigs removed, which that version does not know: {', '.join(withdrawn)}")


def backup(settings: Settings, file: Path) -> None:
    """Write the backup and print what is in it."""
    folder = settings.directory.absolute() / "pki"
    files = {name: (folder / name).read_bytes() for name in _KEY_FILES if (folder / name).is_file()}
    now = SystemClock().now()
    with Progress() as progress:
        about = backups.write_backup(
            settings.database_url, file, files, now=now, written_by=__version__, report=progress.report
        )
    print(f"{file}: {about.objects} objects at revision {about.revision}, {len(files)} key files")
    if about.damaged:
        print(f"{len(about.damaged)} objects are damaged in the database, the first: {about.damaged[0]}")


def restore(settings: Settings, file: Path, *, is_replacement: bool) -> None:
    """Restore keys and database, and print what to do next."""
    about, files = backups.read_backup(file)
    directory = StateDirectory.open(settings.directory)
    try:
        _restore_keys(directory.path / "pki", files)
        now = SystemClock().now()
        with Progress() as progress:
            progress.report(f"restoring {to_count(about.objects, 'object')}")
            restored = backups.restore_backup(
                file,
                settings.database_url,
                is_replacement=is_replacement,
                transform=marking(about.created_at, now),
                report=progress.report,
            )
        seenrevisions.forget(directory.path)
    finally:
        directory.close()
    at, following = to_rfc3339(about.created_at), restored.revision + 1
    print(f"{about.objects} objects of {at} restored; the next revision is {following}")
    if restored.damaged:
        print(f"{len(restored.damaged)} objects are damaged in the backup, the first: {restored.damaged[0]}")
    print("start the control plane; what was created in members since then stays there: fedctl leftovers")


def accept(settings: Settings) -> None:
    """Take a database that was restored by other means than `restore`, and print what to do next."""
    directory = StateDirectory.open(settings.directory)
    try:
        seen = seenrevisions.read(directory.path)
        with maintenance.reading(settings.database_url) as connection:
            revision, _, _ = read_state(connection)
        backup_at = (seen.time_of(revision) if seen is not None else None) or datetime.fromtimestamp(0, UTC)
        after = backups.continue_database(settings.database_url, marking(backup_at, SystemClock().now()))
        seenrevisions.forget(directory.path)
    finally:
        directory.close()
    print(f"{maintenance.name_of(settings.database_url)} of {to_rfc3339(backup_at)}; the next revision is {after + 1}")
    print("start the control plane; what was created in members since then stays there: fedctl leftovers")


def _restore_keys(folder: Path, files: dict[str, bytes]) -> None:
    """Write the key files; ConfigurationError when the folder has other keys."""
    for name, content in files.items():
        path = folder / name
        if name not in _KEY_FILES:
            raise ConfigurationError(f"the backup has an unknown file {name}; use the fedctl that wrote it")
        if path.is_file() and path.read_bytes() != content and name.endswith(".key"):
            raise ConfigurationError(f"{path} is another key than the backup's; move {folder} away first")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(folder / name, content, mode=0o644 if name.endswith(".crt") else 0o600)


def marking(created_at: datetime, restored_at: datetime) -> Callable[[str, bytes], bytes]:
    """Return a transform that writes the time of the loss on the system namespace, where controllers read it."""
    return partial(_mark, Restoration(created_at, restored_at))


def _mark(restoration: Restoration, key: str, value: bytes) -> bytes:
    if key != _SYSTEM_NAMESPACE:
        return value
    namespace = orjson.loads(value)
    namespace["metadata"].setdefault("annotations", {})[names.RESTORED] = str(restoration)
    return orjson.dumps(namespace)
