"""The helper that waits for the disk: answers in order, errors, its death, its end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.stores import eventually

from federation.base.errors import StoreUnavailable
from federation.store.syncer import Syncer


@pytest.fixture
async def syncer(tmp_path: Path) -> AsyncIterator[Syncer]:
    (tmp_path / "file").write_bytes(b"x")
    syncer = Syncer(tmp_path / "file")
    yield syncer
    syncer.stop()


async def test_it_starts_with_the_first_request_and_answers_many(syncer: Syncer) -> None:
    assert syncer._process is None
    await syncer.sync()
    await asyncio.gather(*(syncer.sync() for _ in range(20)))
    assert not syncer._asked


async def test_a_cancelled_request_does_not_shift_the_answers(syncer: Syncer) -> None:
    await syncer.sync()
    gone = asyncio.create_task(syncer.sync())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(*(syncer.sync() for _ in range(5)))
    assert not syncer._asked


async def test_an_error_of_the_disk_is_told_and_the_helper_goes_on(syncer: Syncer, tmp_path: Path) -> None:
    (tmp_path / "file").unlink()
    with pytest.raises(
        StoreUnavailable, match="file cannot be made durable: No such file or directory; check the disk"
    ):
        await syncer.sync()
    (tmp_path / "file").write_bytes(b"y")
    await syncer.sync()


async def test_a_request_fails_when_the_helper_dies_and_the_next_starts_another(syncer: Syncer) -> None:
    await syncer.sync()
    process = syncer._process
    assert process is not None
    process.kill()
    with pytest.raises(StoreUnavailable, match="has ended"):
        await syncer.sync()
    await syncer.sync()
    assert syncer._process is not process


async def test_a_helper_that_died_while_idle_is_replaced_without_anybody_noticing(syncer: Syncer) -> None:
    await syncer.sync()
    process = syncer._process
    assert process is not None
    process.kill()
    await eventually(lambda: syncer._process is None)
    await syncer.sync()


async def test_stopping_ends_the_process_and_fails_who_waits(syncer: Syncer) -> None:
    await syncer.sync()
    process = syncer._process
    assert process is not None
    waiting = asyncio.create_task(syncer.sync())
    await asyncio.sleep(0)
    syncer.stop()
    assert process.poll() == 0
    with pytest.raises(StoreUnavailable):
        await waiting
