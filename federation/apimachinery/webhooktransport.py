"""httpx's transport with a rule about addresses that holds where connections open, and its failures in plain words.

Importing this module imports httpx; see `webhookclient.py`.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, ServiceUnavailable
from federation.apimachinery.publicaddresses import Network, is_listed, is_metadata, is_public

_KEEP_ALIVE_S = 15.0
_REACHED: ContextVar[list[str] | None] = ContextVar("reached", default=None)
"""The addresses that the call of the present task connects to."""
_HEAD: ContextVar[list[int] | None] = ContextVar("head", default=None)
"""The bytes that the call of the present task has received, until it has the head of the response."""
_HEAD_BYTES_MAX = 32 * 1024
"""Of the head of a response and all interim responses before it, each of which costs as much as a head."""
_READ_BYTES = 16 * 1024
"""What is received at a time. h11 parses all interim responses in it without a pause."""


class CheckedTransport(httpx.AsyncHTTPTransport):
    """The connections to one server with one TLS context, None for plain HTTP.

    With `allowed`, it connects to global unicast addresses and these networks only. Without, it sends nothing to
    metadata services of clouds.
    """

    def __init__(self, context: ssl.SSLContext | None, allowed: Sequence[Network] | None) -> None:
        super().__init__(verify=context or False, trust_env=False)
        # httpx has no argument for the backend. Its pool is a httpcore one with the same arguments.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=None,
            keepalive_expiry=_KEEP_ALIVE_S,
            network_backend=_Backend(allowed),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it; the list in its extension `reached` gets the addresses of the connections."""
        reached: list[str] = request.extensions["reached"]
        tokens = _REACHED.set(reached), _HEAD.set([0])
        try:
            response = await super().handle_async_request(request)
        finally:
            _REACHED.reset(tokens[0])
            _HEAD.reset(tokens[1])
        # A connection that is used again was checked, for another call.
        if address := response.extensions["network_stream"].get_extra_info("server_addr"):
            reached.append(str(address[0]))
        return response


class _Stream(httpcore.AsyncNetworkStream):
    """A connection that receives a little at a time, and no head without end."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  # httpcore's
        received = _HEAD.get()
        if received is not None and received[0] > _HEAD_BYTES_MAX:
            raise httpcore.RemoteProtocolError(f"a head longer than {_HEAD_BYTES_MAX} bytes")
        data = await self._stream.read(min(max_bytes, _READ_BYTES), timeout)
        if received is not None:
            received[0] += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109  # httpcore's
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _Backend(httpcore.AnyIOBackend):
    """Connects to the addresses that a server may have, and sends nothing to others.

    With `allowed`, these are global unicast addresses and the listed networks. It sees every address that is connected
    to, so a name that resolves to another address later is no way in. Without, a connection to a metadata service is
    closed before anything is sent, whatever name or number led to it.
    """

    def __init__(self, allowed: Sequence[Network] | None) -> None:
        self._allowed = allowed

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        if self._allowed is None:
            stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
            if (address := stream.get_extra_info("server_addr")) and is_metadata(str(address[0])):
                await stream.aclose()
                raise httpcore.ConnectError("not allowed, because it is a link-local or metadata address")
            return _Stream(stream)
        problem: httpcore.ConnectError | None = None
        for address in await _resolve(host, port):
            if not is_public(address) and not is_listed(address, self._allowed):
                problem = problem or httpcore.ConnectError("not allowed, because it is no global unicast address")
                continue
            if (reached := _REACHED.get()) is not None:
                reached.append(address)
            try:
                return _Stream(await super().connect_tcp(address, port, timeout, local_address, socket_options))
            except httpcore.ConnectError as error:
                problem = error
        raise problem or httpcore.ConnectError("the name has no address")


_TARGET = re.compile(r"^[^/?#]*//[^/?#]*")
"""Scheme and authority of a URL; what is requested comes after them."""


async def _resolve(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(str(error)) from error
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def to_request(
    method: str,
    connection: Connection,
    headers: Sequence[tuple[str, str]],
    body: bytes | AsyncIterator[bytes] | None,
    reached: list[str],
    connect_s: float | None,
) -> httpx.Request:
    """Return a request to `connection.server`, whose path and query are sent as they are."""
    extensions: dict[str, object] = {"timeout": {"connect": connect_s}, "reached": reached}
    if connection.tls_server_name:
        extensions["sni_hostname"] = connection.tls_server_name
    if target := _TARGET.sub("", connection.server).partition("#")[0]:
        extensions["target"] = (target if target.startswith("/") else f"/{target}").encode("ascii")
    return httpx.Request(method, connection.server, headers=list(headers), content=body, extensions=extensions)


@contextmanager
def described_problems(url: str) -> Iterator[None]:
    """Turn every failure of a call into a ServiceUnavailable: "cannot connect to db:80: Connection refused"."""
    try:
        yield
    except httpx.ConnectError as problem:
        raise ServiceUnavailable(f"cannot connect to {_address(url)}: {_reason(problem)}") from problem
    except httpx.TimeoutException as problem:
        raise ServiceUnavailable(f"cannot connect to {_address(url)}: no connection in time") from problem
    except (httpx.HTTPError, httpx.InvalidURL, ConfigurationError, ValueError, OSError) as problem:
        raise ServiceUnavailable(str(problem) or type(problem).__name__) from problem


def _address(url: str) -> str:
    with suppress(httpx.InvalidURL):
        parsed = httpx.URL(url)
        host = f"[{parsed.host}]" if ":" in parsed.host else parsed.host
        return f"{host}:{parsed.port or (443 if parsed.scheme == 'https' else 80)}"
    return url


def _reason(problem: BaseException) -> str:
    """Return the system's words for the failure at the end of a chain of causes."""
    text = str(problem)
    cause: BaseException | None = problem
    while cause is not None:
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
            continue
        if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError | socket.gaierror) and cause.errno:
            text = os.strerror(cause.errno)
        cause = cause.__cause__ or cause.__context__
    return text
