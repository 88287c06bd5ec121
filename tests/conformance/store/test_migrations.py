"""Migrations on both databases: up, down, up; the model equals the head; a newer schema is refused in one line."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text
from tests.support.stores import StoreBackend, a_body
from tools import generate_tables

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.database import Database
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.migrate import downgrade, migrate, migrations_folder
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.schema import MIGRATION_HEAD, SCHEMA_COMPAT, SCHEMA_VERSION, metadata
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.store.sqliteroom import RESERVE
from federation.journal import sqljournal  # noqa: F401  # adds its table to `metadata`

FOLDER = Path(__file__).resolve().parents[3] / "migrations"


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names()) - {"alembic_version", RESERVE}


async def opened(url: str) -> Database:
    database = open_database(url, StoreOptions())
    await database.open()
    return database


async def test_up_down_up(database_url: str) -> None:
    database = await opened(database_url)
    assert await database.read(tables) == set(metadata.tables)
    await database.write(lambda connection: downgrade(connection, "base"))
    assert await database.read(tables) == set()
    for target in ("0001", MIGRATION_HEAD):
        await database.write(lambda connection, target=target: migrate(connection, database.name, target))
    assert await database.read(tables) == set(metadata.tables)
    await database.close()


async def test_each_step_can_be_undone_and_redone_with_data_in_the_store(durable: StoreBackend) -> None:
    store = await durable.open()
    await store.create("/a", a_body())
    await durable.stop(store)
    database = await opened(durable.url)
    await database.write(lambda connection: downgrade(connection, "0001"))
    assert await database.read(tables) == {"federation_schema", "store_state", "store_log"}
    await database.close()
    store = await durable.open()
    assert (await store.create("/b", a_body())).revision == 2


async def test_the_model_equals_the_head(database_url: str) -> None:
    database = await opened(database_url)
    opts = {"include_name": lambda name, _type, _parents: name != RESERVE}
    differences = await database.read(
        lambda connection: compare_metadata(MigrationContext.configure(connection, opts=opts), metadata)
    )
    assert differences == []
    versions = await database.read(
        lambda connection: connection.execute(text("SELECT version, compat FROM federation_schema")).one()
    )
    assert tuple(versions) == (SCHEMA_VERSION, SCHEMA_COMPAT)
    await database.close()


def test_a_new_sqlite_database_is_what_the_migrations_leave() -> None:
    assert generate_tables.main(["--check"]) == 0
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection, "new")
        created = "".join(f"{statement};\n" for statement in generate_tables.statements(connection))
    engine.dispose()
    assert generate_tables.migrated().partition("\n")[2] == created


async def test_a_start_on_an_up_to_date_database_runs_no_migration(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await opened(database_url)).close()
    monkeypatch.setattr("alembic.command.upgrade", None)
    await (await opened(database_url)).close()


@pytest.mark.parametrize(("version", "compat"), [(SCHEMA_VERSION + 1, SCHEMA_VERSION)], ids=["readable"])
async def test_a_newer_schema_that_is_compatible_is_used_as_it_is(
    durable: StoreBackend, version: int, compat: int
) -> None:
    await set_versions(durable.url, version, compat)
    store = await durable.open()
    await store.create("/a", a_body())


async def test_a_newer_schema_that_is_not_compatible_is_refused_in_one_line(durable: StoreBackend) -> None:
    await set_versions(durable.url, SCHEMA_VERSION + 2, SCHEMA_VERSION + 1)
    store = SQLStore(durable.url)
    with pytest.raises(ConfigurationError, match=r"was written by a newer version .* install that version") as caught:
        await store.ready()
    assert "\n" not in str(caught.value)
    await store.close()


async def set_versions(url: str, version: int, compat: int) -> None:
    database = await opened(url)
    await database.write(
        lambda connection: connection.execute(
            text("UPDATE federation_schema SET version = :version, compat = :compat"),
            {"version": version, "compat": compat},
        )
    )
    await database.close()


def test_migrations_form_one_line_up_to_the_declared_head() -> None:
    script = ScriptDirectory(str(FOLDER))
    assert script.get_heads() == [MIGRATION_HEAD]
    assert len(list(script.walk_revisions())) == len(list((FOLDER / "versions").glob("*.py")))


def test_every_migration_states_whether_the_previous_version_may_run() -> None:
    for path in (FOLDER / "versions").glob("*.py"):
        assert "Safe while the previous version runs?" in path.read_text(), path.name


def test_migrations_are_found_in_a_checkout_and_in_an_installed_package(tmp_path: Path) -> None:
    assert migrations_folder() == FOLDER
    package = tmp_path / "federation"
    (package / "_migrations").mkdir(parents=True)
    (package / "_migrations" / "env.py").touch()
    assert migrations_folder(package) == package / "_migrations"
    (package / "_migrations" / "env.py").unlink()
    with pytest.raises(ConfigurationError, match="install the package again"):
        migrations_folder(package)
