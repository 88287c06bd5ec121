"""Durability over an orderly restart, kill -9 during writes, and the loss of a helper or connection."""

import contextlib
import os
import random
import shutil
import signal
from pathlib import Path

import psutil
import pytest
from tests.conformance.store.test_watches import write_some
from tests.support.postgres import PostgresServer
from tests.support.store_child import a_child
from tests.support.stores import StoreBackend, a_body, a_value, recording

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.interface import Entry, EventType
from federation.apiserver.store.sql import SQLStore


async def test_a_restart_changes_nothing(durable: StoreBackend) -> None:
    store = await durable.open()
    expected = await write_some(store, 80)
    before = await store.list("")
    await durable.stop(store)

    store = await durable.open()
    assert await store.list("") == before
    assert await store.revision() == 80
    async with recording(store, since=13) as watch:
        assert await watch.wait_for(80) == expected[13:]
        entry = before.entries[0]
        newer = await store.update(entry.key, a_body("after the restart"), entry.revision)
        events = await watch.wait_for(81)
        assert (events[-1].previous, events[-1].value) == (entry.value, newer.value)
    assert newer.create_revision == entry.create_revision


async def _kill_while_writing(url: str, writes: int, folder: Path) -> list[tuple[str, int]]:
    with a_child(url, 8, folder) as child:
        await child.writes(writes)
        child.process.kill()
        assert await child.end() == -signal.SIGKILL
        return child.acknowledged


@pytest.mark.real_time
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
async def test_kill_9_loses_no_acknowledged_write(durable: StoreBackend, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    revision = 0
    for _ in range(2):
        acknowledged = await _kill_while_writing(durable.url, rng.randrange(50, 800), tmp_path)
        store = await durable.open()
        for key, at in acknowledged:
            entry = await store.get(key)
            assert entry is not None, f"{key} was acknowledged at {at} and is gone"
            assert entry.revision >= at
            assert entry.value in (a_value(entry.revision, "x" * 500), a_value(entry.revision, "y" * 500))
        newest = await store.revision()
        assert newest >= max(at for _, at in acknowledged)
        async with recording(store, since=0) as watch:
            events = await watch.wait_for(newest)
        assert [event.revision for event in events] == list(range(1, newest + 1)), f"gap (seed {seed})"
        assert newest > revision
        revision = newest
        await durable.stop(store)


@pytest.mark.real_time
@pytest.mark.parametrize("copies", [3, pytest.param(30, marks=pytest.mark.nightly)])
async def test_copies_of_the_files_at_random_moments_have_every_acknowledged_write(tmp_path: Path, copies: int) -> None:
    """A copy of database and log at one moment is what a crash leaves behind, or a snapshot of the disk."""
    folder, rng = tmp_path / "state", random.Random(copies)
    folder.mkdir()
    with a_child(f"sqlite:///{folder}/state.db", 8, tmp_path) as child:
        for number in range(copies):
            await child.writes(rng.randrange(1, 300))
            child.process.send_signal(signal.SIGSTOP)
            taken = tmp_path / str(number)
            taken.mkdir()
            for name in ("state.db", "state.db-wal"):
                shutil.copy(folder / name, taken / name)
            acknowledged = list(child.acknowledged)
            child.process.send_signal(signal.SIGCONT)
            store = SQLStore(f"sqlite:///{taken}/state.db")
            await store.ready()
            assert store.warnings() == []
            newest = await store.revision()
            kept = {entry.key: entry.revision for entry in (await store.list("/")).entries}
            assert not [(key, at) for key, at in acknowledged if kept.get(key, 0) < at]
            async with recording(store, since=max(0, newest - 50)) as watch:
                events = await watch.wait_for(newest)
            assert [event.revision for event in events] == list(range(max(0, newest - 50) + 1, newest + 1))
            await store.close()
            shutil.rmtree(taken)


async def test_the_syncing_helper_is_replaced_when_it_dies(tmp_path: Path) -> None:
    backend = StoreBackend("sqlite", f"sqlite:///{tmp_path}/state.db")
    store = await backend.open()
    await store.create("/1", a_body())
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.ZombieProcess):  # of another store, which has ended
            if any("fdatasync" in part for part in child.cmdline()):
                child.kill()
                child.wait()
    outcomes = [await _outcome(store, f"/{number}") for number in range(2, 6)]
    assert isinstance(outcomes[-1], Entry), "writes go on"
    # A write that failed because the helper died may have happened; in both cases nothing is lost or duplicated.
    async with recording(store, since=0) as watch:
        events = await watch.wait_for(outcomes[-1].revision)
        assert [event.revision for event in events] == list(range(1, len(events) + 1))
    written = {entry.key for entry in (await store.list("/")).entries}
    assert written >= {outcome.key for outcome in outcomes if isinstance(outcome, Entry)}
    await backend.close()


async def _outcome(store: object, key: str) -> Entry | StoreUnavailable:
    assert isinstance(store, SQLStore)
    try:
        return await store.create(key, a_body())
    except StoreUnavailable as error:
        return error


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
async def test_lost_connections_are_made_again(shared: StoreBackend, postgres: PostgresServer) -> None:
    store = await shared.open()
    await store.create("/1", a_body())
    async with recording(store) as watch:
        await watch.wait_for(1)
        closed = postgres.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'federation'"
        )
        assert closed
        assert all(is_closed for (is_closed,) in closed), "what ends later would break a later write"
        outcomes = [await _outcome(store, f"/{number}") for number in range(2, 6)]
        assert isinstance(outcomes[-1], Entry)
        events = await watch.wait_for(outcomes[-1].revision)
        assert [event.revision for event in events] == list(range(1, len(events) + 1))
        assert {event.type for event in events} == {EventType.CREATED}


async def test_a_second_process_cannot_take_the_same_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    backend = StoreBackend("sqlite", url)
    await backend.open()
    with pytest.raises(ConfigurationError, match=rf"state\.db is in use by process {os.getpid()}; stop that process"):
        await SQLStore(url).ready()
    await backend.close()
    again = SQLStore(url)
    await again.ready()
    await again.close()


async def test_the_files_are_private(tmp_path: Path) -> None:
    backend = StoreBackend("sqlite", f"sqlite:///{tmp_path}/state.db")
    store = await backend.open()
    await store.create("/secret", a_body())
    modes = {entry.name: entry.stat().st_mode & 0o777 for entry in os.scandir(tmp_path)}
    assert modes == dict.fromkeys(("state.db", "state.db-wal", "state.db-shm", "state.db.lock"), 0o600)
    await backend.close()
