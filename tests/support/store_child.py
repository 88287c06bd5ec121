"""A process that writes to a store as fast as it can and prints acknowledged writes; tests kill it.

`python -m tests.support.store_child URL WRITERS NAME [FAILPOINT]` prints `KEY REVISION` for each write, unbuffered, after
the store has acknowledged it. FAILPOINT is a file of `failpoints.py`.
"""

import asyncio
import os
import sys
from pathlib import Path

from federation.apimachinery.errors import KeyExists
from federation.apiserver.store.sql import SQLStore
from tests.support.failpoints import Failpoints
from tests.support.stores import a_body


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
