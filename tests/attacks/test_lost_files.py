"""A lost database or lost keys: the control plane refuses to start as if the directory were new."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.stores import a_body

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ConfigurationError
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
