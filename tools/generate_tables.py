"""Generate the statements that create the tables of a new SQLite database.

`python tools/generate_tables.py` runs the migrations and writes what they leave to
`federation/apiserver/store/newsqlite.sql`. `--check` writes nothing and exits 1 if the file is out of date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, create_engine

from federation.apiserver.store.migrate import NEW_SQLITE, migrate, revision_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.generated import update

_HEADER = "-- Generated from migrations/ by tools/generate_tables.py. Do not edit.\n"


def statements(connection: Connection) -> Iterator[str]:
    """Yield what creates the tables, indexes and rows of this database."""
    created = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid")
    tables = []
    for kind, name, sql in created.all():
        tables += [name] if kind == "table" else []
        yield sql
    for table in tables:
        for row in connection.exec_driver_sql(f"SELECT * FROM {table}").all():  # noqa: S608  # a name of our own
            yield f"INSERT INTO {table} VALUES ({', '.join(map(repr, row))})"  # noqa: S608  # likewise


def migrated() -> str:
    """Return the file: the statements of a database that all migrations have changed."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection, "new", revision_of(1))
        migrate(connection, "new")
        text = _HEADER + "".join(f"{statement};\n" for statement in statements(connection))
    engine.dispose()
    return text


def main(arguments: list[str]) -> int:
    """Write or check the file; return the exit code."""
    return update({NEW_SQLITE: migrated()}, (), "generate_tables.py", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
