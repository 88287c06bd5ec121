"""Members that answer over HTTP: with given answers in turn, or from objects that they hold."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterError, ClusterUnreachable
from federation.apimachinery.resources import Object
from federation.apimachinery.webhookclient import StreamedResponse
from federation.apiserver.auth.identity import User
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalTransport
from federation.client.pool import ClusterPool

ALICE = User("alice", ("shop",))


def a_configmap(name: str, revision: int = 5, namespace: str = "default") -> Object:
    return {"metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": str(revision)}}


def event(type_: str, obj: Object) -> bytes:
    return orjson.dumps({"type": type_, "object": obj}) + b"\n"


class Member(LocalTransport):
    """A member over HTTP that answers each request with the next status and body."""

    def __init__(self, *answers: tuple[int, Iterable[bytes]]) -> None:
        clock = ManualClock()
        super().__init__(Registry(MemoryStore(clock=clock), clock=clock), user_agent="test")
        self.answers = list(answers)
        self.targets: list[str] = []
        self.asked = asyncio.Event()

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, headers: Any, body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[StreamedResponse]:
        assert (method, body) == ("GET", None)
        assert ("Impersonate-User", ALICE.name) in headers
        self.targets.append(target)
        self.asked.set()
        status, pieces = self.answers.pop(0) if self.answers else (200, None)
        yield StreamedResponse(status, [], self._body(pieces))

    def websocket(self, *_: Any) -> Any:
        raise ClusterError("not here")

    async def _body(self, pieces: Iterable[bytes] | None) -> AsyncIterator[bytes]:
        for piece in pieces or ():
            yield piece
        if pieces is None:  # a watch in which nothing happens
            await asyncio.get_running_loop().create_future()


def a_pool(clock: ManualClock | None = None, **members: Member) -> ClusterPool:
    pool = ClusterPool(clock=clock or ManualClock())
    for name, member in members.items():
        pool.set_transport(name.replace("_", "-"), member)
    return pool


class Holding(Member):
    """A member with ConfigMaps, which it lists in pages. `mode` is "up", "down", "hang" or a status code as a text."""

    def __init__(self, *objects: Object, revision: str = "9") -> None:
        super().__init__()
        self.objects, self.revision, self.mode = list(objects), revision, "up"

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, headers: Any, body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[StreamedResponse]:
        self.targets.append(target)
        if self.mode == "down":
            raise ClusterUnreachable("connection refused")
        if self.mode == "hang":
            await asyncio.get_running_loop().create_future()
        status, answer = (int(self.mode), {}) if self.mode.isdigit() else self._answer(urlsplit(target))
        yield StreamedResponse(status, [], self._body([orjson.dumps(answer)]))

    def _answer(self, target: Any) -> tuple[int, Object]:
        query = {key: values[0] for key, values in parse_qs(target.query).items()}
        name = target.path.rpartition("/configmaps")[2].strip("/")
        if name:
            found = [obj for obj in self.objects if obj["metadata"]["name"] == name]
            return (200, found[0]) if found else (404, {"kind": "Status", "code": 404, "reason": "NotFound"})
        start = int(query.get("continue", "0"))
        end = start + int(query["limit"])
        token = {"continue": str(end)} if end < len(self.objects) else {}
        return 200, {"metadata": {"resourceVersion": self.revision, **token}, "items": self.objects[start:end]}
