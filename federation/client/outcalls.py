"""Calls to HTTP services that administrators configure: POST and GET, one deadline for all of it, a bounded answer.

Nothing is retried, redirected or cached, and no proxy of the environment is used: what is configured is what is called.
Connections are kept and reused per address and TLS identity. It does not know what is asked. `services.py` reads next:
what becomes of services that do not answer.
"""

import asyncio
import os
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import NamedTuple

import aiohttp

from federation.base.errors import ConfigurationError
from federation.client.connection import Connection

_CONTEXTS_MAX = 64


@dataclass(frozen=True, slots=True)
class OutcallOptions:
    """Limits: how many calls are under way at once per server, and how long an answer may be."""

    calls_per_host_max: int = 32
    answer_bytes_max: int = 1 << 20


class Answer(NamedTuple):
    """HTTP status and body, or status 0 and why there was no answer."""

    status: int
    body: bytes = b""
    error: str = ""

    @property
    def is_outage(self) -> bool:
        """Whether the service itself failed, as opposed to answering something that does not please."""
        return self.status in (0, HTTPStatus.TOO_MANY_REQUESTS) or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR


class Outcalls:
    """Makes calls. Nothing is open before the first; `close` when done."""

    def __init__(self, options: OutcallOptions | None = None) -> None:
        self._options = options or OutcallOptions()
        self._session: aiohttp.ClientSession | None = None
        self._contexts: OrderedDict[Connection, ssl.SSLContext | None] = OrderedDict()

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Answer:
        """POST to `connection.server`, a whole URL; never raises but for cancellation."""
        return await self._call("POST", connection, body, headers, timeout_s)

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> Answer:
        """GET `connection.server`, a whole URL; never raises but for cancellation."""
        return await self._call("GET", connection, None, headers, timeout_s)

    async def _call(
        self, method: str, connection: Connection, body: bytes | None, headers: Mapping[str, str], timeout_s: float
    ) -> Answer:
        try:
            context = self._context(connection)
            async with (
                asyncio.timeout(timeout_s),
                self._opened().request(
                    method,
                    connection.server,
                    data=body,
                    headers=headers,
                    ssl=True if context is None else context,
                    server_hostname=connection.tls_server_name or None,
                    allow_redirects=False,
                ) as response,
            ):
                received = bytearray()
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > self._options.answer_bytes_max:
                        return Answer(0, error=f"the answer is longer than {self._options.answer_bytes_max} bytes")
                return Answer(response.status, bytes(received))
        except TimeoutError:
            return Answer(0, error=f"no answer within {timeout_s:g} s")
        except aiohttp.ClientConnectorError as problem:
            return Answer(0, error=_connection_error(problem))
        except (aiohttp.ClientError, ConfigurationError, ValueError, OSError) as problem:
            return Answer(0, error=str(problem) or type(problem).__name__)

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, limit_per_host=self._options.calls_per_host_max)
            timeout = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session

    def _context(self, connection: Connection) -> ssl.SSLContext | None:
        """Return the TLS context, the same one for the same credentials, so that connections can be reused."""
        if not connection.server.startswith("https://"):
            return None
        identity = replace(connection, server="https://", tls_server_name="")
        if identity not in self._contexts:
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.popitem(last=False)
            self._contexts[identity] = identity.to_tls()
        return self._contexts[identity]


def _connection_error(problem: aiohttp.ClientConnectorError) -> str:
    """Return why there is no connection as the system says it: "cannot connect to db:80: Connection refused"."""
    code = problem.os_error.errno
    if isinstance(problem, aiohttp.ClientSSLError) or code is None or code <= 0:
        return str(problem)
    return f"cannot connect to {problem.host}:{problem.port}: {os.strerror(code)}"
