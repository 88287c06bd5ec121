"""A store in a process of its own: `python -m tests.support.fulldisk.worker URL`.

It answers each line [number, action, key, text, revision] of its input, in any order, with [number, result]. A result
is a revision, or a text about the error. It ends with its input.
"""

import asyncio
import json
import os
import sys
from typing import Any

from federation.apimachinery.errors import StoreError
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from tests.support.stores import a_body


async def _act(store: SQLStore, action: str, key: str, text: str, revision: int) -> Any:
    if action == "create":
        return (await store.create(key, a_body(text))).revision
    if action == "update":
        return (await store.update(key, a_body(text), revision)).revision
    if action == "mark":
        return (await store.update(key, a_body(text), revision, frees_space=True)).revision
    if action == "delete":
        return (await store.delete(key, a_body(text), revision)).revision
    if action == "full":
        return int(store.database.is_full)
    return {entry.key: [entry.revision, len(entry.value)] for entry in (await store.list("/")).entries}


async def _serve(url: str, options: StoreOptions) -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the log must not be among the answers
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    store = SQLStore(url, options)
    await store.ready()
    running = asyncio.create_task(store.run())
    answers.write(json.dumps([0, "ready"]) + "\n")

    async def answer(number: int, *request: Any) -> None:
        try:
            result = await _act(store, *request)
        except StoreError as error:
            result = f"{type(error).__name__}: {error}"
        answers.write(json.dumps([number, result]) + "\n")

    async with asyncio.TaskGroup() as group:
        while line := await reader.readline():
            group.create_task(answer(*json.loads(line)))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], StoreOptions(history_age_s_max=5, compaction_interval_s=2)))
