"""A process that writes to a store as fast as it can and prints acknowledged writes; tests kill it with `a_child`.

`python -m tests.support.store_child URL WRITERS NAME [FAILPOINT]` prints `KEY REVISION` for each write, unbuffered, after
the store has acknowledged it. FAILPOINT is a file of `failpoints.py`.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from federation.apimachinery.errors import KeyExists
from federation.apiserver.store.sql import SQLStore
from tests.support.failpoints import Failpoints, Step, arm
from tests.support.forkserver import Process, start_process
from tests.support.stores import a_body

PATIENCE_S = 60.0


class Child:
    """The process, seen by a test; `acknowledged` are the keys and revisions that it printed."""

    def __init__(self, process: Process, failpoint: Path) -> None:
        self.process = process
        self._failpoint = failpoint
        self.acknowledged: list[tuple[str, int]] = []

    def arm(self, step: Step, number: signal.Signals) -> None:
        arm(self._failpoint, step, number)

    async def writes(self, count: int) -> None:
        """Wait for acknowledged writes."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(self._read, count)

    async def end(self) -> int:
        """Read the rest of the output, up to the end of the process; return the exit code."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(self._read, None)
        return await asyncio.to_thread(self.process.wait, PATIENCE_S)

    def _read(self, count: int | None) -> None:
        assert self.process.stdout is not None
        goal = None if count is None else len(self.acknowledged) + count
        while goal is None or len(self.acknowledged) < goal:
            line = self.process.stdout.readline()
            if not line.endswith("\n"):
                assert goal is None, "the process ended"
                return
            key, revision = line.split()
            self.acknowledged.append((key, int(revision)))


@contextlib.contextmanager
def a_child(url: str, writers: int, folder: Path) -> Iterator[Child]:
    """Run the process during the block, with a log and a failpoint in the folder."""
    with (folder / "log").open("w") as log:
        arguments = [url, str(writers), "w", str(folder / "failpoint")]
        process = start_process("tests.support.store_child", arguments, stderr=log.fileno())
    try:
        yield Child(process, folder / "failpoint")
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        assert process.stdout is not None
        process.stdout.close()


async def write(store: SQLStore, name: str) -> None:
    number = 0
    while True:
        number += 1
        try:
            entry = await store.create(f"/{name}/{number}", a_body("x" * 500))
        except KeyExists:
            continue
        if number % 3 == 0:
            entry = await store.update(entry.key, a_body("y" * 500), entry.revision)
        os.write(1, f"{entry.key} {entry.revision}\n".encode())


async def run(url: str, writers: int, name: str) -> None:
    store = SQLStore(url)
    await store.ready()
    async with asyncio.TaskGroup() as group:
        group.create_task(store.run())
        for number in range(writers):
            group.create_task(write(store, f"{name}{number}"))


def main() -> None:
    """Write until killed."""
    url, writers, name, *failpoint = sys.argv[1:]
    if failpoint:
        Failpoints(Path(failpoint[0])).install()
    asyncio.run(run(url, int(writers), name))


if __name__ == "__main__":
    main()
