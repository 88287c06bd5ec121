"""The API server in process, with one object of every kind, and a store that records which request made each write.

`a_target()` yields a `Target`: `send` passes one request through the real ASGI app and returns its `Answer`, whose
`writes` are the store writes of that request (background loops are recorded separately). `requests.py` builds requests.
"""

import asyncio
import base64
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import yaml

from federation.apimachinery.resources import Object
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.app import App
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import Body, Entry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.hosting.roles import HOST_RBAC
from tests.conformance.apiserver.objects import a_definition
from tests.support.apiserver import build, calm

KEPT = "kept"
ADMIN = Peer("admin", ("system:masters",))
UNPRIVILEGED = Peer("eve", ())
_ANSWER_S_MAX = 10.0
_writer: ContextVar[int] = ContextVar("writer", default=0)


class RecordingStore(MemoryStore):
    """A store that records which request made each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: dict[int, list[tuple[str, str]]] = {}

    def _note(self, verb: str, entry: Entry) -> Entry:
        self.writes.setdefault(_writer.get(), []).append((verb, entry.key))
        return entry

    async def create(self, key: str, body: Body) -> Entry:
        return self._note("create", await super().create(key, body))

    async def update(self, key: str, body: Body, expected_revision: int, *, frees_space: bool = False) -> Entry:
        return self._note("update", await super().update(key, body, expected_revision, frees_space=frees_space))

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        return self._note("delete", await super().delete(key, body, expected_revision))


@dataclass(frozen=True)
class HostileRequest:
    """One request as sent over the wire; `about` describes what is wrong with it in failure messages."""

    method: str
    target: str
    """Path and query, percent-encoded."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    peer: Peer | None = ADMIN
    about: str = ""
    must_fail: bool = False
    """Whether the server must refuse the request."""

    def to_curl(self) -> str:
        """Return a command that sends the same request, to `$SERVER` with the credentials in `$AUTH`."""
        parts = ["curl -sk $AUTH --path-as-is", "-X", shlex.quote(self.method)]
        for name, value in self.headers:
            parts += ["-H", shlex.quote(f"{name}: {value}")]
        before = ""
        if self.body:
            before = f"base64 -d <<< {base64.b64encode(self.body).decode()} | "
            parts.append("--data-binary @-")
        return f'{before}{" ".join(parts)} "$SERVER"{shlex.quote(self.target)}'


@dataclass
class Answer:
    """The response to a request, and the writes that it made."""

    status: int = 0
    headers: dict[bytes, bytes] = field(default_factory=dict)
    body: bytes = b""
    writes: list[tuple[str, str]] = field(default_factory=list)

    def problem(self, request: HostileRequest) -> str:
        """Return the problem of this answer to the request, "" when it is right."""
        if self.status < 200:
            return f"no answer ({self.status})"
        if self.status < 400:
            return "a bad request was accepted" if request.must_fail else ""
        # 501: logs of a pod, exec and the like, on a server without kubelets.
        if self.status >= 500 and self.status != 501 and not self._is_too_new:
            return "a server error"
        try:
            status = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return "a refusal without a Status"
        expected = ("Status", "v1", "Failure", self.status)
        if (status.get("kind"), status.get("apiVersion"), status.get("status"), status.get("code")) != expected:
            return "a refusal whose Status does not fit"
        if not status.get("message") or not status.get("reason"):
            return "a refusal without message or reason"
        if self.writes:
            return f"a refused request wrote {self.writes}"
        return ""

    @property
    def _is_too_new(self) -> bool:
        """Whether this is the intended 504 for a resourceVersion in the future."""
        return self.status == 504 and b'"ResourceVersionTooLarge"' in self.body


class Target:
    """A server under attack."""

    def __init__(self, app: App, registry: Registry, store: RecordingStore) -> None:
        self.app = app
        self.registry = registry
        self.store = store
        self._numbers = count(1)

    async def send(self, request: HostileRequest) -> Answer:
        """Send one request; the client disconnects at the response, so that watches end."""
        answer = Answer()
        number = next(self._numbers)
        async with asyncio.timeout(_ANSWER_S_MAX):
            # A task of its own, so that its writes carry its number.
            await asyncio.create_task(self._send(request, answer, number))
        writes = self.store.writes.pop(number, [])
        answer.writes = [write for write in writes if not _is_accounting(request, *write)]
        return answer

    async def _send(self, request: HostileRequest, answer: Answer, number: int) -> None:
        _writer.set(number)
        messages = [{"type": "http.request", "body": request.body, "more_body": False}]
        has_started = asyncio.Event()

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await has_started.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.headers = message["status"], dict(message["headers"])
                has_started.set()
            else:
                answer.body += message.get("body", b"")

        path, _, query = request.target.partition("?")
        scope = {
            "type": "http",
            "method": request.method,
            "path": unquote(path),
            "query_string": query.encode("ascii"),
            "headers": [(name.encode(), value.encode("utf-8", "surrogateescape")) for name, value in request.headers],
            "state": {"peer": request.peer},
        }
        await self.app(scope, receive, send)

    async def values(self) -> dict[str, bytes]:
        """Return every stored value by its key."""
        return {entry.key: entry.value for entry in (await self.store.list("/")).entries}


def _is_accounting(request: HostileRequest, verb: str, key: str) -> bool:
    """Return True for the update of a ResourceQuota's usage: a create charges it, and a refused one returns it."""
    _, group, plural, namespace, *_ = *key.split("/"), "", ""
    is_usage = (verb, group, plural) == ("update", "core", "resourcequotas")
    path = unquote(request.target.partition("?")[0])
    return is_usage and f"/namespaces/{namespace}/" in path and "/resourcequotas" not in path


def kept_objects() -> Iterator[Object]:
    """Yield one small object of every kind."""
    yield from yaml.safe_load_all((Path(__file__).parent / "kept.yaml").read_text())


def kept_definition() -> Object:
    """Return the definition of the kept custom resource, with all its subresources."""
    return a_definition(
        "example.com",
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        },
    )


async def _fill(registry: Registry) -> None:
    options = WriteOptions(field_manager="setup")

    def info_of(obj: Object) -> KindInfo:
        group, _, version = obj["apiVersion"].rpartition("/")
        return registry.kinds.by_kind(group, version, obj["kind"])

    for name in (KEPT, "scratch"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await registry.create(info_of(namespace), "", namespace, options)
    await registry.install_crds([kept_definition()])
    for obj in kept_objects():
        info = info_of(obj)
        await registry.create(info, KEPT if info.resource.namespaced else "", obj, options)


@asynccontextmanager
async def a_target(directory: Path) -> AsyncIterator[Target]:
    """Run a server with its background loops and the kept objects."""
    store = RecordingStore()
    parts = build(directory, store)
    await parts.registry.start()
    await ensure_default_rbac(parts.registry, HOST_RBAC)
    tasks = [asyncio.create_task(run()) for run in (parts.authorizer.run, parts.registry.run)]
    await parts.authorizer.wait_synced()
    await _fill(parts.registry)
    target = Target(parts.app, parts.registry, store)
    try:
        await calm(store)
        yield target
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await store.close()
