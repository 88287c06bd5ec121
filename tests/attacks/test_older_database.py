"""A database that was restored by other means than `fedctl restore`, or another one: the start refuses it until it is accepted.

The controllers would otherwise revert and remove in members what was done after the backup.
"""

import asyncio
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from tests.support.stores import a_body

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ConfigurationError
from federation.apiserver.store.interface import Body
from federation.apiserver.store.seenrevisions import FILE, Seen, SeenRevisions, problem_of, read, write
from federation.apiserver.store.sql import SQLStore
from federation.cli import databases
from federation.planning.leftovers.restoration import Restoration

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def _open(folder: Path) -> SQLStore:
    store = SQLStore(f"sqlite:///{folder}/state.db")
    await store.ready()
    return store


async def _live(folder: Path, clock: ManualClock, *keys: str, uid: str = "one") -> None:
    """Run a process on the folder that writes these objects, each an hour after the one before."""
    store = await _open(folder)
    try:
        seen = SeenRevisions(store, store.database.name, folder, clock)
        await seen.check()
        if await store.get("/core/namespaces/kube-system") is None:
            for name in ("kube-system", "kube-admiral-system"):
                end = f'","uid":"{uid}","name":"{name}"}}}}'.encode()
                await store.create(f"/core/namespaces/{name}", Body(b'{"metadata":{"resourceVersion":"', end))
        running = asyncio.create_task(seen.run())
        for key in keys:
            await store.create(key, a_body("x"))
            await clock.advance(3600)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    finally:
        await store.close()


async def test_an_older_database_is_refused_and_accepted_as_restored_at_its_time(tmp_path: Path) -> None:
    folder, clock = tmp_path / "state", ManualClock(NOW)
    folder.mkdir()
    await _live(folder, clock, "/a", "/b")
    shutil.copy(folder / "state.db", tmp_path / "snapshot")
    backed_up_at = clock.now()
    await _live(folder, clock, "/c", "/d")
    newest = read(folder).newest
    shutil.copy(tmp_path / "snapshot", folder / "state.db")
    for _ in range(2):
        with pytest.raises(
            ConfigurationError, match=r"was restored from a backup\. .* fedctl db accept --dir"
        ) as caught:
            await _live(folder, clock)
        assert "\n" not in str(caught.value)

    databases.accept(databases.settings_of(folder))
    await _live(folder, clock, "/e")
    store = await _open(folder)
    assert [entry.key for entry in (await store.list("/")).entries if len(entry.key) == 2] == ["/a", "/b", "/e"]
    assert await store.revision() > newest[0] + 1_000_000
    namespace = await store.get("/core/namespaces/kube-admiral-system")
    restoration = Restoration.of(orjson.loads(namespace.value))
    assert backed_up_at - timedelta(hours=1) <= restoration.backup_at <= backed_up_at
    await store.close()


async def test_another_database_is_refused(tmp_path: Path) -> None:
    folder, other, clock = tmp_path / "state", tmp_path / "other", ManualClock(NOW)
    folder.mkdir()
    other.mkdir()
    await _live(folder, clock, "/a")
    await _live(other, clock, "/a", "/b", "/c", uid="two")
    shutil.copy(other / "state.db", folder / "state.db")
    with pytest.raises(ConfigurationError, match="it is another database"):
        await _live(folder, clock)


async def test_a_malformed_record_refuses_the_start_with_its_name(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{")
    with pytest.raises(ConfigurationError, match=rf"{FILE} is unreadable.*remove it"):
        await _live(tmp_path, ManualClock(NOW))


@pytest.mark.parametrize(
    ("seen", "identity", "revision", "problem"),
    [
        (None, "one", 5, ""),
        (Seen("one"), "one", 5, ""),
        (Seen("one", ((5, NOW),)), "one", 5, ""),
        (Seen("one", ((5, NOW),)), "one", 9, ""),
        (Seen("one", ((5, NOW),)), "one", 4, "it has revision 4, and had 5"),
        (Seen("one", ((5, NOW),)), "two", 9, "another database"),
        (Seen("one", ((5, NOW),)), "", 0, "another database"),
    ],
)
def test_what_was_seen_decides(seen: Seen | None, identity: str, revision: int, problem: str) -> None:
    found = problem_of(seen, identity, revision)
    assert problem in found
    assert bool(found) is bool(problem)


def test_the_record_keeps_an_entry_for_each_hour(tmp_path: Path) -> None:
    seen = Seen("one")
    for minute in range(0, 300, 10):
        seen = seen.at(minute + 1, NOW + timedelta(minutes=minute))
    write(tmp_path, seen)
    assert read(tmp_path) == seen
    assert [revision for revision, _ in seen.revisions] == [1, 61, 121, 181, 241, 291]
    assert seen.time_of(130) == NOW + timedelta(minutes=120)
    assert seen.time_of(0) is None
