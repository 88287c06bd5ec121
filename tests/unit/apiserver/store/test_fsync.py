"""The fsync helper: responses in order, disk errors, its crash, its stop."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.stores import eventually

from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.fsync import FsyncHelper


@pytest.fixture
async def helper(tmp_path: Path) -> AsyncIterator[FsyncHelper]:
    (tmp_path / "file").write_bytes(b"x")
    helper = FsyncHelper(tmp_path / "file")
    yield helper
    helper.stop()


async def test_the_helper_starts_at_the_first_request(helper: FsyncHelper) -> None:
    assert helper._process is None
    await helper.sync()
    await asyncio.gather(*(helper.sync() for _ in range(20)))
    assert not helper._waiting


async def test_a_cancelled_request_does_not_shift_the_answers(helper: FsyncHelper) -> None:
    await helper.sync()
    gone = asyncio.create_task(helper.sync())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(*(helper.sync() for _ in range(5)))
    assert not helper._waiting


async def test_a_disk_error_is_reported_and_the_helper_continues(helper: FsyncHelper, tmp_path: Path) -> None:
    (tmp_path / "file").unlink()
    with pytest.raises(StoreUnavailable, match="file was removed or moved while this process uses it; put it back"):
        await helper.sync()
    (tmp_path / "file").mkdir()
    with pytest.raises(StoreUnavailable, match="file cannot be made durable: Is a directory; check the disk"):
        await helper.sync()
    (tmp_path / "file").rmdir()
    (tmp_path / "file").write_bytes(b"y")
    await helper.sync()


async def test_a_request_fails_when_the_helper_dies_and_the_next_restarts_it(helper: FsyncHelper) -> None:
    await helper.sync()
    process = helper._process
    assert process is not None
    process.kill()
    with pytest.raises(StoreUnavailable, match="has ended"):
        await helper.sync()
    await helper.sync()
    assert helper._process is not process


async def test_a_helper_that_died_while_idle_is_restarted(helper: FsyncHelper) -> None:
    await helper.sync()
    process = helper._process
    assert process is not None
    process.kill()
    await eventually(lambda: helper._process is None)
    await helper.sync()


async def test_stopping_ends_the_process_and_fails_waiting_callers(helper: FsyncHelper) -> None:
    await helper.sync()
    process = helper._process
    assert process is not None
    waiting = asyncio.create_task(helper.sync())
    await asyncio.sleep(0)
    helper.stop()
    assert process.poll() == 0
    with pytest.raises(StoreUnavailable):
        await waiting
