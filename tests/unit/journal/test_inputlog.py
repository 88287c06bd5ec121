"""Records of decisions that wait for their text, or for a write, are not lost."""

import asyncio
import contextlib
from pathlib import Path

import pytest
from tests.properties.test_replay import History

from federation.apiserver.store.databases import open_database
from federation.apiserver.store.options import StoreOptions
from federation.journal.sqljournal import SQLJournal
from federation.scheduling.replay.recorder import RecorderOptions


@pytest.mark.parametrize("steps", range(6))
async def test_a_stop_writes_what_waits_at_whatever_step_it_comes(tmp_path: Path, steps: int) -> None:
    """Also while a chunk is compressed in another thread, or written."""
    history = History(RecorderOptions())
    for replicas in (3, 6, 9):
        history.scale("web", replicas)
    database = open_database(f"sqlite:///{tmp_path}/state.db", StoreOptions())
    await database.open()
    journal = SQLJournal(database)
    journal.inputs = history.recorder
    running = asyncio.create_task(journal.run())
    for _ in range(steps):
        await asyncio.sleep(0)
    history.scale("web", 12)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    chunks = await journal.read_inputs(0, (0, 0), 1 << 20)
    assert sum(chunk.decisions for chunk in chunks) == 4
    assert [chunk.number for chunk in chunks] == list(range(1, len(chunks) + 1))
    await database.close()
