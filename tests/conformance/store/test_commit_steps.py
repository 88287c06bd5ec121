"""A process that is killed or paused at each step of a commit: each change is there whole or not at all, others go on.

`tests/e2e/test_replica_faults.py` has the same with whole control planes under load, for nights.
"""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest
from tests.support.failpoints import Step
from tests.support.store_child import Child, a_child
from tests.support.stores import StoreBackend, a_body, a_value, recording

from federation.apiserver.store.interface import Store

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres"), pytest.mark.real_time]
_PATIENCE_S = 60.0
TEXTS = (b"x" * 500, b"y" * 500)


async def judge(store: Store, child: Child) -> int:
    """Check the database against the acknowledged writes; return its revision."""
    newest = await store.revision()
    async with recording(store, since=0) as watch:
        events = await watch.wait_for(newest)
    assert [event.revision for event in events] == list(range(1, newest + 1)), "the log has gaps"
    written = {(event.key, event.revision): event.value for event in events}
    for key, revision in child.acknowledged:
        assert (key, revision) in written, f"{key} was acknowledged at {revision} and is gone"
    for (key, revision), value in written.items():
        if key.startswith("/w"):
            assert value in [a_value(revision, text.decode()) for text in TEXTS], f"{key} at {revision} is not whole"
    return newest


@pytest.mark.parametrize("step", Step)
async def test_a_killed_process_leaves_whole_changes_and_no_lock(
    shared: StoreBackend, tmp_path: Path, step: Step
) -> None:
    store = await shared.open()
    with a_child(shared.url, 4, tmp_path) as child:
        await child.writes(20)
        child.arm(step, signal.SIGKILL)
        assert await child.end() == -signal.SIGKILL
        # Its lock ends with its connection, which the server notices at once.
        after = await store.create("/after", a_body())
        newest = await judge(store, child)
    assert newest == after.revision
    last = max(revision for _, revision in child.acknowledged)
    assert after.revision > last + (step is Step.COMMITTED), (
        "a durable commit stays, although no client received its response"
    )


async def test_a_process_paused_in_a_transaction_loses_it_and_writes_again_when_it_wakes(
    shared: StoreBackend, tmp_path: Path
) -> None:
    store = await shared.open()
    with a_child(shared.url, 4, tmp_path) as child:
        await child.writes(20)
        child.arm(Step.INSERTED, signal.SIGSTOP)
        async with asyncio.timeout(_PATIENCE_S):
            while psutil.Process(child.process.pid).status() != psutil.STATUS_STOPPED:  # noqa: ASYNC110  # of a process
                await asyncio.sleep(0.01)
        meanwhile = await store.create("/meanwhile", a_body())
        assert (await store.create("/next", a_body())).revision == meanwhile.revision + 1
        os.kill(child.process.pid, signal.SIGCONT)
        assert await child.end() == 1, "its commit fails, which ends this process"
        assert "StoreUnavailable" in (tmp_path / "log").read_text()
        await judge(store, child)
