"""The Kubernetes API with the rights of the user of a session: requests to the server's own ASGI app, in process.

Each request passes authentication, authorization, priority and fairness, and the audit log, with the credentials of the
session. So a page shows what `kubectl` would show this user, and a token that was revoked ends the session. Nothing in
the web UI reads objects in another way.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, MutableMapping, Sequence
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import urlencode

import orjson

from federation.apimachinery.errors import ApiError, ServiceUnavailable, from_status
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.usedtime import charged
from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.asgi import ASGIApp, Scope
from federation.apiserver.http.connectionshares import SEAT
from federation.apiserver.http.nonresource import CHARGE, HOLD
from federation.apiserver.http.streams import End, HeldStream
from federation.apiserver.http.websockets import WEBSOCKET, ClientSocket
from federation.web.ui.credentials import Credentials

_PENDING_MAX = 256
"""Messages of a response that wait for their reader; the server pauses beyond."""
_ANSWER_BYTES_MAX = 64 << 20
"""Bytes of a response. A member may send any number, whatever it is asked for."""


_REFUSAL_BYTES_MAX = 64 << 10
_JSON = "application/json"
Query = Mapping[str, str]
_NO_QUERY: Query = {}


class UserAPI:
    """Sends requests of one user to `server`; `outer` is the ASGI scope of the browser's request."""

    def __init__(self, server: ASGIApp, credentials: Credentials, outer: Mapping[str, Any]) -> None:
        self._server = server
        self._credentials = credentials
        self._outer = outer

    @property
    def origin(self) -> str:
        """The address of the server as the browser has it."""
        host = next((value for name, value in self._outer["headers"] if name == b"host"), b"")
        return f"https://{host.decode('latin-1')}" if host else ""

    async def hold(self, end: End) -> HeldStream:
        """Count a stream of this user until it is closed; `end` is called when the credentials are refused.

        Unauthorized, TooManyRequests.
        """
        held: HeldStream = await self._outer[HOLD](*self._identity(), str(self._outer["path"]), end)
        return held

    async def charge(self) -> None:
        """Count what the page computes against this user; Unauthorized, TooManyRequests if he used too much."""
        await self._outer[CHARGE](*self._identity())

    def _identity(self) -> tuple[Peer | None, bytes]:
        credentials = self._credentials
        return credentials.peer, f"Bearer {credentials.token}".encode() if credentials.token else b""

    async def get(self, path: str, **query: str) -> Any:
        """Return the JSON value of a successful response; ApiError otherwise."""
        answer = await self.send("GET", path, query)
        with charged():
            return orjson.loads(answer)

    async def get_text(self, path: str, query: Query = _NO_QUERY) -> str:
        """Return the text of a successful response; ApiError otherwise."""
        return (await self.send("GET", path, query)).decode()

    async def post(self, path: str, value: Any) -> Any:
        """Send a JSON value and return that of the response; ApiError without success."""
        answer = await self.send("POST", path, body=orjson.dumps(value))
        with charged():
            return orjson.loads(answer)

    async def send(
        self,
        method: str,
        path: str,
        query: Query = _NO_QUERY,
        body: bytes = b"",
        content_type: str = _JSON,
        *,
        bytes_max: int = _ANSWER_BYTES_MAX,
    ) -> bytes:
        """Return the body of a successful response; ApiError otherwise, also for one that is larger than allowed."""
        status, content = await self.answer(method, path, query, body, content_type, bytes_max=bytes_max)
        if 200 <= status < 300:
            return content
        raise _to_error(status, content)

    async def answer(
        self,
        method: str,
        path: str,
        query: Query = _NO_QUERY,
        body: bytes = b"",
        content_type: str = _JSON,
        *,
        bytes_max: int = _ANSWER_BYTES_MAX,
    ) -> tuple[int, bytes]:
        """Return status code and body of a response, whatever the status; ServiceUnavailable for too large a body."""
        status, content = 0, bytearray()
        async with aclosing(self._messages(method, path, query, body, content_type)) as messages:
            async for message in messages:
                status = message.get("status", status)
                content += message.get("body", b"")
                if len(content) > bytes_max:
                    raise ServiceUnavailable(
                        f"the response is larger than {bytes_max >> 10} KiB, which a page can show"
                    )
        return status or 500, bytes(content)

    async def stream(self, path: str, query: Query) -> AsyncGenerator[bytes, None]:
        """Yield b"" when the response begins, then its body in chunks; ApiError if the request is refused."""
        status, refused = 0, bytearray()
        async for message in self._messages("GET", path, query, b"", _JSON):
            status = message.get("status", status)
            if status < 400:
                yield bytes(message.get("body", b""))
            else:
                refused += message.get("body", b"")
        if status >= 400:
            raise _to_error(status, bytes(refused))

    async def changes(self, path: str, **query: str) -> AsyncGenerator[None, None]:
        """Yield for every change of a collection from now on, until the server ends the watch; ApiError if refused."""
        listed = await self.get(path, **query, limit="1")
        watched = {**query, "watch": "1", "resourceVersion": str(listed["metadata"]["resourceVersion"])}
        async for chunk in self.stream(path, watched):
            if b"\n" in chunk:  # a large event has several chunks
                yield

    async def connect(self, path: str, query: Sequence[tuple[str, str]], socket: ClientSocket) -> str:
        """Open a connection at `path` for `socket`, and return at its end: "", or why it was refused."""
        status, refused = 0, bytearray()
        open_ended = asyncio.get_running_loop().create_future()
        request = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> MutableMapping[str, Any]:
            for message in request:
                return message
            await open_ended
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            if len(refused) < _REFUSAL_BYTES_MAX:
                refused.extend(message.get("body", b""))

        scope = {**self._scope("GET", path, {}, _JSON), "query_string": urlencode(query).encode()}
        await self._server({**scope, "extensions": {WEBSOCKET: socket}}, receive, send)
        if not status:
            return ""
        return _to_error(status, bytes(refused)).message or f"the server answered {status}"

    async def _messages(
        self, method: str, path: str, query: Query, body: bytes, content_type: str
    ) -> AsyncGenerator[MutableMapping[str, Any], None]:
        """Yield the ASGI messages of the response; the request ends with the generator."""
        messages: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue(_PENDING_MAX)
        request = iter([{"type": "http.request", "body": body, "more_body": False}])
        open_ended = asyncio.get_running_loop().create_future()

        async def receive() -> MutableMapping[str, Any]:
            for message in request:
                return message
            await open_ended  # the client stays connected until the task is cancelled
            return {"type": "http.disconnect"}

        async def serve() -> None:
            try:
                await self._server(self._scope(method, path, query, content_type, len(body)), receive, messages.put)
            finally:
                await messages.put({"type": "end"})

        serving = asyncio.ensure_future(serve())
        try:
            while (message := await messages.get())["type"] != "end":
                yield message
            await serving
        finally:
            serving.cancel()
            while not messages.empty():
                messages.get_nowait()
            with suppress(asyncio.CancelledError):
                await serving

    def _scope(self, method: str, path: str, query: Query, content_type: str, length: int = 0) -> Scope:
        headers = [(b"accept", _JSON.encode()), (b"content-type", content_type.encode())]
        headers += [(name, value) for name, value in self._outer["headers"] if name in (b"host", b"user-agent")]
        if length:  # without it, a request that is passed on to a member has no body
            headers.append((b"content-length", str(length).encode()))
        if self._credentials.token:
            headers.append((b"authorization", b"Bearer " + self._credentials.token.encode("latin-1", "replace")))
        return {
            **{key: self._outer.get(key) for key in ("asgi", "http_version", "scheme", "client", "server")},
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode(query).encode(),
            "headers": headers,
            "state": {"peer": self._credentials.peer, SEAT: (self._outer.get("state") or {}).get(SEAT)},
        }


def _to_error(status: int, body: bytes) -> ApiError:
    return from_status(parse_object(body) or {}, status)
