"""The Kubernetes API with the rights of the user of a session: requests to the server's own ASGI app, in process.

Each request passes authentication, authorization, priority and fairness, and the audit log, with the credentials of the
session. So a page shows what `kubectl` would show this user, and a token that was revoked ends the session. Nothing in
the web UI reads objects in another way.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import orjson

from federation.apimachinery.errors import from_status
from federation.apiserver.http.asgi import ASGIApp, Scope
from federation.web.ui.credentials import Credentials

_PENDING_MAX = 256
"""Messages of a response that wait for their reader; the server pauses beyond."""


class UserAPI:
    """Sends requests of one user to `server`; `outer` is the ASGI scope of the browser's request."""

    def __init__(self, server: ASGIApp, credentials: Credentials, outer: Mapping[str, Any]) -> None:
        self._server = server
        self._credentials = credentials
        self._outer = outer

    async def get(self, path: str, **query: str) -> Any:
        """Return the JSON value of a successful response; ApiError otherwise."""
        return await self._send("GET", path, query, b"")

    async def get_text(self, path: str) -> str:
        """Return the text of a successful response; ApiError otherwise."""
        return (await self._read("GET", path, {}, b"")).decode()

    async def post(self, path: str, value: Any) -> Any:
        """Send a JSON value and return that of the response; ApiError without success."""
        return await self._send("POST", path, {}, orjson.dumps(value))

    async def _send(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Any:
        return orjson.loads(await self._read(method, path, query, body))

    async def _read(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> bytes:
        status, content = 0, bytearray()
        async for message in self._messages(method, path, query, body):
            status = message.get("status", status)
            content += message.get("body", b"")
        if 200 <= status < 300:
            return bytes(content)
        try:
            value = orjson.loads(bytes(content))
        except orjson.JSONDecodeError:
            value = {}
        raise from_status(value if isinstance(value, dict) else {}, status or 500)

    async def changes(self, path: str, **query: str) -> AsyncGenerator[None, None]:
        """Yield for every change of a collection from now on, until the server ends the watch; ApiError if refused."""
        listed = await self.get(path, **query, limit="1")
        watched = {**query, "watch": "1", "resourceVersion": str(listed["metadata"]["resourceVersion"])}
        status = 0
        async for message in self._messages("GET", path, watched, b""):
            status = message.get("status", status)
            if status >= 400 and message.get("body"):
                raise from_status({}, status)
            if message.get("body"):
                yield

    async def _messages(
        self, method: str, path: str, query: Mapping[str, str], body: bytes
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
                await self._server(self._scope(method, path, query), receive, messages.put)
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

    def _scope(self, method: str, path: str, query: Mapping[str, str]) -> Scope:
        headers = [(b"accept", b"application/json"), (b"content-type", b"application/json")]
        headers += [(name, value) for name, value in self._outer["headers"] if name in (b"host", b"user-agent")]
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
            "state": {"peer": self._credentials.peer} if self._credentials.peer is not None else {},
        }
