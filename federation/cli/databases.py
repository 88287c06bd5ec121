"""The work of `fedctl db`, `backup` and `restore`: settings in, lines out; the store's modules do the rest."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import orjson

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
from federation.cli.statedirectory import StateDirectory
from federation.planning.leftovers.restoration import Restoration
from federation.settings import Settings, from_environment
from federation.terminal.progress import Progress

_KEY_FILES = (*sharedkeys.FILES.values(), "tokens.json")
_SYSTEM_NAMESPACE = f"/core/{NAMESPACES.plural}/{names.SYSTEM_NAMESPACE}"


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
    with Progress() as progress:
        progress.report("changing the schema")
        before, after = maintenance.change_schema(settings.database_url, SCHEMA_VERSION if target is None else target)
    name = maintenance.name_of(settings.database_url)
    print(f"{name}: schema {before} -> {after}" if before != after else f"{name}: schema {after}, nothing to do")


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
            revision = backups.restore_backup(
                file,
                settings.database_url,
                is_replacement=is_replacement,
                transform=marking(about.created_at, now),
                report=progress.report,
            )
        seenrevisions.forget(directory.path)
    finally:
        directory.close()
    print(f"{about.objects} objects of {to_rfc3339(about.created_at)} restored; the next revision is {revision + 1}")
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
