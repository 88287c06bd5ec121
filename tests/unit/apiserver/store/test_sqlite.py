"""SQLite: errors with file and remedy, locks of other programs, side files, the URL."""

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from tests.support.stores import a_body

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.store.sqlite import SQLiteDatabase


async def ready(path: Path, **options: float) -> SQLStore:
    store = SQLStore(f"sqlite:///{path}", StoreOptions(**options))  # type: ignore[arg-type]  # fields by name
    await store.ready()
    return store


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/name", "mysql is not supported; use sqlite:///PATH or postgresql://"),
        ("no url at all", "does not parse; use sqlite:///PATH"),
        ("sqlite://", "SQLite needs a file"),
        ("sqlite:///:memory:", "SQLite needs a file"),
    ],
)
def test_a_url_that_cannot_be_right_is_refused_at_once(url: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SQLStore(url)


async def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no/such/state\.db: the directory does not exist; create .*no/such"):
        await ready(tmp_path / "no" / "such" / "state.db")


async def test_a_directory_in_the_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    with pytest.raises(ConfigurationError, match=r"state\.db: Is a directory"):
        await ready(tmp_path / "state.db")


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("this is not a database, it is a text of some length " * 40)
    with pytest.raises(ConfigurationError, match=r"state\.db: file is not a database; it is another file or damaged"):
        await ready(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_without_write_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)  # noqa: ASYNC240  # a temporary folder does not block
    with pytest.raises(ConfigurationError, match="Permission denied"):
        await ready(tmp_path / "state.db")


async def test_opening_again_works_after_a_refused_start(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("not a database " * 100)
    with pytest.raises(ConfigurationError):
        await ready(path)
    path.unlink()
    store = await ready(path)
    await store.create("/a", a_body())
    await store.close()


async def test_a_write_waits_for_the_lock_of_another_program(tmp_path: Path) -> None:
    store = await ready(tmp_path / "state.db")
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(store.create("/a", a_body()))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not writing.done()
    other.execute("ROLLBACK")
    other.close()
    assert (await writing).revision == 1
    await store.close()


async def test_reads_with_connections_of_their_own_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    database = SQLiteDatabase(make_url(f"sqlite:///{tmp_path / 'state.db'}"), StoreOptions(busy_timeout_s=0.05))
    await database.open()
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    reads = [database.read(lambda connection: connection.scalar(text("SELECT 1"))) for _ in range(4)]
    assert await asyncio.gather(*reads) == [1] * 4
    other.close()
    await database.close()


async def test_a_lock_past_the_timeout_is_reported_and_later_writes_succeed(tmp_path: Path) -> None:
    store = await ready(tmp_path / "state.db", busy_timeout_s=0.05)
    other = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"state\.db: database is locked; another process holds it; stop"):
        await store.create("/a", a_body())
    other.execute("ROLLBACK")
    other.close()
    assert (await store.create("/a", a_body())).revision == 1
    await store.close()


async def test_the_log_is_moved_into_the_file_and_starts_over(tmp_path: Path) -> None:
    store = await ready(tmp_path / "state.db")
    database = store.database
    await asyncio.gather(*(store.create(f"/{n}", a_body("x" * 5000)) for n in range(100)))
    before = (tmp_path / "state.db").stat().st_size
    await database._in_thread(database._connections.checkpoint)
    assert (tmp_path / "state.db").stat().st_size > max(before, 500_000)
    size = (tmp_path / "state.db-wal").stat().st_size
    await store.create("/after", a_body())
    assert (tmp_path / "state.db-wal").stat().st_size == size
    await store.close()


async def test_less_durable_writes_need_no_helper(tmp_path: Path) -> None:
    store = SQLStore(f"sqlite:///{tmp_path}/state.db", StoreOptions(synchronous="NORMAL"))
    await store.ready()
    await store.create("/a", a_body())
    assert store.database._fsync._process is None
    await store.close()


async def test_closing_twice_or_before_opening_does_nothing(tmp_path: Path) -> None:
    store = SQLStore(f"sqlite:///{tmp_path}/state.db")
    await store.close()
    store = await ready(tmp_path / "state.db")
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="is not open"):
        await store.create("/a", a_body())


async def test_a_new_file_can_return_free_pages(tmp_path: Path) -> None:
    store = await ready(tmp_path / "state.db")
    await store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,), "2 is INCREMENTAL"
