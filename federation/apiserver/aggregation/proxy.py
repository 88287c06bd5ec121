"""Forwards requests to aggregated API servers, as the user who sent them.

`http/app.py` has authenticated and authorized the request before. `http/forwarding.py` passes bodies on.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from federation.apimachinery.connection import Connection
from federation.apimachinery.deadline import Deadline
from federation.apimachinery.errors import ApiError, ServiceUnavailable, TooManyRequests
from federation.apimachinery.webhookclient import StreamedResponse, WebhookClient
from federation.apiserver.aggregation.backends import Address, Backend
from federation.apiserver.http.asgi import Request
from federation.apiserver.http.forwardedheaders import is_redirect, request_headers, user_headers
from federation.apiserver.http.forwarding import Body, Forwarder, encoded_target
from federation.apiserver.registry.apiservices import APIEntry

_TEXT: Final = b"text/plain; charset=utf-8"
_UNAVAILABLE: Final = "service unavailable"
_REDIRECTED: Final = "the backend attempted to redirect this request, which is not permitted"


class _BackendFailed(ApiError):
    """The server did not answer, or with a redirect; the client gets the message as text, as from kube-aggregator."""


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
        self._forwarder = Forwarder()
        self.stop = self._forwarder.stop

    async def serve(self, request: Request, entry: APIEntry, *, timeout_s: float | None, path: str = "") -> None:
        """Forward a request and its response; `timeout_s` None is for watches, `path` another path than its own.

        503 without a server that answers, TooManyRequests beyond the limit, TimeoutError at the deadline.
        """
        backend = self._backends.get(entry.name)
        address = backend.next_address() if backend is not None and entry.is_available else None
        if backend is None or address is None:
            await _respond_text(request, 503, _UNAVAILABLE)
            return
        query = b"" if path else request.scope["query_string"]
        url = address.connection.server + encoded_target(path or request.path, query)
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
        client = request.scope.get("client")
        headers = request_headers(request.scope["headers"], client[0] if client else "") + user_headers(request.user)
        headers.append(("Host", address.target.authority))
        connection = replace(address.connection, server=url)
        try:
            await self._forwarder.forward(request, partial(self._open, request.method, connection, headers))
        except _BackendFailed as failure:
            if request.status:
                raise  # the response stays incomplete, so that the client notices
            await _respond_text(request, failure.code, failure.message)

    @asynccontextmanager
    async def _open(
        self, method: str, connection: Connection, headers: list[tuple[str, str]], body: Body | None
    ) -> AsyncIterator[StreamedResponse]:
        try:
            async with self._client.stream(method, connection, headers, body) as response:
                if is_redirect(response.status, {name.lower(): value for name, value in response.headers}):
                    raise _BackendFailed(_REDIRECTED, code=502)
                yield response
        except ServiceUnavailable as error:
            raise _BackendFailed(error.message, code=503) from error


async def _respond_text(request: Request, status: int, text: str) -> None:
    await request.respond(
        status, f"{text}\n".encode(), content_type=_TEXT, headers=[(b"x-content-type-options", b"nosniff")]
    )
