"""Forwards requests to aggregated API servers, as the user who sent them.

`http/app.py` has authenticated and authorized the request before. Bodies are passed on piece by piece in both
directions, no faster than the receiver reads, so neither side can fill this server's memory. A request ends with its
deadline, its client or the server.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from federation.apimachinery.deadline import Deadline
from federation.apimachinery.errors import BadRequest, ServiceUnavailable, TooManyRequests
from federation.apimachinery.webhookclient import WebhookClient
from federation.apiserver.aggregation.backends import Address, Backend
from federation.apiserver.aggregation.headers import is_redirect, request_headers, response_headers
from federation.apiserver.http.asgi import Disconnected, Request
from federation.apiserver.registry.apiservices import APIEntry

_TEXT: Final = b"text/plain; charset=utf-8"
_UNAVAILABLE: Final = "service unavailable"
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"
_PATH_SAFE: Final = "/:@!$&'()*+,;=~-._"
_QUERY_SAFE: Final = _PATH_SAFE + "%?[]"


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Limits of forwarded requests."""

    requests_max: int = 100
    """Requests in flight to one APIService, watches left out: a server that hangs holds no more than these."""


class Proxy:
    """Forwards requests. `backends` are the servers by the names of their APIServices."""

    def __init__(self, client: WebhookClient, backends: Mapping[str, Backend], options: ProxyOptions) -> None:
        self._client = client
        self._backends = backends
        self._options = options
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End every forwarded request now, and every new one at once."""
        self._stopping.set()

    async def serve(self, request: Request, entry: APIEntry, *, timeout_s: float | None, path: str = "") -> None:
        """Forward a request and its response; `timeout_s` None is for watches, `path` another path than its own.

        503 without a server that answers, TooManyRequests beyond the limit, TimeoutError at the deadline.
        """
        backend = self._backends.get(entry.name)
        address = backend.next_address() if backend is not None and entry.is_available else None
        if backend is None or address is None:
            await _respond_text(request, 503, _UNAVAILABLE)
            return
        url = _url(address, request, path)
        if timeout_s is None:
            await self._forward(request, address, url)
            return
        if backend.in_flight >= self._options.requests_max:
            text = f"too many requests to {entry.name} are in flight, please try again later"
            raise TooManyRequests(text, details={"retryAfterSeconds": 1})
        backend.in_flight += 1
        try:
            with Deadline(timeout_s) if timeout_s else nullcontext():
                await self._forward(request, address, url)
        finally:
            backend.in_flight -= 1

    async def _forward(self, request: Request, address: Address, url: str) -> None:
        upload = _Upload(request)
        pump = asyncio.ensure_future(self._pump(request, address, url, upload))
        gone = asyncio.ensure_future(upload.wait_gone())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((pump, gone, stopping), return_when=asyncio.FIRST_COMPLETED)
            if pump.done():
                await pump
            elif gone.done():
                raise Disconnected
            elif not request.status:
                raise ServiceUnavailable("the server is stopping")
        finally:
            for task in (pump, gone, stopping):
                task.cancel()
            await asyncio.gather(pump, gone, stopping, return_exceptions=True)

    async def _pump(self, request: Request, address: Address, url: str, upload: "_Upload") -> None:
        client = request.scope.get("client")
        headers = request_headers(request.scope["headers"], request.user, client[0] if client else "")
        headers.append(("Host", address.target.authority))
        connection = replace(address.connection, server=url)
        body = upload.body() if upload.has_body else None
        try:
            async with self._client.stream(request.method, connection, headers, body) as response:
                if is_redirect(response.status, {name.lower(): value for name, value in response.headers}):
                    await _respond_text(request, 502, _REDIRECTED)
                    return
                request.status = response.status
                shown = [*response_headers(response.headers), *request.flow_headers]
                await request.send({"type": "http.response.start", "status": response.status, "headers": shown})
                # An empty piece makes the server flush the headers: the first event of a watch may be far.
                await request.send({"type": "http.response.body", "body": b"", "more_body": True})
                async for piece in response.body:
                    await request.send({"type": "http.response.body", "body": piece, "more_body": True})
                await request.send({"type": "http.response.body", "body": b"", "more_body": False})
        except ServiceUnavailable as error:
            if request.status:
                raise  # the response stays incomplete, so that the client notices
            await _respond_text(request, 503, error.message)


class _Upload:
    """The body of a forwarded request, and then the end of its connection: both arrive through `receive`."""

    def __init__(self, request: Request) -> None:
        self._receive = request.receive
        length = request.headers.get(b"content-length", b"0")
        self.has_body = length != b"0" or b"transfer-encoding" in request.headers
        self._is_complete = asyncio.Event()
        self._is_gone = False
        if not self.has_body:
            self._is_complete.set()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the pieces of the body; Disconnected when the client leaves before its end."""
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    self._is_gone = True
                    raise Disconnected
                if piece := message.get("body", b""):
                    yield piece
                if not message.get("more_body"):
                    return
        finally:
            self._is_complete.set()

    async def wait_gone(self) -> None:
        """Return when the client has left."""
        await self._is_complete.wait()
        while not self._is_gone:
            self._is_gone = (await self._receive())["type"] == "http.disconnect"


def _url(address: Address, request: Request, path: str) -> str:
    """Return the URL for a request; BadRequest for a path that another server could read differently than this one."""
    segments = (path or request.path).rstrip("/").split("/")[1:]
    if any(segment in ("", ".", "..") for segment in segments):
        raise BadRequest("a path that is forwarded to another server cannot have empty segments, . or ..")
    url = address.connection.server + quote(path or request.path, safe=_PATH_SAFE)
    query = "" if path else request.scope["query_string"].decode("latin-1")
    return f"{url}?{quote(query, safe=_QUERY_SAFE)}" if query else url


async def _respond_text(request: Request, status: int, text: str) -> None:
    await request.respond(
        status, f"{text}\n".encode(), content_type=_TEXT, headers=[(b"x-content-type-options", b"nosniff")]
    )
