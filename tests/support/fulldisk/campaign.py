"""One random run on a file system that other programs fill.

A model has what was acknowledged. After each restart, orderly or by SIGKILL, the store must have exactly that, except for
the writes without an answer, which may have happened. `run` returns figures; a broken rule is an AssertionError.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

PATIENCE_S = 240


@contextlib.contextmanager
def small_disk(folder: Path, mebibytes: int) -> Iterator[Path | None]:
    """Mount a tmpfs; None where this user may not."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class Worker:
    """A process with a store."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._answers: dict[int, asyncio.Future[Any]] = {0: asyncio.get_running_loop().create_future()}
        self._number = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, url: str) -> "Worker":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.fulldisk.worker", url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 26,
        )
        worker = cls(process)
        async with asyncio.timeout(PATIENCE_S):
            assert await worker._answers[0] == "ready"
        return worker

    async def ask(self, action: str, key: str = "", text: str = "", revision: int = 0) -> Any:
        """Return the answer, None if the process ended before it."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps([self._number, action, key, text, revision]) + "\n").encode())
        async with asyncio.timeout(PATIENCE_S):
            return await answer

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()
        await self._reading

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(PATIENCE_S):
            await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            number, result = json.loads(line)
            self._answers.pop(number).set_result(result)
        for answer in self._answers.values():
            answer.set_result(None)


class Filler:
    """The other program."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fulldisk.filler", str(folder), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def toggle(self) -> None:
        """Take everything that is or becomes free, or give everything back and go on at random."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(PATIENCE_S)


class Campaign:
    """The model and the actions of one run."""

    def __init__(self, url: str, seed: int) -> None:
        self._chance = random.Random(seed)
        self._url = url
        self._worker: Worker
        self.known: dict[str, int] = {}
        """Key and revision of what is acknowledged and not deleted."""
        self._unknown: set[str] = set()
        """Keys with a write that had no answer."""
        self._number = 0
        self.figures: Counter[str] = Counter()

    async def start(self) -> None:
        self._worker = await Worker.start(self._url)
        found = await self._worker.ask("list")
        for key in self._unknown:
            self.known.pop(key, None)
            if key in found:
                self.known[key] = found[key][0]
        self._unknown.clear()
        stored = {key: at for key, (at, _) in found.items()}
        different = {key: (self.known.get(key), stored.get(key)) for key in stored.keys() ^ self.known.keys()}
        different |= {key: (at, stored[key]) for key, at in self.known.items() if stored.get(key, at) != at}
        assert not different, f"acknowledged, stored: {different}"

    async def restart(self) -> None:
        if self._chance.random() < 0.5:
            await self.kill_while(lambda: self.change(10))
        else:
            await self._worker.stop()
            self.figures["restarts"] += 1
            await self.start()

    async def kill_while(self, work: Callable[[], Any]) -> None:
        task = asyncio.ensure_future(work())
        await asyncio.sleep(self._chance.uniform(0, 0.05))
        await self._worker.kill()
        await task
        self.figures["kills"] += 1
        await self.start()

    async def stop(self) -> None:
        await self._worker.stop()

    def _text(self) -> str:
        size = self._chance.choice((50, 500, 3_000, 10_000, 50_000, 100_000, 100_000, 1_000_000))
        return os.urandom(size // 2).hex()

    async def _ask(self, action: str, key: str, text: str) -> Any:
        result = await self._worker.ask(action, key, text, self.known.get(key, 0))
        if result is None:
            self._unknown.add(key)
        elif isinstance(result, int):
            self.figures[f"{action}s"] += 1
            self.known[key] = result
            if action == "delete":
                del self.known[key]
        return result

    async def change(self, count: int) -> None:
        """Create, update and delete at random, some at once; a full disk may refuse creations and updates only."""
        keys = self._chance.sample(sorted(self.known), min(len(self.known), count))
        changes = []
        for _ in range(count):
            action = self._chance.choice(("create", "create", "create", "update", "delete"))
            if action == "create" or not keys:
                self._number += 1
                changes.append(self._try("create", f"/{self._number:06}", self._text()))
            elif action == "update":
                changes.append(self._try("update", keys.pop(), self._text()))
            else:
                changes.append(self.remove(keys.pop()))
        await asyncio.gather(*changes)

    async def _try(self, action: str, key: str, text: str) -> None:
        result = await self._ask(action, key, text)
        if isinstance(result, str):
            self.figures["refused"] += 1
            assert "full" in result, result

    async def remove(self, key: str) -> None:
        """Delete as an object with finalizers: a mark, a status, the deletion. None may be refused."""
        size = self._chance.choice((0, 0, 300))
        for action in self._chance.choice((("delete",), ("delete",), ("mark", "mark", "delete"))):
            text = os.urandom(size // 2).hex() if action == "mark" else "gone"
            result = await self._ask(action, key, text)
            if result is None:
                return
            assert isinstance(result, int), f"{action} of {key}: {result} after {self.figures}"

    async def remove_all(self) -> None:
        """Delete everything, with restarts in between."""
        while self.known:
            keys = self._chance.sample(sorted(self.known), min(len(self.known), self._chance.choice((1, 5, 40))))
            if self._chance.random() < 0.05:
                await self.kill_while(lambda keys=keys: self._remove(keys))  # type: ignore[misc]  # its default
            else:
                await self._remove(keys)
                if self._chance.random() < 0.05:
                    await self._worker.stop()
                    self.figures["restarts"] += 1
                    await self.start()

    async def _remove(self, keys: list[str]) -> None:
        await asyncio.gather(*(self.remove(key) for key in keys))

    async def create_soon(self) -> None:
        """Create objects as soon as it is possible again, without a restart."""
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(5):
                self._number += 1
                key = f"/{self._number:06}"
                while isinstance(await self._ask("create", key, "x" * 20_000), str):  # noqa: ASYNC110  # another process
                    await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def filled(folder: Path, seed: int) -> AsyncIterator[Filler]:
    filler = Filler(folder, seed)
    try:
        yield filler
    finally:
        filler.stop()


async def run(disk: Path, seed: int, rounds: int, url: str = "") -> Counter[str]:
    """Run on a file system and an empty database, SQLite's on it if there is no other; return what happened."""
    file = disk / "store" / "state.db"
    file.parent.mkdir()
    (disk / "others").mkdir()
    campaign = Campaign(url or f"sqlite:///{file}", seed)
    await campaign.start()
    try:
        async with filled(disk / "others", seed) as filler:
            for _ in range(rounds):
                for _ in range(campaign._chance.randrange(1, 12)):
                    await campaign.change(campaign._chance.choice((1, 5, 30)))
                await campaign.restart()
            await campaign.create_soon()
            filler.toggle()
            campaign.figures["objects on the full disk"] = len(campaign.known)
            await campaign.restart()
            await campaign.remove_all()
            campaign.figures["bytes at the end"] = 0 if url else file.stat().st_size
            await campaign.create_soon()
            await campaign.change(20)
            filler.toggle()
            await campaign.create_soon()
            await campaign.remove_all()
    finally:
        await campaign.stop()
    return campaign.figures
