"""Load on a set of replicas, and its judgement by the database's own log.

Clients read, replace and compare-and-swap a few registers (ConfigMaps) through any replica, watchers follow them and
continue at another replica from their revision when a connection breaks. `judge` compares all of it with the log:
every acknowledged write is there at its revision, each watcher received each change once and in order, and the history
of each register is linearizable (`linearizability.py`).
"""

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import orjson

from tests.support.linearizability import Operation, find_violation
from tests.support.replicas import PATIENT_S, Api, ReplicaSet, until

NAMESPACE = "registers"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
KEYS = f"/core/configmaps/{NAMESPACE}/"
INITIAL = "0"
Change = tuple[int, str, str]
"""One change of the log or of a watch: revision, name, value."""


@dataclass
class History:
    """What the clients know of one run."""

    done: dict[str, list[Operation]] = field(default_factory=dict)
    """The operations with an answer, by register."""
    lost: dict[str, list[Operation]] = field(default_factory=dict)
    """The writes without one: whether they happened is unknown."""
    acknowledged: list[Change] = field(default_factory=list)
    acknowledged_by: Counter[str] = field(default_factory=Counter)
    """Acknowledged writes by replica."""
    refused: Counter[str] = field(default_factory=Counter)
    """Answers of 429 and 500 and above, by their message."""


class Client:
    """Operations in sequence, each at any replica."""

    def __init__(
        self, number: int, apis: Sequence[Api], names: Sequence[str], history: History, pause_s: float
    ) -> None:
        self._number, self._apis, self._names, self._history = number, apis, names, history
        self._pause_s = pause_s
        self._random = random.Random(number)
        self._seen: dict[str, tuple[str, str]] = {}
        self._values = itertools.count(1)
        self.is_stopping = False

    async def run(self) -> None:
        """Work until `is_stopping`: a cancelled request could take effect after the end of the load."""
        while not self.is_stopping:
            api, name = self._random.choice(self._apis), self._random.choice(self._names)
            way = self._random.choice((self._read, self._read, self._write, self._swap))
            try:
                await way(api, name)
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)  # a process that is down refuses at once
            await asyncio.sleep(2 * self._pause_s * self._random.random())

    async def _read(self, api: Api, name: str) -> None:
        called_s = time.monotonic()
        try:
            status, obj = await api.request("GET", f"{PATH}/{name}")
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return  # no answer, or a part of one
        if status == 200:
            self._seen[name] = (obj["data"]["value"], obj["metadata"]["resourceVersion"])
            self._record(api, name, Operation(called_s, time.monotonic(), seen=obj["data"]["value"]))

    async def _write(self, api: Api, name: str) -> None:
        await self._put(api, name, None)

    async def _swap(self, api: Api, name: str) -> None:
        await self._put(api, name, self._seen.get(name))

    async def _put(self, api: Api, name: str, expected: tuple[str, str] | None) -> None:
        value = f"{self._number}-{next(self._values)}"
        body = a_register(name, value)
        seen = None
        if expected is not None:
            seen, body["metadata"]["resourceVersion"] = expected
        tried = Operation(time.monotonic(), seen=seen, written=value, where=f"client {self._number} at {api.name}")
        try:
            status, answer = await api.request("PUT", f"{PATH}/{name}", body)
        except aiohttp.ClientConnectorError:
            raise  # nothing was sent
        except (aiohttp.ClientError, TimeoutError, ValueError):
            self._history.lost.setdefault(name, []).append(tried)
            return
        tried = replace(tried, returned_s=time.monotonic())
        if status == 200:
            revision = answer["metadata"]["resourceVersion"]
            self._seen[name] = (value, revision)
            self._history.acknowledged.append((int(revision), name, value))
            self._history.acknowledged_by[api.name] += 1
            self._record(api, name, tried)
        elif status == 409 and expected is not None:
            self._record(api, name, replace(tried, seen=None, written=None, unseen=seen))
        else:
            message = answer.get("message", "") if isinstance(answer, dict) else str(answer)
            assert status == 429 or status >= 500, f"PUT {name} at {api.name} with {expected}: {status} {message}"
            self._history.refused[f"{status} {message}"] += 1
            self._history.lost.setdefault(name, []).append(replace(tried, returned_s=float("inf")))
            await asyncio.sleep(0.02)

    def _record(self, api: Api, name: str, operation: Operation) -> None:
        where = f"client {self._number} at {api.name}"
        self._history.done.setdefault(name, []).append(replace(operation, where=where))


class Watcher:
    """Follows a collection at one replica after the other, always from the last revision that it received."""

    def __init__(self, apis: Sequence[Api], path: str, since: int, field_name: str = "value") -> None:
        self._apis = itertools.cycle(apis)
        self._path, self._field = path, field_name
        self.since = since
        self.changes: list[Change] = []
        self.resumed = 0

    async def run(self) -> None:
        """Work until cancelled; AssertionError when the server ends a watch with an error other than 500 and above."""
        for api in self._apis:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async for kind, obj in api.watch(self._path, self.since):
                    if kind == "ERROR":
                        assert obj["code"] >= 500 or obj["code"] == 429, f"watch at {api.name}: {obj}"
                        break
                    self.since = int(obj["metadata"]["resourceVersion"])
                    if kind != "BOOKMARK":
                        value = (obj.get("data") or {}).get(self._field, "")
                        self.changes.append((self.since, obj["metadata"]["name"], value))
            self.resumed += 1
            await asyncio.sleep(0.2)


class Load:
    """Clients and watchers on a set of replicas, until the end of `running`.

    Between two operations a client pauses for `pause_s` on average: several requests are in flight in any case.
    """

    def __init__(self, replicas: ReplicaSet, *, registers: int = 6, clients: int = 5, pause_s: float = 0.0) -> None:
        self.names = [f"register-{number}" for number in range(registers)]
        self.history = History()
        self.began = 0
        self.apis = [replica.api() for replica in replicas.replicas]
        self.clients = [Client(number, self.apis, self.names, self.history, pause_s) for number in range(clients)]
        self.watchers: list[Watcher] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._last = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run clients and watchers during the block; the watchers end when they have received everything.

        The caller closes `apis`.
        """
        try:
            self.began = await self._create()
            # They start at different replicas.
            rotations = [self.apis[number:] + self.apis[:number] for number in range(len(self.apis))]
            self.watchers = [Watcher(rotation, PATH, self.began) for rotation in rotations]
            clients = [asyncio.create_task(client.run()) for client in self.clients]
            watchers = [asyncio.create_task(watcher.run()) for watcher in self.watchers]
            self._tasks = [*clients, *watchers]
            await self.progress(20)
            yield
            for client in self.clients:
                client.is_stopping = True
            await asyncio.gather(*clients)
            self._tasks = watchers
            await self._until_received()
        finally:
            await _cancel(self._tasks)

    async def progress(self, writes: int, timeout_s: float = 120.0) -> float:
        """Wait until each replica has acknowledged `writes` more writes; return the seconds that it took."""
        goal = {api.name: self.history.acknowledged_by[api.name] + writes for api in self.apis}

        async def reached() -> bool:
            self._check_tasks()
            return all(self.history.acknowledged_by[name] >= count for name, count in goal.items())

        return await until(reached, f"writes at every replica (refused: {self.history.refused})", timeout_s)

    def judge(self, log: Sequence[Change]) -> None:
        """Compare the run with the changes in the database's log; AssertionError names the first difference."""
        mine = [change for change in log if self.began < change[0] <= self._last]
        logged = set(mine)
        lost = [change for change in self.history.acknowledged if change not in logged]
        assert not lost, f"acknowledged writes that are not in the log: {lost[:5]}"
        for watcher in self.watchers:
            assert watcher.changes == mine, f"a watcher received {_difference(watcher.changes, mine)}"
        check_linearizable(self.history, mine)

    async def _create(self) -> int:
        api = self.apis[0]
        await api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, timeout_s=PATIENT_S)
        for name in self.names:
            await api.request("DELETE", f"{PATH}/{name}", timeout_s=PATIENT_S)
            status, obj = await api.request("POST", PATH, a_register(name, INITIAL), timeout_s=PATIENT_S)
            assert status == 201, obj
        return int(obj["metadata"]["resourceVersion"])

    async def _until_received(self) -> None:
        """Wait until each watcher has received a last change, made when all clients have ended."""

        async def is_written() -> bool:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                status, obj = await self.apis[0].request(
                    "PUT", f"{PATH}/{self.names[0]}", a_register(self.names[0], "end")
                )
                self._last = int(obj["metadata"]["resourceVersion"]) if status == 200 else 0
                return status == 200
            return False

        async def received() -> bool:
            self._check_tasks()
            return all(watcher.since >= self._last for watcher in self.watchers)

        await until(is_written, "the last write")
        await until(received, "the last change at every watcher")

    def _check_tasks(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()


def check_linearizable(history: History, log: Iterable[Change]) -> None:
    """AssertionError with the furthest explanation of a register whose history is not linearizable."""
    happened = {(name, value) for _, name, value in log}
    for name, done in history.done.items():
        # The log tells which of the writes without an answer took effect.
        lost = [operation for operation in history.lost.get(name, ()) if (name, operation.written) in happened]
        violation = find_violation([*done, *lost], INITIAL)
        assert violation is None, f"{name} is not linearizable: {violation}"


def a_register(name: str, value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}}


def to_changes(rows: Iterable[Sequence[Any]]) -> list[Change]:
    """Return the changes of rows of the log: revision, key, stored bytes."""
    return [
        (int(revision), str(key).rsplit("/", 1)[1], orjson.loads(value)["data"].get("value", ""))
        for revision, key, value in rows
    ]


def _difference(found: Sequence[Change], expected: Sequence[Change]) -> str:
    counted = Counter(change[0] for change in found)
    doubled = [revision for revision, count in counted.items() if count > 1]
    missed = [change for change in expected if change[0] not in counted]
    return f"doubled {doubled[:5]}, missed {missed[:5]}, {len(found)} instead of {len(expected)} changes"


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
