"""Migration of a database to this version's schema.

Runs inside the caller's transaction, which must hold the database's migration lock. Alembic is imported only if a
migration is needed: a start on an up-to-date database costs one SELECT, and a new SQLite database is created by the
statements in `newsqlite.sql`, to what the migrations would leave. Read `schema.py` for the version pair.
"""

import threading
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from federation.apimachinery.errors import Bug, ConfigurationError
from federation.apiserver.store.schema import MIGRATION_HEAD, SCHEMA_COMPAT, SCHEMA_VERSION, schema_version

NEW_SQLITE = Path(__file__).with_name("newsqlite.sql")
"""Written by `tools/generate_tables.py`; a test compares it with the migrations."""
_alembic = threading.Lock()
"""Alembic keeps its environment in module globals, so a process can migrate only one database at a time."""


def migrations_folder(package: Path | None = None) -> Path:
    """Return the folder of the Alembic scripts: inside the installed package, else at the top of the checkout."""
    package = package or Path(__file__).resolve().parents[2]
    for folder in (package / "_migrations", package.parent / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise ConfigurationError(f"the database migrations are missing from {package}; install the package again")


def revision_of(version: int) -> str:
    """Return the name of the migration that creates this version of the schema."""
    return f"{version:04d}"


def read_versions(connection: Connection, name: str) -> tuple[int, int]:
    """Return the schema's version and the oldest version that may use it, (0, 0) for a database without tables.

    ConfigurationError when this version is too old for it.
    """
    if not inspect(connection).has_table(schema_version.name):
        return 0, 0
    row = connection.execute(select(schema_version.c.version, schema_version.c.compat)).one_or_none()
    if row is None or not isinstance(row.version, int) or not isinstance(row.compat, int):
        raise ConfigurationError(f"{name}: its table {schema_version.name} is damaged; restore a backup")
    if row.compat > SCHEMA_VERSION:
        raise ConfigurationError(
            f"{name} was written by a newer version (schema {row.version}, readable from schema {row.compat} on; this "
            f"version knows schema {SCHEMA_VERSION}); install that version, or use another database"
        )
    return row.version, row.compat


def migrate(connection: Connection, name: str, target: str = MIGRATION_HEAD) -> None:
    """Upgrade the database called `name` to `target`; ConfigurationError when a newer version wrote it."""
    version, _ = read_versions(connection, name)
    if target == MIGRATION_HEAD and version >= SCHEMA_VERSION:
        return
    if target == MIGRATION_HEAD and connection.dialect.name == "sqlite" and not inspect(connection).get_table_names():
        for statement in NEW_SQLITE.read_text().partition("\n")[2].split(";\n")[:-1]:
            connection.exec_driver_sql(statement)
        return
    _run(connection, target)


def downgrade(connection: Connection, target: str) -> None:
    """Downgrade the database to `target` ("base": no tables)."""
    _run(connection, target, is_down=True)


def _run(connection: Connection, target: str, *, is_down: bool = False) -> None:
    from alembic import command  # noqa: PLC0415  # 0.2 s and 10 MB that a start on an up-to-date database saves
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _alembic:
        if is_down:
            command.downgrade(config, target)
            return
        command.upgrade(config, target)
    if target == MIGRATION_HEAD:
        row = connection.execute(select(schema_version.c.version, schema_version.c.compat)).one()
        if (row.version, row.compat) != (SCHEMA_VERSION, SCHEMA_COMPAT):
            raise Bug(f"the migrations end at schema {row.version}/{row.compat}, not {SCHEMA_VERSION}/{SCHEMA_COMPAT}")
