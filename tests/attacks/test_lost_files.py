"""A lost database or lost keys: the control plane refuses to start as if the directory were new.

A database that is removed, moved or replaced under a running process: nothing is acknowledged that a restart would lose.
"""

import asyncio
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.stores import a_body

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.auth.pki import ensure_pki, has_authority
from federation.apiserver.store.sql import SQLStore
from federation.assembly import ControlPlane
from federation.settings import Settings


async def start(directory: Path, *, host: str = "127.0.0.1", new: bool = False) -> None:
    def fail(url: str) -> None:
        raise AssertionError(f"started at {url}")

    await ControlPlane(Settings(directory, host=host, port=0, new=new), SystemClock()).run(fail)


def keys(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (directory / "pki").rglob("*") if path.is_file()}


async def an_object(directory: Path) -> None:
    store = SQLStore(f"sqlite:///{directory}/state.db")
    await store.ready()
    await store.create("/core/configmaps/default/kept", a_body())
    await store.close()


@pytest.mark.parametrize("leftover", [None, b""], ids=["missing", "empty"])
async def test_a_lost_database_beside_keys_is_not_replaced_by_an_empty_one(
    tmp_path: Path, leftover: bytes | None
) -> None:
    ensure_pki(tmp_path / "pki", now=datetime.now(UTC))
    if leftover is not None:
        (tmp_path / "state.db").write_bytes(leftover)
    before = keys(tmp_path)
    for _ in range(2):  # the refused start itself must not create the file
        with pytest.raises(ConfigurationError, match=r"state\.db is missing or empty, but .*pki holds .* --new"):
            await start(tmp_path)
    assert keys(tmp_path) == before


async def test_lost_keys_beside_a_database_are_not_replaced_silently(tmp_path: Path) -> None:
    await an_object(tmp_path)
    with pytest.raises(ConfigurationError, match=r"pki holds no CA, but database .*state\.db holds objects.* --new"):
        await start(tmp_path)
    assert not has_authority(tmp_path / "pki")


async def test_a_lost_ca_key_is_never_replaced(tmp_path: Path) -> None:
    pki = ensure_pki(tmp_path / "pki", now=datetime.now(UTC))
    await an_object(tmp_path)
    pki.ca_key.unlink()
    for new in (False, True):
        with pytest.raises(ConfigurationError, match=r"ca\.key is missing beside ca\.crt; restore it from a backup"):
            await start(tmp_path, new=new)
    assert not pki.ca_key.exists()


async def test_with_new_the_start_goes_on_to_the_next_step(tmp_path: Path) -> None:
    ensure_pki(tmp_path / "pki", now=datetime.now(UTC))
    with pytest.raises(ConfigurationError, match="neither a host name nor an IP address"):
        await start(tmp_path, host="\udcff", new=True)
    assert (tmp_path / "state.db").stat().st_size


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def _move_folder(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def _replace_folder(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)


def _remove_file(folder: Path) -> None:
    (folder / "state.db").unlink()


def _replace_file(folder: Path) -> None:
    shutil.copy(folder / "state.db", folder / "copy")
    (folder / "copy").replace(folder / "state.db")


def _remove_log(folder: Path) -> None:
    (folder / "state.db-wal").unlink()


@pytest.mark.parametrize(
    "vanish", [_remove_folder, _move_folder, _replace_folder, _remove_file, _replace_file, _remove_log]
)
async def test_nothing_is_acknowledged_that_is_not_in_the_files_of_the_next_start(
    tmp_path: Path, vanish: Callable[[Path], None]
) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    store = SQLStore(f"sqlite:///{folder}/state.db")
    await store.ready()
    running = asyncio.create_task(store.run())
    await store.create("/before", a_body())
    vanish(folder)
    for number in range(3):
        with pytest.raises(StoreUnavailable, match=r"was (removed or moved|replaced) while this process uses it"):
            await store.create(f"/after-{number}", a_body())
    assert [entry.key for entry in (await store.list("/")).entries] == ["/before"], "reads go on"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.close()


async def test_writes_go_on_when_the_file_is_back(tmp_path: Path) -> None:
    store = SQLStore(f"sqlite:///{tmp_path}/state.db")
    await store.ready()
    file = tmp_path / "state.db"
    file.rename(tmp_path / "away")
    with pytest.raises(StoreUnavailable, match="removed or moved"):
        await store.create("/one", a_body())
    (tmp_path / "away").rename(file)
    await store.create("/two", a_body())
    await store.close()
