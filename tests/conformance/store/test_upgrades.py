"""The database of every earlier schema, with data, becomes one of this version, and back; versions work side by side."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, text
from tests.support.stores import StoreBackend, a_body, a_value, recording

from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store import maintenance
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.migrate import migrate, read_versions, revision_of
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.schema import MIGRATION_HEAD, SCHEMA_VERSION
from federation.apiserver.store.sql import SQLStore
from federation.journal.decisions import DecisionFilter
from federation.journal.sqljournal import SQLJournal

EARLIER = range(1, SCHEMA_VERSION)
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ROWS = (
    # revision, key, type, create_revision, previous_revision
    (1, "/a", 0, 1, None),
    (2, "/b", 0, 2, None),
    (3, "/a", 1, 1, 1),
    (4, "/b", 2, 2, 2),
    (5, "/c", 0, 5, None),
)


def write_rows(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
    """Append changes to the log as the first version does: without the columns that later ones added."""
    for revision, key, kind, created, previous in rows:
        values = {"r": revision, "k": key, "t": kind, "c": created, "p": previous, "v": a_value(revision, key)}
        connection.execute(
            text(
                "INSERT INTO store_log (revision, key, type, create_revision, previous_revision, value)"
                " VALUES (:r, :k, :t, :c, :p, :v)"
            ),
            values,
        )
        connection.execute(text("UPDATE store_state SET revision = :r"), values)


def write_decision(connection: Connection) -> None:
    connection.execute(
        text(
            "INSERT INTO decision (at_us, api_group, kind, namespace, name, outcome, duration_ms, explanation)"
            " VALUES (:at, 'apps', 'Deployment', 'default', 'web', 'Scheduled', 1.5, :explanation)"
        ),
        {"at": int(AT.timestamp() * 1_000_000), "explanation": b'{"outcome":"Scheduled"}'},
    )


def make_database(url: str, version: int) -> None:
    """Create a database as a release with this schema leaves it."""
    with maintenance.exclusively(url) as connection:
        migrate(connection, "old", revision_of(version))
        write_rows(connection, ROWS)
        if version >= 2:
            write_decision(connection)


@asynccontextmanager
async def journal_on(store: SQLStore) -> AsyncIterator[SQLJournal]:
    yield SQLJournal(store.database)


def test_migrations_are_named_by_the_schema_that_they_create() -> None:
    assert revision_of(SCHEMA_VERSION) == MIGRATION_HEAD


@pytest.mark.parametrize("version", EARLIER)
async def test_the_database_of_an_earlier_version_keeps_objects_history_and_decisions(
    durable: StoreBackend, version: int
) -> None:
    make_database(durable.url, version)
    store = await durable.open()
    assert isinstance(store, SQLStore)
    assert [(e.key, e.value) for e in (await store.list("/")).entries] == [
        ("/a", a_value(3, "/a")),
        ("/c", a_value(5, "/c")),
    ]
    assert [e.key for e in (await store.list("/", revision=2)).entries] == ["/a", "/b"]
    async with recording(store) as watch:
        assert [e.revision for e in await watch.wait_for(5)] == [1, 2, 3, 4, 5]
    assert (await store.update("/a", a_body("new"), 3)).revision == 6
    async with journal_on(store) as journal:
        found = await journal.query(DecisionFilter(name="web"))
    assert [(record.at, record.repeats) for record in found] == ([(AT, 0)] if version >= 2 else [])


@pytest.mark.parametrize("version", EARLIER)
async def test_a_downgraded_database_has_what_the_earlier_version_expects(durable: StoreBackend, version: int) -> None:
    store = await durable.open()
    entry = await store.create("/a", a_body("one"))
    await durable.stop(store)

    assert maintenance.change_schema(durable.url, version) == (SCHEMA_VERSION, version)
    with maintenance.exclusively(durable.url) as connection:
        assert read_versions(connection, "old") == (version, 1)
        write_rows(connection, [(2, "/b", 0, 2, None)])  # the earlier version works on it
    report = maintenance.check(durable.url)
    assert (report.version, report.objects, report.damaged, report.is_upgrade_due) == (version, 2, (), True)

    assert maintenance.change_schema(durable.url, SCHEMA_VERSION) == (version, SCHEMA_VERSION)
    store = await durable.open()
    assert (await store.get("/a")) == entry
    assert [e.key for e in (await store.list("/")).entries] == ["/a", "/b"]


async def test_the_previous_version_and_this_one_share_a_database(durable: StoreBackend) -> None:
    """A rolling update: the new process migrates, the old one continues to write rows as it knows them."""
    if not durable.url.startswith("postgresql"):
        pytest.skip("a SQLite file has one process")
    make_database(durable.url, SCHEMA_VERSION - 1)
    store = await durable.open()
    async with recording(store, since=5) as watch:
        with maintenance.exclusively(durable.url) as connection:
            write_rows(connection, [(6, "/old", 0, 6, None), (7, "/a", 1, 1, 3)])
        events = await watch.wait_for(7)
        assert [(e.revision, e.key) for e in events] == [(6, "/old"), (7, "/a")]
    assert (await store.update("/a", a_body("ours"), 7)).revision == 8
    assert (await store.create("/new", a_body())).revision == 9
    with maintenance.reading(durable.url) as connection:
        written = connection.execute(text("SELECT revision, previous_revision FROM store_log WHERE revision > 6"))
        assert [tuple(row) for row in written.all()] == [(7, 3), (8, 7), (9, None)]


async def test_a_schema_that_this_version_does_not_know_is_not_changed(durable: StoreBackend) -> None:
    await durable.stop(await durable.open())
    with maintenance.exclusively(durable.url) as connection:
        connection.execute(text(f"UPDATE federation_schema SET version = {SCHEMA_VERSION + 1}"))
    with pytest.raises(ConfigurationError, match=r"run this command of the newer version"):
        maintenance.change_schema(durable.url, 1)
    with pytest.raises(ConfigurationError, match=r"is not between 1 and"):
        maintenance.change_schema(durable.url, SCHEMA_VERSION + 1)
    with maintenance.exclusively(durable.url) as connection:
        connection.execute(text(f"UPDATE federation_schema SET compat = {SCHEMA_VERSION + 1}"))
    with pytest.raises(ConfigurationError, match=r"was written by a newer version .*; install that version"):
        maintenance.check(durable.url)


async def test_a_check_reads_a_running_database_and_names_damaged_objects(durable: StoreBackend) -> None:
    store = await durable.open()
    for name in "abc":
        await store.create(f"/{name}", a_body(name))
    entry = await store.get("/c")
    assert entry is not None
    await store.delete("/c", a_body(), entry.revision)
    report = maintenance.check(durable.url)
    assert (report.version, report.objects, report.revision, report.damaged) == (SCHEMA_VERSION, 2, 4, ())
    await durable.stop(store)
    with maintenance.exclusively(durable.url) as connection:
        connection.execute(text("UPDATE store_log SET value = :value WHERE key = '/b'"), {"value": b"{}"})
    assert maintenance.check(durable.url).damaged == ("/b",)


def test_a_database_that_is_not_there_is_named(durable: StoreBackend) -> None:
    with pytest.raises(ConfigurationError, match=r"check --dir and FEDERATION_STORE_URL"):
        maintenance.check(durable.url)


async def test_a_sqlite_file_in_use_is_not_migrated(durable: StoreBackend) -> None:
    if not durable.url.startswith("sqlite"):
        pytest.skip("the server's locks do it")
    await durable.open()
    with pytest.raises(ConfigurationError, match=r"is in use by process \d+; stop that process first"):
        maintenance.change_schema(durable.url, 1)


async def test_migrating_twice_at_once_does_it_once(durable: StoreBackend) -> None:
    """Two new processes start on a database of the previous version."""
    if not durable.url.startswith("postgresql"):
        pytest.skip("a SQLite file has one process")
    make_database(durable.url, SCHEMA_VERSION - 1)
    first, second = (open_database(durable.url, StoreOptions()) for _ in range(2))
    await first.open()
    await second.open()
    assert await second.read(lambda connection: read_versions(connection, "now")) == (SCHEMA_VERSION, 1)
    await first.close()
    await second.close()
