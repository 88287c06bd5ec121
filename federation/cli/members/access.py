"""One member, reached through the host: `federatedclusters/NAME/proxy`, with the rights that the user has there.

All members share the connection to the host. A request fails when no byte arrives for `patience_s`, so that one member
that hangs costs no more than that. `docs/reference/member-proxy.md` describes the other end.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ClusterLimitExceeded,
    RequestTimeout,
    from_status,
)
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.client.streams import MemberSocket, until_idle

if TYPE_CHECKING:
    from federation.client.http import HTTPClient

JSON = "application/json"
_ANSWER_BYTES_MAX = 64 * 1024 * 1024
"""The longest answer that is read as a whole; lists are read in pages, so none comes near it."""


class Member:
    """One member behind a host."""

    def __init__(self, host: "HTTPClient", name: str, patience_s: float) -> None:
        self.name = name
        self._host = host
        self.patience_s = patience_s
        self._path = FEDERATED_CLUSTERS.path("", name, "proxy")

    async def read(self, target: str, accept: str = JSON) -> Object:
        """Return the JSON object at an encoded path with its query; ApiError, ClusterError."""
        async with self.open(target, accept) as body:
            text = await _joined(body)
        found = parse_object(text)
        if found is None:
            raise ClusterError("answered without a JSON object")
        return found

    async def raw(self, method: str, path: str) -> tuple[int, bytes]:
        """Return status code and body, for discovery (`plans/kinds.py`)."""
        try:
            async with self._exchange(method, path, JSON) as (status, body):
                return status, await _joined(body)
        except ApiError as error:
            return error.code, b""

    @asynccontextmanager
    async def open(
        self, target: str, accept: str = JSON, *, idle_s: float | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send a GET and yield the body as it arrives; ApiError for a refusal, ClusterError without an answer.

        `idle_s` is the time without a byte after which the body ends with RequestTimeout, `patience_s` by default.
        """
        async with self._exchange("GET", target, accept, idle_s=idle_s) as (status, body):
            if status >= 300:
                text = await _joined(body)
                raise from_status(parse_object(text) or {}, status)
            yield body

    @asynccontextmanager
    async def _exchange(
        self, method: str, target: str, accept: str, *, idle_s: float | None = None
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        headers = [("Accept", accept), ("User-Agent", "fedctl"), ("Accept-Encoding", "identity"), *self._impersonated()]
        head = asyncio.timeout(self.patience_s)
        try:
            async with head, self._host.delegate.exchange(method, self._path + target, headers, None) as answer:
                head.reschedule(None)
                limit_s = idle_s or self.patience_s
                yield answer.status, until_idle(answer.body, limit_s, lambda: self._silent(limit_s))
        except TimeoutError:
            if head.expired():
                raise self._silent(self.patience_s) from None
            raise

    def websocket(self, target: str, subprotocols: Sequence[str]) -> AbstractAsyncContextManager[MemberSocket]:
        """Open a WebSocket connection; an ApiError when the host or the member refuses it."""
        return self._host.delegate.websocket(self._path + target, self._impersonated(), subprotocols)

    def _impersonated(self) -> list[tuple[str, str]]:
        """Return the headers for the user that the kubeconfig acts for; a delegate sends none of its own."""
        connection = self._host.connection
        if not connection.impersonate_user:
            return []
        groups = [("Impersonate-Group", group) for group in connection.impersonate_groups]
        return [("Impersonate-User", connection.impersonate_user), *groups]

    def _silent(self, limit_s: float) -> RequestTimeout:
        return RequestTimeout(f"no answer in {limit_s:g} s")


async def _joined(body: AsyncIterator[bytes]) -> bytes:
    pieces, length = [], 0
    async for piece in body:
        pieces.append(piece)
        length += len(piece)
        if length > _ANSWER_BYTES_MAX:
            raise ClusterLimitExceeded(f"the answer is longer than {_ANSWER_BYTES_MAX >> 20} MiB")
    return b"".join(pieces)
