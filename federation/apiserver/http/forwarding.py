"""Forwards a request to another server and its response to the client, piece by piece.

The next piece is read when the receiver has taken the last one, so a slow receiver cannot fill this server's memory. A
request ends with its deadline, its client or the other server. The caller has authorized it, and opens the connection:
`aggregation/proxy.py` to aggregated API servers, the federation to its members.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Final
from urllib.parse import quote

from federation.apimachinery.errors import BadRequest, RequestEntityTooLarge, ServiceUnavailable
from federation.apimachinery.webhookclient import StreamedResponse
from federation.apiserver.http.asgi import Disconnected, Request, too_large
from federation.apiserver.http.forwardedheaders import response_headers

Body = AsyncIterator[bytes]
Open = Callable[[Body | None], AbstractAsyncContextManager[StreamedResponse]]
"""Sends a request with this body and yields the response."""
_PATH_SAFE: Final = "/:@!$&'()*+,;=~-._"
_QUERY_SAFE: Final = _PATH_SAFE + "%?[]"


class Forwarder:
    """Forwards requests until `stop`. `body_bytes_max` is the largest request body, 0 for no limit."""

    def __init__(self, body_bytes_max: int = 0) -> None:
        self._body_bytes_max = body_bytes_max
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End every forwarded request now, and every new one at once."""
        self._stopping.set()

    async def wait_stopping(self) -> None:
        """Return when `stop` was called."""
        await self._stopping.wait()

    async def forward(self, request: Request, open_: Open) -> None:
        """Forward one request; what `open_` raises before the response has begun is the caller's to answer."""
        upload = _Upload(request, self._body_bytes_max)
        pump = asyncio.ensure_future(_pump(request, open_, upload))
        gone = asyncio.ensure_future(upload.wait_gone())
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((pump, gone, stopping), return_when=asyncio.FIRST_COMPLETED)
            if upload.refusal is not None and not request.status:
                raise upload.refusal
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


async def _pump(request: Request, open_: Open, upload: "_Upload") -> None:
    async with open_(upload.body() if upload.has_body else None) as response:
        request.status = response.status
        kept = [header for header in response_headers(response.headers) if header[0].lower() != b"audit-id"]
        shown = [*kept, *request.common_headers]
        await request.send({"type": "http.response.start", "status": response.status, "headers": shown})
        # An empty piece makes the server flush the headers: the first event of a watch may be far.
        await request.send({"type": "http.response.body", "body": b"", "more_body": True})
        async for piece in response.body:
            await request.send({"type": "http.response.body", "body": piece, "more_body": True})
        await request.send({"type": "http.response.body", "body": b"", "more_body": False})


class _Upload:
    """The body of a forwarded request, and then the end of its connection: both arrive through `receive`."""

    def __init__(self, request: Request, bytes_max: int) -> None:
        self._receive = request.receive
        self._bytes_max = bytes_max
        length = request.headers.get(b"content-length", b"0")
        self.has_body = length != b"0" or b"transfer-encoding" in request.headers
        if bytes_max and length.isdigit() and int(length) > bytes_max:
            raise too_large(bytes_max)
        self.refusal: RequestEntityTooLarge | None = None
        """Why the body was not sent to its end; the connection to the other server then breaks for no other reason."""
        self._is_complete = asyncio.Event()
        self._is_gone = False
        if not self.has_body:
            self._is_complete.set()

    async def body(self) -> Body:
        """Yield the pieces of the body; Disconnected when the client leaves before its end."""
        received = 0
        try:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    self._is_gone = True
                    raise Disconnected
                if piece := message.get("body", b""):
                    received += len(piece)
                    if self._bytes_max and received > self._bytes_max:
                        self.refusal = too_large(self._bytes_max)
                        raise self.refusal
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


def encoded_target(path: str, query: bytes = b"") -> str:
    """Return path and query, encoded; BadRequest for a path that another server could read in another way."""
    segments = path.rstrip("/").split("/")[1:]
    if any(segment in ("", ".", "..") for segment in segments):
        raise BadRequest("a path that is forwarded to another server cannot have empty segments, . or ..")
    target = quote(path, safe=_PATH_SAFE)
    return f"{target}?{quote(query.decode('latin-1'), safe=_QUERY_SAFE)}" if query else target
